// Covariances: the product of the deviations with their transpose.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/covariance.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/tensor/create.h>

#include <algorithm>

namespace binade {
namespace {

constexpr Op kVar{"var", OpClass::reduction, true};  // cov has its dtypes under a policy

void check_weights(const char* op, const char* what, const Tensor& w, const Tensor& rows) {
  check(w.device() == rows.device() && w.sizes() == Dims{rows.size(1)}, op, ": got ", what,
        " of shape ", w.sizes(), " on ", w.device(), ", expected [", rows.size(1), "] on ",
        rows.device(), ", a weight per observation");
  const double least = w.numel() == 0 ? 0 : min(w.detach()).item();
  check(least >= 0, op, ": got ", what, " with the element ", least, ", expected at least 0");
}

// The product of both weights in the dtype of the rows; undefined if there are none.
Tensor weights_of(const char* op, const CovOptions& options, const Tensor& rows) {
  Tensor w;
  if (options.fweights.defined()) {
    const DType dtype = options.fweights.dtype();
    check(!is_floating(dtype) && dtype != DType::boolean, op, ": got fweights of dtype ", dtype,
          ", expected integers; aweights are floating");
    check_weights(op, "fweights", options.fweights, rows);
    w = cast(options.fweights, rows.dtype());
  }
  if (options.aweights.defined()) {
    check_floating(op, options.aweights);
    check_weights(op, "aweights", options.aweights, rows);
    const Tensor a = cast(options.aweights, rows.dtype());
    w = w.defined() ? mul(w, a) : a;
  }
  return w;
}

// The covariances [v, v] of rows [v, n] of a compute dtype.
Tensor matrix(const char* op, const Tensor& rows, const CovOptions& options) {
  const Tensor w = weights_of(op, options, rows);
  if (!w.defined()) {
    const Tensor d = sub(rows, mean(rows, {1}, true));
    const auto freedom = static_cast<double>(rows.size(1) - options.correction);
    return div(matmul(d, transpose(d, 0, 1)), std::max(freedom, 0.0));
  }
  const Tensor total = sum(w);
  check(total.item() != 0, op, ": got weights with the sum 0, expected one above 0");
  const auto correction = static_cast<double>(options.correction);
  const Tensor taken =
      options.aweights.defined()
          ? mul(div(sum(mul(w, cast(options.aweights, w.dtype()))), total), correction)
          : full({}, correction, w.dtype(), w.device());
  const Tensor d = sub(rows, div(sum(mul(rows, w), {1}, true), total));
  return div(matmul(d, transpose(mul(d, w), 0, 1)), clamp(sub(total, taken), 0));
}

// x as rows in the compute dtype.
Tensor rows_of(const char* op, const Tensor& x) {
  check(x.dim() <= 2, op, ": got shape ", x.sizes(),
        ", expected [variables, observations] or [observations]; use flatten()");
  const Tensor rows = x.dim() == 2 ? x : reshape(x, {1, x.numel()});
  return cast(rows, compute_dtype(x.dtype()));
}

// One variable has a scalar.
Tensor result_of(const Tensor& y, const Tensor& x) {
  return cast(y.size(0) == 1 ? reshape(y, {}) : y, x.dtype());
}

}  // namespace

Tensor cov(const Tensor& x_, const CovOptions& options) {
  check_floating("cov", x_);
  auto [x] = kVar.enter(x_);
  const PrecisionScope no_policy(Precision::full());
  return result_of(matrix("cov", rows_of("cov", x), options), x);
}

Tensor corrcoef(const Tensor& x_) {
  check_floating("corrcoef", x_);
  auto [x] = kVar.enter(x_);
  const PrecisionScope no_policy(Precision::full());
  const Tensor c = matrix("corrcoef", rows_of("corrcoef", x), {});
  const Tensor s = sqrt(diagonal(c));
  return result_of(clamp(div(div(c, unsqueeze(s, 1)), unsqueeze(s, 0)), -1, 1), x);
}

}  // namespace binade
