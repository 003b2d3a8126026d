// Rows of the ops that draw: their results follow from the seed, by the formulas of
// core/ops/random.h.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>
#include <binade/kernels/base/philox.h>

#include <cmath>

namespace binade::op_table {
namespace {

constexpr uint64_t kDrawSeed = 11;

uint64_t number(int64_t i) {
  const auto at = static_cast<uint64_t>(i);
  return philox::generate(kDrawSeed, at / 4)[at % 4];
}

// Uniform in (0, 1): numbers 2 i and 2 i + 1, of which 48 bits count.
double wide_uniform(int64_t i) {
  const uint64_t bits = number(2 * i) << 32 | number(2 * i + 1);
  return (static_cast<double>(bits >> 16) + 0.5) * 0x1p-48;
}

OpRow bernoulli_row() {
  OpRow row;
  row.name = "bernoulli";
  row.shapes = {{{5, 7}}, {{}}, {{0, 3}}, {{2, 3, 2, 3}}, {{2, 1, 3, 2, 2}}};
  row.domains = {{.low = 0, .high = 1}};
  row.function = [](const Tensors& x) {
    manual_seed(kDrawSeed);
    return Tensors{bernoulli(x[0])};
  };
  row.reference = [](const Arrays& x) {
    Array y = x[0];
    for (int64_t i = 0; i < y.numel(); ++i) {
      double& value = y.values[static_cast<size_t>(i)];
      value = static_cast<double>(number(i)) * 0x1p-32 < value ? 1 : 0;
    }
    return Arrays{y};
  };
  row.differentiable = false;
  row.many_zeros = true;
  row.large = {{257, 301}};
  row.timed = {{1024, 1024}};
  row.errors = {{"undefined operand", [] { bernoulli(Tensor()); }},
                {"integer operand", [] { bernoulli(ones({3}, DType::i64)); }},
                {"above one", [] { bernoulli(full({3}, 1.25)).item(); }},
                {"negative", [] { bernoulli(full({3}, -0.5)).item(); }}};
  return row;
}

// Draws of one row: with replacement the class where the running sum exceeds u times the sum.
std::vector<double> searched(const std::vector<double>& p, int64_t samples, int64_t first) {
  double sum = 0;
  for (double weight : p) {
    sum += weight;
  }
  std::vector<double> y;
  for (int64_t i = 0; i < samples; ++i) {
    const double goal = wide_uniform(first + i) * sum;
    double running = p[0];
    size_t k = 0;
    while (running <= goal) {
      running += p[++k];
    }
    y.push_back(static_cast<double>(k));
  }
  return y;
}

// Without replacement the classes in the order of -log(u) / p.
std::vector<double> raced(const std::vector<double>& p, int64_t samples, int64_t first) {
  std::vector<double> order(p.size()), time(p.size());
  for (size_t k = 0; k < p.size(); ++k) {
    order[k] = static_cast<double>(k);
    time[k] = -std::log(wide_uniform(first + static_cast<int64_t>(k))) / p[k];
  }
  std::sort(order.begin(), order.end(), [&](double a, double b) {
    return time[static_cast<size_t>(a)] < time[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(samples));
  return order;
}

OpRow multinomial_row(int64_t samples, bool replacement, const std::vector<Shapes>& shapes) {
  OpRow row;
  row.name = "multinomial";
  row.attributes = text(samples, replacement ? " with" : " without", " replacement");
  row.shapes = shapes;
  row.domains = {{.low = 0.125, .high = 2}};
  row.function = [=](const Tensors& x) {
    manual_seed(kDrawSeed);
    return Tensors{multinomial(x[0], samples, replacement)};
  };
  row.reference = [=](const Arrays& x) {
    const int64_t classes = x[0].sizes.back(), rows = x[0].numel() / classes;
    Array y{x[0].dim() == 2 ? Dims{rows, samples} : Dims{samples}, {}};
    for (int64_t r = 0; r < rows; ++r) {
      const auto from = x[0].values.begin() + r * classes;
      const std::vector<double> p(from, from + classes);
      const std::vector<double> drawn =
          replacement ? searched(p, samples, r * samples) : raced(p, samples, r * classes);
      y.values.insert(y.values.end(), drawn.begin(), drawn.end());
    }
    return Arrays{y};
  };
  row.differentiable = false;
  row.many_zeros = true;
  row.output_dtype = DType::i64;
  row.large = {{64, 1200}};
  row.errors = {{"undefined operand", [] { multinomial(Tensor(), 1); }},
                {"integer operand", [] { multinomial(ones({3}, DType::i64), 1); }},
                {"scalar", [] { multinomial(ones({}), 1); }},
                {"three dims",
                 [] {
                   multinomial(ones({2, 2, 2}), 1);
                 }},
                {"no class",
                 [] {
                   multinomial(ones({2, 0}), 0);
                 }},
                {"more samples than classes", [] { multinomial(ones({3}), 4); }},
                {"negative samples", [] { multinomial(ones({3}), -1, true); }},
                {"negative weight",
                 [] {
                   multinomial(from_values({1, -1}, {2}), 1, true);
                 }},
                {"infinite weight",
                 [] {
                   multinomial(from_values({1, INFINITY}, {2}), 1, true);
                 }},
                {"NaN weight",
                 [] {
                   multinomial(from_values({NAN, 1}, {2}), 1, true);
                 }},
                {"all 0",
                 [] {
                   multinomial(from_values({1, 1, 0, 0}, {2, 2}), 1, true);
                 }},
                {"too few positive weights", [] {
                   multinomial(from_values({0, 1, 0}, {3}), 2);
                 }}};
  return row;
}

}  // namespace

std::vector<OpRow> random_rows() {
  return {bernoulli_row(), multinomial_row(9, true, {{{5}}, {{3, 7}}, {{1, 1}}, {{0, 4}}}),
          multinomial_row(4, false, {{{5}}, {{3, 7}}, {{2, 4}}, {{0, 4}}})};
}

}  // namespace binade::op_table
