#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/metrics/exact_sum_internal.h>
#include <binade/train/metrics/expand_mask_internal.h>
#include <binade/train/metrics/regression.h>
#include <binade/train/report/numbers_internal.h>

#include <cmath>
#include <limits>

namespace binade::train {
namespace {

// True if the sizes are equal, or but for a last dimension of size 1 that one of them lacks.
bool same_but_a_one(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() > b.size() ? a : b;
  const Dims& shorter = a.size() > b.size() ? b : a;
  bool same = longer.size() - shorter.size() <= 1;
  for (int i = 0; same && i < longer.size(); ++i) {
    same = longer[i] == (i < shorter.size() ? shorter[i] : 1);
  }
  return same;
}

void add_count(MetricCount& count, const Tensor& values, const Tensor& counted) {
  if (counted.defined()) {
    count.add(counted);
  } else {
    count.add(values.numel());
  }
}

// x with 26 bits instead of 53 (Veltkamp): the square of the result is exact.
Tensor upper_half(const Tensor& x) {
  const Tensor scaled = mul(x, 0x1p27 + 1);
  return sub(scaled, sub(scaled, x));
}

}  // namespace

RegressionMetric::RegressionMetric(const char* default_name, const RegressionOptions& options)
    : TargetMetric(options.name.empty() ? default_name : options.name,
                   {options.output, options.target, options.mask}) {}

void RegressionMetric::add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) {
  check(is_floating(output.dtype()), name(), ": got output ", output.dtype(), " ", output.sizes(),
        ", expected floating numbers");
  check(same_but_a_one(output.sizes(), target.sizes()), name(), ": got output ", output.sizes(),
        " and target ", target.sizes(), ", expected equal sizes; reshape one of them");
  const Dims sizes = output.sizes();
  const Tensor counted = mask.defined() ? expand_mask(name(), mask, target.sizes()) : mask;
  add_values(output.to(DType::f64), reshape(target, sizes).to(DType::f64),
             counted.defined() ? reshape(counted, sizes) : counted);
}

void MeanAbsoluteError::add_values(const Tensor& output, const Tensor& target,
                                   const Tensor& counted) {
  sum_.add(abs(sub(output, target)), counted);
  add_count(count_, output, counted);
}

double MeanAbsoluteError::value() const {
  return sum_.value() / static_cast<double>(count_.value());
}

void MeanSquaredError::add_values(const Tensor& output, const Tensor& target,
                                  const Tensor& counted) {
  sum_.add(square(sub(output, target)), counted);
  add_count(count_, output, counted);
}

double MeanSquaredError::value() const {
  return sum_.value() / static_cast<double>(count_.value());
}

double MeanSquaredError::root() const { return std::sqrt(MeanSquaredError::value()); }

R2::R2(R2Average average, const RegressionOptions& options)
    : RegressionMetric("r2", options), average_(average) {}

// The sums of t and of t^2 give the variance without loss if both are exact enough. On the CPU they
// are: t^2 is added as two numbers. A device sums in f64 the distances d from a number p near the
// mean of the batch: sum t = n p + sum d, sum t^2 = n p^2 + 2 p sum d + sum d^2; p has few bits, so
// n p and both parts of n p^2 are exact, and the rest is small.
void R2::add_values(const Tensor& output, const Tensor& target, const Tensor& counted) {
  check(target.dim() >= 1, name(), ": got a target without dimensions, expected [N] or [N, ...]");
  const int64_t n = target.size(0);
  if (target.numel() == 0) {
    return;
  }
  const Tensor t = reshape(target, {n, -1}), p = reshape(output, {n, -1});
  const Tensor mask = counted.defined() ? reshape(counted, {n, -1}) : ones_like(t, DType::boolean);
  const int64_t columns = t.size(1);
  check(count_.size() == 0 || count_.size() == columns, name(), ": got ", columns,
        " columns after ", count_.size(), ", expected the same in every batch");
  residual_.add(square(sub(t, p)), mask);
  count_.add(mask);
  const Tensor used = where(mask, t, 0.0);
  if (t.device().is_cpu()) {
    sum_.add(used);
    const Tensor upper = upper_half(used), lower = sub(used, upper);
    square_.add(square(upper));
    square_.add(mul(mul(upper, lower), 2.0));
    square_.add(square(lower));
    return;
  }
  const Tensor number = sum(mask.to(DType::f64), {0});  // [columns]
  const Tensor near = upper_half(div(sum(used, {0}), clamp(number, 1.0)));
  const Tensor distance = where(mask, sub(t, near), 0.0);
  const Tensor moved = sum(distance, {0}), near2 = square(near), upper = upper_half(near2);
  for (const Tensor& part : {mul(number, near), moved}) {
    sum_.add(part);
  }
  for (const Tensor& part : {mul(number, upper), mul(number, sub(near2, upper)),
                             mul(mul(near, moved), 2.0), sum(square(distance), {0})}) {
    square_.add(part);
  }
}

struct R2::Column {
  double r2, total;  // total: the sum of squared distances from the mean
};

std::vector<R2::Column> R2::columns() const {
  std::vector<Column> all;
  for (int64_t c = 0; c < count_.size(); ++c) {
    const auto n = static_cast<double>(count_.value(c));
    ExactSum scaled;  // n sum t^2 - (sum t)^2
    const std::vector<double> sums = sum_.parts(c);
    for (const double part : square_.parts(c)) {
      scaled.add_product(n, part);
    }
    for (const double a : sums) {
      for (const double b : sums) {
        scaled.add_product(-a, b);
      }
    }
    const double total = scaled.value() / n;
    all.push_back({n < 2 ? kNaN : 1 - residual_.value(c) / total, total});
  }
  return all;
}

std::vector<double> R2::per_column() const {
  std::vector<double> all;
  for (const Column& column : columns()) {
    all.push_back(column.r2);
  }
  return all;
}

double R2::value() const {
  double sum = 0, weights = 0;
  for (const Column& column : columns()) {
    const double weight = average_ == R2Average::uniform ? 1 : column.total;
    sum += weight * column.r2;
    weights += weight;
  }
  return sum / weights;
}

}  // namespace binade::train
