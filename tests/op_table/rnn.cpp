// Rows of the recurrent layers.
#include <binade/core/ops/rnn.h>
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <cmath>

namespace binade::op_table {
namespace {

enum class Cell { tanh, relu, gru, lstm };

struct RnnVariant {
  Cell cell;
  bool bias, batch_first, reverse;
  bool projected = false;  // lstm: the last input is weight_hr
  bool ragged = false;     // sequences end early

  size_t states() const { return cell == Cell::lstm ? 2 : 1; }
  int64_t gates() const { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
  std::string name() const {
    return cell == Cell::tanh   ? "rnn_tanh"
           : cell == Cell::relu ? "rnn_relu"
           : cell == Cell::gru  ? "gru"
                                : "lstm";
  }
};

// Lengths in no order, 1 to all steps.
int64_t length_of(const RnnVariant& v, int64_t steps, int64_t row) {
  return v.ragged ? 1 + (steps + 2 * row + 1) % std::max<int64_t>(steps, 1) : steps;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// One sequence of one batch row at a time. Inputs: x, h0, (c0,) weight_ih, weight_hh, biases,
// weight_hr.
class Reference {
 public:
  Reference(const RnnVariant& v, const Arrays& in)
      : v_(v),
        in_(in),
        steps_(in[0].sizes[v.batch_first]),
        batch_(in[0].sizes[!v.batch_first]),
        state_(in[1].sizes[1]),
        hidden_(in[v.states()].sizes[1]) {}

  Arrays run() {
    Dims sizes = in_[0].sizes;
    sizes[2] = state_;
    Array output = generate(sizes, [](const Dims&) { return 0.0; }), h = in_[1],
          c = in_[v_.states()];
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t length = length_of(v_, steps_, b);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t t = v_.reverse ? length - 1 - i : i;
        step(b, t, h, c);
        for (int64_t j = 0; j < state_; ++j) {
          const int64_t row = v_.batch_first ? b * steps_ + t : t * batch_ + b;
          output.values[size_t(row * state_ + j)] = h.values[size_t(b * state_ + j)];
        }
      }
    }
    return v_.cell == Cell::lstm ? Arrays{output, h, c} : Arrays{output, h};
  }

 private:
  // Row `row` of weight number `which` (0: of x, 1: of h) times the vector, plus its bias.
  double product(int which, int64_t row, const std::vector<double>& vector) const {
    const size_t first = 1 + v_.states();
    double sum = v_.bias ? in_[first + 2 + size_t(which)].at({row}) : 0;
    for (size_t i = 0; i < vector.size(); ++i) {
      sum += in_[first + size_t(which)].at({row, int64_t(i)}) * vector[i];
    }
    return sum;
  }

  void step(int64_t b, int64_t t, Array& h, Array& c) const {
    std::vector<double> x, before;
    for (int64_t i = 0; i < in_[0].sizes[2]; ++i) {
      x.push_back(v_.batch_first ? in_[0].at({b, t, i}) : in_[0].at({t, b, i}));
    }
    for (int64_t j = 0; j < state_; ++j) {
      before.push_back(h.at({b, j}));
    }
    std::vector<double> inner(size_t(hidden_), 0.0);
    for (int64_t j = 0; j < hidden_; ++j) {
      const auto a = [&](int64_t gate) { return product(0, gate * hidden_ + j, x); };
      const auto u = [&](int64_t gate) { return product(1, gate * hidden_ + j, before); };
      double& out = inner[size_t(j)];
      if (v_.cell == Cell::tanh) {
        out = std::tanh(a(0) + u(0));
      } else if (v_.cell == Cell::relu) {
        out = std::max(a(0) + u(0), 0.0);
      } else if (v_.cell == Cell::gru) {
        const double r = sigmoid_of(a(0) + u(0)), z = sigmoid_of(a(1) + u(1));
        out = (1 - z) * std::tanh(a(2) + r * u(2)) + z * before[size_t(j)];
      } else {
        double& state = c.values[size_t(b * hidden_ + j)];
        state = sigmoid_of(a(1) + u(1)) * state + sigmoid_of(a(0) + u(0)) * std::tanh(a(2) + u(2));
        out = sigmoid_of(a(3) + u(3)) * std::tanh(state);
      }
    }
    for (int64_t j = 0; j < state_; ++j) {
      double& out = h.values[size_t(b * state_ + j)];
      out = v_.projected ? 0 : inner[size_t(j)];
      for (int64_t k = 0; v_.projected && k < hidden_; ++k) {
        out += in_.back().at({j, k}) * inner[size_t(k)];
      }
    }
  }

