#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/init.h>
#include <binade/nn/options_internal.h>
#include <binade/nn/rnn.h>

#include <cmath>

namespace binade::nn {

namespace {

// PyTorch's initial values.
void draw(const RecurrentWeights& w, int64_t hidden) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  for (const Tensor* t : {&w.weight_ih, &w.weight_hh, &w.bias_ih, &w.bias_hh, &w.weight_hr}) {
    if (t->defined()) {
      init::uniform(*t, -bound, bound);
    }
  }
}

void check_nonlinearity(const char* name, Nonlinearity nonlinearity) {
  check(nonlinearity == Nonlinearity::tanh || nonlinearity == Nonlinearity::relu, name,
        ": got the nonlinearity number ", static_cast<int>(nonlinearity),
        ", expected Nonlinearity::tanh or Nonlinearity::relu");
}

}  // namespace

Recurrent::Recurrent(const char* name, Cell cell, const RNNOptions& options)
    : name_(name), cell_(cell), options_(options) {
  check_sizes(name,
              {{"input", options.input}, {"hidden", options.hidden}, {"layers", options.layers}});
  check(options.dropout >= 0 && options.dropout < 1, name, ": got dropout = ", options.dropout,
        ", expected a probability below 1");
  check(options.projection == 0 ||
            (cell == Cell::lstm && options.projection > 0 && options.projection < options.hidden),
        name, ": got projection = ", options.projection,
        ", expected 1 to hidden - 1 = ", options.hidden - 1, ", of an LSTM only");
  const int64_t directions = options.bidirectional ? 2 : 1, hidden = options.hidden;
  const int64_t state = options.projection > 0 ? options.projection : hidden;
  const int64_t rows = (cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1) * hidden;
  weights.resize(static_cast<size_t>(options.layers * directions));
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto layer = static_cast<int64_t>(i) / directions;
    const std::string suffix =
        "_l" + std::to_string(layer) + (static_cast<int64_t>(i) % directions ? "_reverse" : "");
    RecurrentWeights& w = weights[i];
    w.weight_ih = empty({rows, layer == 0 ? options.input : directions * state});
    w.weight_hh = empty({rows, state});
    register_parameter("weight_ih" + suffix, w.weight_ih);
    register_parameter("weight_hh" + suffix, w.weight_hh);
    if (options.bias) {
      w.bias_ih = empty({rows});
      w.bias_hh = empty({rows});
      register_parameter("bias_ih" + suffix, w.bias_ih, {.norm_or_bias = true});
      register_parameter("bias_hh" + suffix, w.bias_hh, {.norm_or_bias = true});
    }
    if (options.projection > 0) {
      w.weight_hr = empty({options.projection, hidden});
      register_parameter("weight_hr" + suffix, w.weight_hr);
    }
    draw(w, hidden);
  }
}

RNN::RNN(const RNNOptions& options, Nonlinearity nonlinearity)
    : Recurrent("RNN", nonlinearity == Nonlinearity::relu ? Cell::relu : Cell::tanh, options) {
  check_nonlinearity("RNN", nonlinearity);
}

// Layer and direction `index`.
RecurrentOutput Recurrent::run_layer(const Tensor& x, const RecurrentState& start,
                                     const Tensor& lengths, int64_t index) const {
  const RecurrentWeights& w = weights[static_cast<size_t>(index)];
  const RecurrentOptions options{.batch_first = options_.batch_first,
                                 .reverse = options_.bidirectional && index % 2 == 1,
                                 .lengths = lengths};
  const int64_t batch = x.size(options_.batch_first ? 0 : 1), hidden = options_.hidden;
  const auto first = [&](const Tensor& states, int64_t columns) {
    return states.defined() ? select(states, 0, index)
                            : zeros({batch, columns}, x.dtype(), x.device());
  };
  const Tensor h = first(start.h, options_.projection > 0 ? options_.projection : hidden);
  switch (cell_) {
    case Cell::tanh: return rnn_tanh(x, h, w, options);
    case Cell::relu: return rnn_relu(x, h, w, options);
    case Cell::gru: return gru(x, h, w, options);
    default: return lstm(x, h, first(start.c, hidden), w, options);
  }
}

RecurrentResult Recurrent::run(const Tensor& x, const RecurrentState& start,
                               const Tensor& lengths) {
  return scoped([&] { return run_layers(x, start, lengths); });
}

