// Rows of the losses.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <cmath>

namespace binade::op_table {
namespace {

struct LossCase {
  std::string attributes;
  Reduction reduction;
  double smoothing = 0;
  int64_t ignore_index = -100;
  bool weighted = false;
};

// -log softmax over dim 1 at (index, class).
double negative_log(const Array& x, Dims at, int64_t c) {
  double total = 0;
  at[1] = c;
  const double value = x.at(at);
  for (at[1] = 0; at[1] < x.sizes[1]; ++at[1]) {
    total += std::exp(x.at(at) - value);
  }
  return std::log(total);
}

Array cross_entropy_of(const Arrays& in, const LossCase& c) {
  const Array &x = in[0], &target = in[1];
  const int64_t classes = x.sizes[1];
  double weights = 0, sum = 0;
  const auto weight = [&](int64_t i) { return c.weighted ? in[2].at({i}) : 1.0; };
  const Array each = generate(target.sizes, [&](const Dims& index) {
    const int64_t t = static_cast<int64_t>(target.at(index));
    if (t == c.ignore_index) {
      return 0.0;
    }
    Dims at{index[0], 0};
    for (int i = 1; i < index.size(); ++i) {
      at.push_back(index[i]);
    }
    double loss = (1 - c.smoothing) * weight(t) * negative_log(x, at, t);
    for (int64_t i = 0; i < classes && c.smoothing > 0; ++i) {
      loss += c.smoothing / double(classes) * weight(i) * negative_log(x, at, i);
    }
    weights += weight(t);
    sum += loss;
    return loss;
  });
  if (c.reduction == Reduction::none) {
    return each;
  }
  return {{}, {c.reduction == Reduction::mean ? sum / weights : sum}};
}

std::vector<ErrorCase> cross_entropy_errors() {
  const auto with = [](const Dims& x, const Tensor& target,
                       const CrossEntropyLossOptions& options = {}) {
    return [=] { cross_entropy(ones(x), target, options); };
  };
  const Tensor good = zeros({4}, DType::i64);
  return {
      {"class out of range", with({4, 5}, from_values({0, 1, 5, 2}, {4}, DType::i64))},
      {"negative class", with({4, 5}, from_values({0, 1, -1, 2}, {4}, DType::i64))},
      {"batch sizes that differ", with({4, 5}, zeros({3}, DType::i64))},
      {"logits of one dimension", with({4}, good)},
      {"floating target", with({4, 5}, zeros({4}))},
      {"smoothing above one", with({4, 5}, good, {.label_smoothing = 1.5})},
      {"negative smoothing", with({4, 5}, good, {.label_smoothing = -0.5})},
      {"weight size that differs", with({4, 5}, good, {.weight = ones({4})})},
      {"integer logits",
       [=] {
         cross_entropy(zeros({4, 5}, DType::i64), good);
       }},
      {"undefined target", with({4, 5}, Tensor())},
      {"undefined logits", [=] { cross_entropy(Tensor(), good); }},
  };
}

OpRow cross_entropy_row(const LossCase& c) {
  constexpr int64_t kClasses = 5;
  OpRow row;
  row.name = "cross_entropy";
  row.attributes = c.attributes;
  for (const Dims& target : {Dims{6}, {1}, {2, 3}, {2, 2, 3}, {2, 1, 2, 2}}) {
    Dims x{target[0], kClasses};
    for (int i = 1; i < target.size(); ++i) {
      x.push_back(target[i]);
    }
    row.shapes.push_back(c.weighted ? Shapes{x, target, {kClasses}} : Shapes{x, target});
  }
  row.large =
      c.weighted ? Shapes{{1033, kClasses}, {1033}, {kClasses}} : Shapes{{1033, kClasses}, {1033}};
  row.timed = {{4096, 1000}, {4096}};
  if (c.weighted) {
    row.timed.push_back({1000});
  }
  row.domains = {
      {}, {.classes = kClasses}, {.low = 0.5, .high = 2, .statistic = true, .fixed = true}};
  row.function = [c](const Tensors& in) {
    CrossEntropyLossOptions options{c.reduction, c.ignore_index, c.smoothing, {}};
    if (c.weighted) {
      options.weight = in[2].detach();
    }
    return Tensors{cross_entropy(in[0], in[1], options)};
  };
  row.reference = [c](const Arrays& in) { return Arrays{cross_entropy_of(in, c)}; };
  row.accuracy = Accuracy::sums;
  row.wide_output = true;
  row.many_zeros = c.ignore_index >= 0;
  return row;
}

}  // namespace

std::vector<OpRow> loss_rows() {
  std::vector<OpRow> rows;
  for (const LossCase& c : std::vector<LossCase>{
           {"mean", Reduction::mean},
           {"sum", Reduction::sum},
           {"none", Reduction::none},
           {"mean smoothing", Reduction::mean, 0.25},
           {"mean weights", Reduction::mean, 0, -100, true},
           {"none smoothing weights", Reduction::none, 0.25, -100, true},
           {"sum ignore", Reduction::sum, 0, 2},
           {"none ignore smoothing weights", Reduction::none, 0.25, 3, true},
       }) {
    rows.push_back(cross_entropy_row(c));
  }
  rows.front().errors = cross_entropy_errors();
  return rows;
}

}  // namespace binade::op_table