  const RnnVariant& v_;
  const Arrays& in_;
  int64_t steps_, batch_, state_, hidden_;
};

Tensors run(const RnnVariant& v, const Tensors& in) {
  const size_t first = 1 + v.states();
  RecurrentWeights weights{in[first], in[first + 1]};
  if (v.bias) {
    weights.bias_ih = in[first + 2];
    weights.bias_hh = in[first + 3];
  }
  if (v.projected) {
    weights.weight_hr = in.back();
  }
  RecurrentOptions options{.batch_first = v.batch_first, .reverse = v.reverse};
  if (v.ragged && in[0].dim() == 3) {
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < in[0].size(v.batch_first ? 0 : 1); ++b) {
      lengths.push_back(length_of(v, in[0].size(v.batch_first ? 1 : 0), b));
    }
    options.lengths = Tensor::from(lengths);
  }
  const RecurrentOutput y = v.cell == Cell::tanh   ? rnn_tanh(in[0], in[1], weights, options)
                            : v.cell == Cell::relu ? rnn_relu(in[0], in[1], weights, options)
                            : v.cell == Cell::gru  ? gru(in[0], in[1], weights, options)
                                                   : lstm(in[0], in[1], in[2], weights, options);
  return y.c_n.defined() ? Tensors{y.output, y.h_n, y.c_n} : Tensors{y.output, y.h_n};
}

Shapes shapes_of(const RnnVariant& v, int64_t steps, int64_t batch, int64_t input, int64_t hidden) {
  const int64_t rows = v.gates() * hidden, state = v.projected ? hidden / 2 + 1 : hidden;
  Shapes shapes{v.batch_first ? Dims{batch, steps, input} : Dims{steps, batch, input},
                {batch, state}};
  if (v.cell == Cell::lstm) {
    shapes.push_back({batch, hidden});
  }
  shapes.push_back({rows, input});
  shapes.push_back({rows, state});
  if (v.bias) {
    shapes.push_back({rows});
    shapes.push_back({rows});
  }
  if (v.projected) {
    shapes.push_back({state, hidden});
  }
  return shapes;
}

std::vector<ErrorCase> errors_of(const RnnVariant& v) {
  const auto with = [v](std::function<void(Tensors&)> change) {
    return [v, change] {
      Tensors in;
      for (const Dims& sizes : shapes_of(v, 3, 2, 4, 5)) {
        in.push_back(ones(sizes));
      }
      change(in);
      run(v, in);
    };
  };
  const size_t w = 1 + v.states();
  const int64_t rows = v.gates() * 5;
  return {
      {"no steps", with([](Tensors& in) {
         in[0] = ones({0, 2, 4});
       })},
      {"input of two dimensions", with([](Tensors& in) {
         in[0] = ones({3, 4});
       })},
      {"start of another batch", with([](Tensors& in) {
         in[1] = ones({3, 5});
       })},
      {"input size that differs", with([=](Tensors& in) {
         in[w] = ones({rows, 3});
       })},
      {"hidden sizes that differ", with([=](Tensors& in) {
         in[w + 1] = ones({rows, 6});
       })},
      {"bias size that differs", with([=](Tensors& in) { in[w + 2] = ones({3}); })},
      {"one bias", with([=](Tensors& in) { in[w + 3] = Tensor(); })},
      {"dtypes that differ", with([=](Tensors& in) {
         in[w] = ones({rows, 4}, DType::f64);
       })},
      {"integer input", with([](Tensors& in) {
         in[0] = ones({3, 2, 4}, DType::i64);
       })},
      {"undefined start", with([](Tensors& in) { in[1] = Tensor(); })},
      {"undefined weight", with([=](Tensors& in) { in[w] = Tensor(); })},
  };
}

std::vector<ErrorCase> projection_errors(const RnnVariant& v) {
  const auto with = [v](const Tensor& weight) {
    return [v, weight] {
      Tensors in;
      for (const Dims& sizes : shapes_of(v, 3, 2, 4, 5)) {
        in.push_back(ones(sizes));
      }
      in.back() = weight;
      run(v, in);
    };
  };
  return {
      {"projection of another size", with(ones({3, 4}))},
      {"projection to another size", with(ones({4, 5}))},
      {"projection of another dtype", with(ones({3, 5}, DType::f64))},
      {"projection in one dimension", with(ones({5}))},
  };
}

std::vector<ErrorCase> length_errors() {
  const auto with = [](const Tensor& lengths) {
    return [lengths] {
      rnn_tanh(ones({3, 2, 4}), ones({2, 5}), {ones({5, 4}), ones({5, 5})}, {.lengths = lengths});
    };
  };
  return {
      {"lengths of another batch", with(Tensor::from<int64_t>({3, 1, 2}))},
      {"lengths of another dtype", with(Tensor::from<int32_t>({3, 1}))},
      {"length of no steps", with(Tensor::from<int64_t>({3, 0}))},
      {"length above the steps", with(Tensor::from<int64_t>({4, 1}))},
      {"lengths in two dimensions", with(Tensor::from<int64_t>({3, 1}, {2, 1}))},
  };
}

OpRow rnn_row(const RnnVariant& v) {
  OpRow row;
  row.name = v.name();
  row.attributes = text(v.bias ? "bias" : "no bias", v.batch_first ? " batch first" : "",
                        v.reverse ? " reverse" : "", v.projected ? " projected" : "",
                        v.ragged ? " lengths" : "");
  row.shapes = {shapes_of(v, 3, 2, 1, 2), shapes_of(v, 1, 1, 2, 1), shapes_of(v, 2, 0, 1, 2)};
  row.domains = {{.low = -0.5, .high = 0.5}};  // far from saturation, where f16 states are coarse
  row.function = [v](const Tensors& in) { return run(v, in); };
  row.reference = [v](const Arrays& in) { return Reference(v, in).run(); };
  row.accuracy = Accuracy::sums;
  row.large = shapes_of(v, 3, 33, 40, 70);
  row.timed = shapes_of(v, 32, 32, 128, 128);
  row.flops = [v](const Shapes& s) {
    const size_t w = 1 + v.states();
    const auto rows = double(s[0][0] * s[0][1]);  // steps and batch
    const double gates = double(element_count(s[w]) + element_count(s[w + 1]));
    return 2 * rows * (gates + (v.projected ? double(element_count(s.back())) : 0));
  };
  if (v.bias) {
    row.errors = errors_of(v);
  }
  return row;
}

}  // namespace

std::vector<OpRow> rnn_rows() {
  std::vector<OpRow> rows;
  for (const Cell cell : {Cell::tanh, Cell::relu, Cell::gru, Cell::lstm}) {
    rows.push_back(rnn_row({cell, true, false, false}));
    rows.push_back(rnn_row({cell, false, true, true}));
  }
  for (const bool reverse : {false, true}) {
    const RnnVariant v{Cell::lstm, !reverse, reverse, reverse, true};
    rows.push_back(rnn_row(v));
    if (v.bias) {
      rows.back().errors = projection_errors(v);
    }
  }
  for (const Cell cell : {Cell::tanh, Cell::relu, Cell::gru, Cell::lstm}) {
    for (const bool reverse : {false, true}) {
      rows.push_back(rnn_row({.cell = cell,
                              .bias = true,
                              .batch_first = reverse,
                              .reverse = reverse,
                              .projected = cell == Cell::lstm && reverse,
                              .ragged = true}));
      rows.back().errors =
          cell == Cell::tanh && !reverse ? length_errors() : std::vector<ErrorCase>{};
    }
  }
  return rows;
}

}  // namespace binade::op_table