RecurrentResult Recurrent::run_layers(const Tensor& x, const RecurrentState& start,
                                      const Tensor& lengths) {
  check_place();
  check(x.defined() && x.dim() == 3 && x.size(2) == options_.input, name_, ": got ",
        x.defined() ? text("shape ", x.sizes()) : std::string("an undefined tensor"), ", expected ",
        options_.batch_first ? "[batch, steps, " : "[steps, batch, ", options_.input, "]");
  const auto count = static_cast<int64_t>(weights.size());
  for (const Tensor* t : {&start.h, &start.c}) {
    check(!t->defined() || (t->dim() == 3 && t->size(0) == count), name_,
          ": got a start state that is not [", count, ", batch, size]");
  }
  check(!start.c.defined() || cell_ == Cell::lstm, name_,
        ": got a start state c, expected only h; an LSTM alone has c");
  const int64_t directions = options_.bidirectional ? 2 : 1;
  Tensor h = x;
  std::vector<Tensor> h_n, c_n;
  for (int64_t index = 0; index < count; index += directions) {
    if (index > 0 && is_training() && options_.dropout > 0) {
      h = dropout(h, options_.dropout);
    }
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const RecurrentOutput out = run_layer(h, start, lengths, index + direction);
      outputs.push_back(out.output);
      h_n.push_back(out.h_n);
      c_n.push_back(out.c_n);
    }
    h = directions == 1 ? outputs[0] : cat(outputs, 2);
  }
  return {h, {stack(h_n), cell_ == Cell::lstm ? stack(c_n) : Tensor()}};
}

// cells -------------------------------------------------------------------------------------------

RecurrentCell::RecurrentCell(const char* name, int64_t gates, const RNNCellOptions& options)
    : name_(name), options_(options) {
  check_sizes(name, {{"input", options.input}, {"hidden", options.hidden}});
  const int64_t rows = gates * options.hidden;
  weights.weight_ih = empty({rows, options.input});
  weights.weight_hh = empty({rows, options.hidden});
  register_parameter("weight_ih", weights.weight_ih);
  register_parameter("weight_hh", weights.weight_hh);
  if (options.bias) {
    weights.bias_ih = empty({rows});
    weights.bias_hh = empty({rows});
    register_parameter("bias_ih", weights.bias_ih, {.norm_or_bias = true});
    register_parameter("bias_hh", weights.bias_hh, {.norm_or_bias = true});
  }
  const NoGradGuard guard;
  draw(weights, options.hidden);
}

Tensor RecurrentCell::one_step(const Tensor& x) const {
  check(x.defined() && x.dim() == 2 && x.size(1) == options_.input, name_, ": got ",
        x.defined() ? text("shape ", x.sizes()) : std::string("an undefined tensor"),
        ", expected [batch, ", options_.input, "]");
  return unsqueeze(x, 0);
}

Tensor RecurrentCell::start(const Tensor& state, const Tensor& x) const {
  return state.defined() ? state : zeros({x.size(0), options_.hidden}, x.dtype(), x.device());
}

RNNCell::RNNCell(const RNNCellOptions& options, Nonlinearity nonlinearity)
    : RecurrentCell("RNNCell", 1, options), nonlinearity_(nonlinearity) {
  check_nonlinearity("RNNCell", nonlinearity);
}

Tensor RNNCell::operator()(const Tensor& x, const Tensor& h) {
  return scoped([&] { return run(x, h); });
}

Tensor RNNCell::run(const Tensor& x, const Tensor& h) const {
  const Tensor steps = one_step(x);
  return (nonlinearity_ == Nonlinearity::relu ? rnn_relu : rnn_tanh)(steps, start(h, x), weights,
                                                                     {})
      .h_n;
}

Tensor GRUCell::operator()(const Tensor& x, const Tensor& h) {
  return scoped([&] { return run(x, h); });
}

Tensor GRUCell::run(const Tensor& x, const Tensor& h) const {
  const Tensor steps = one_step(x);
  return gru(steps, start(h, x), weights).h_n;
}

RecurrentState LSTMCell::operator()(const Tensor& x, const RecurrentState& state) {
  return scoped([&]() -> RecurrentState {
    const Tensor steps = one_step(x);
    const RecurrentOutput out = lstm(steps, start(state.h, x), start(state.c, x), weights);
    return {out.h_n, out.c_n};
  });
}

}  // namespace binade::nn
