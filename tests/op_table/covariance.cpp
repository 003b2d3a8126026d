// Rows of cov and corrcoef. A ramp is added to x, so that no layout makes a variable constant.
#include <tests/op_table/linalg_row.h>

#include <binade/core/tensor/create.h>

#include <cmath>

namespace binade::op_table {
namespace {

double ramp(int64_t i, int64_t j) { return double((5 * i + 3 * j) % 7) / 4; }

// x [v, n] or [n] plus the ramp.
Tensor ramped(const Tensor& x) {
  if (!x.defined() || !is_floating(x.dtype()) || x.dim() < 1 || x.dim() > 2) {
    return x;
  }
  std::vector<double> values;
  const int64_t rows = x.dim() == 2 ? x.size(0) : 1;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < x.size(-1); ++j) {
      values.push_back(ramp(i, j));
    }
  }
  const NoPolicy no_policy;
  return add(x, from_values(values, x.sizes(), x.dtype()).to(x.device()));
}

// The covariances of x [v, n] with a weight per observation, times the number of each.
Array covariances(const Array& x, double correction, const std::vector<double>& number,
                  const std::vector<double>& weight) {
  const int64_t v = x.dim() == 2 ? x.sizes[0] : 1, n = x.sizes.back();
  const auto at = [&](int64_t i, int64_t j) { return x.values[size_t(i * n + j)] + ramp(i, j); };
  double total = 0, squares = 0;
  for (size_t j = 0; j < size_t(n); ++j) {
    total += number[j] * weight[j];
    squares += number[j] * weight[j] * weight[j];
  }
  std::vector<double> mean(size_t(v), 0.0);
  for (int64_t i = 0; i < v; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      mean[size_t(i)] += at(i, j) * number[size_t(j)] * weight[size_t(j)] / total;
    }
  }
  return generate({v, v}, [&](const Dims& k) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      sum += number[size_t(j)] * weight[size_t(j)] * (at(k[0], j) - mean[size_t(k[0])]) *
             (at(k[1], j) - mean[size_t(k[1])]);
    }
    return sum / (total - correction * squares / total);
  });
}

Array without_ones(Array y) {
  y.sizes = y.numel() == 1 ? Dims{} : y.sizes;
  return y;
}

std::vector<double> ones_of(const Array& x) {
  return std::vector<double>(size_t(x.sizes.back()), 1);
}

OpRow matrix_row_of(const char* name, const std::string& attributes,
                    const std::function<Tensor(const Tensors&)>& op,
                    const std::function<Array(const Arrays&)>& reference) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  row.shapes = {{{3, 6}}, {{7}}, {{1, 5}}, {{4, 9}}, {{6, 3}}};
  row.function = [op](const Tensors& x) {
    Tensors all = x;
    all[0] = ramped(x[0]);
    return Tensors{op(all)};
  };
  row.reference = [reference](const Arrays& x) { return Arrays{without_ones(reference(x))}; };
  row.accuracy = Accuracy::sums;
  row.large = {{33, 301}};
  row.timed = {{256, 1024}};
  row.errors = {{"three dimensions",
                 [op] {
                   op({ones({2, 3, 4}), ones({4})});
                 }},
                {"integers",
                 [op] {
                   op({zeros({3, 4}, DType::i64), ones({4})});
                 }},
                {"undefined operand", [op] {
                   op({Tensor(), ones({4})});
                 }}};
  return row;
}

OpRow weighted_row() {
  OpRow row = matrix_row_of(
      "cov", "weights",
      [](const Tensors& x) {
        const int64_t n = x[1].numel();
        return cov(x[0],
                   {.fweights = arange(1, n + 1).to(x[1].device()), .aweights = positive(x[1])});
      },
      [](const Arrays& x) {
        std::vector<double> number = ones_of(x[0]);
        for (size_t j = 0; j < number.size(); ++j) {
          number[j] = double(j + 1);
        }
        return covariances(x[0], 1, number, positive(x[1]).values);
      });
  row.shapes = {{{3, 6}, {6}}, {{7}, {7}}, {{1, 5}, {5}}};
  row.large = {{33, 301}, {301}};
  row.timed = {{256, 1024}, {1024}};
  const Tensor x = ones({2, 3}), one = ones({3}, DType::i64);
  const std::vector<ErrorCase> more = {
      {"a weight too many", [=] { cov(x, {.fweights = ones({4}, DType::i64)}); }},
      {"floating fweights", [=] { cov(x, {.fweights = ones({3})}); }},
      {"integer aweights", [=] { cov(x, {.aweights = one}); }},
      {"negative fweights", [=] { cov(x, {.fweights = neg(one)}); }},
      {"negative aweights", [=] { cov(x, {.aweights = full({3}, -0.5)}); }},
      {"weights of 0", [=] { cov(x, {.aweights = zeros({3})}); }}};
  row.errors.insert(row.errors.end(), more.begin(), more.end());
  return row;
}

}  // namespace

std::vector<OpRow> covariance_rows() {
  std::vector<OpRow> rows;
  for (const int64_t correction : {1, 0}) {
    rows.push_back(matrix_row_of(
        "cov", text("correction ", correction),
        [=](const Tensors& x) { return cov(x[0], {.correction = correction}); },
        [=](const Arrays& x) {
          return covariances(x[0], double(correction), ones_of(x[0]), ones_of(x[0]));
        }));
  }
  rows.push_back(weighted_row());
  rows.push_back(matrix_row_of(
      "corrcoef", "", [](const Tensors& x) { return corrcoef(x[0]); },
      [](const Arrays& x) {
        const Array c = covariances(x[0], 1, ones_of(x[0]), ones_of(x[0]));
        return generate(c.sizes, [&](const Dims& k) {
          return c.at(k) / std::sqrt(c.at({k[0], k[0]}) * c.at({k[1], k[1]}));
        });
      }));
  return rows;
}

}  // namespace binade::op_table
