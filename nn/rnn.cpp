#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/init.h>
#include <binade/nn/rnn.h>

#include <cmath>

namespace binade::nn {

Recurrent::Recurrent(const char* name, Cell cell, const RNNOptions& options)
    : name_(name), cell_(cell), options_(options) {
  check(options.input > 0 && options.hidden > 0 && options.layers > 0, name,
        ": got input = ", options.input, ", hidden = ", options.hidden,
        ", layers = ", options.layers, ", expected positive numbers");
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
    const double bound = 1 / std::sqrt(static_cast<double>(hidden));
    for (const Tensor* t : {&w.weight_ih, &w.weight_hh, &w.bias_ih, &w.bias_hh, &w.weight_hr}) {
      if (t->defined()) {
        init::uniform(*t, -bound, bound);
      }
    }
  }
}

RNN::RNN(const RNNOptions& options, Nonlinearity nonlinearity)
    : Recurrent("RNN", nonlinearity == Nonlinearity::relu ? Cell::relu : Cell::tanh, options) {
  check(nonlinearity == Nonlinearity::tanh || nonlinearity == Nonlinearity::relu,
        "RNN: got the nonlinearity number ", static_cast<int>(nonlinearity),
        ", expected Nonlinearity::tanh or Nonlinearity::relu");
}

// Layer and direction `index`.
RecurrentOutput Recurrent::run_layer(const Tensor& x, const RecurrentState& start,
                                     int64_t index) const {
  const RecurrentWeights& w = weights[static_cast<size_t>(index)];
  const RecurrentOptions options{.batch_first = options_.batch_first,
                                 .reverse = options_.bidirectional && index % 2 == 1};
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

RecurrentResult Recurrent::run(const Tensor& x, const RecurrentState& start) {
  return scoped([&] { return run_layers(x, start); });
}

RecurrentResult Recurrent::run_layers(const Tensor& x, const RecurrentState& start) {
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
      const RecurrentOutput out = run_layer(h, start, index + direction);
      outputs.push_back(out.output);
      h_n.push_back(out.h_n);
      c_n.push_back(out.c_n);
    }
    h = directions == 1 ? outputs[0] : cat(outputs, 2);
  }
  return {h, {stack(h_n), cell_ == Cell::lstm ? stack(c_n) : Tensor()}};
}

}  // namespace binade::nn
