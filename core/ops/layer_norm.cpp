// Layer norm and RMS norm: one pair of kernels over rows, the second without a mean. Group norm,
// and instance norm, which is group norm with one channel per group.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/cast_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/recorded_norm_internal.h>
#include <binade/core/ops/layer_norm.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/norm/group_norm.h>
#include <binade/kernels/norm/layer_norm.h>

#include <limits>

namespace binade {
namespace {

using detail::compute_vector;

// The product of normalized_shape, once x and the parameters are known to have it.
int64_t checked_cols(const char* op, const Tensor& x, const Dims& normalized_shape,
                     const Tensor& weight, const Tensor& bias) {
  check_floating(op, x);
  const int count = normalized_shape.size(), before = x.dim() - count;
  bool trailing = count >= 1 && before >= 0;
  int64_t cols = 1;
  for (int i = 0; trailing && i < count; ++i) {
    trailing = normalized_shape[i] == x.size(before + i);
    cols *= normalized_shape[i];
  }
  check(trailing, op, ": got x of shape ", x.sizes(), " and normalized_shape ", normalized_shape,
        ", expected the last sizes of x");
  check_vector(op, "a weight", weight, x, normalized_shape);
  check_vector(op, "a bias", bias, x, normalized_shape);
  return cols;
}

Tensor flat(const Tensor& t) { return t.defined() ? make_view(t, {t.numel()}, {1}) : t; }

// Rows of `cols` elements; none where a row has no elements.
int64_t row_count(const Tensor& t, int64_t cols) { return cols == 0 ? 0 : t.numel() / cols; }

// A row-major tensor as a matrix, without recording.
Tensor rows_of(const Tensor& t, int64_t cols) {
  return t.defined() ? make_view(t, {row_count(t, cols), cols}, {cols, 1}) : t;
}

// The values that the forward saves. mean is undefined for RMS norm.
struct SavedRows {
  const Tensor &x, &w, &mean, &rstd;
  int64_t cols;
};

// Computes those of dx, dw and db that are defined.
void rows_backward(const SavedRows& saved, const Tensor& dy_, const Tensor& dx, const Tensor& dw,
                   const Tensor& db) {
  const int64_t cols = saved.cols;
  const Tensor dy = contiguous(dy_);
  kernels::layer_norm_backward({.x = rows_of(saved.x, cols),
                                .dy = rows_of(dy, cols),
                                .weight = flat(saved.w),
                                .mean = saved.mean,
                                .rstd = saved.rstd,
                                .dx = rows_of(dx, cols),
                                .dweight = flat(dw),
                                .dbias = flat(db)});
}

detail::NormedView of_rows(const Tensor& x, int64_t cols, double eps) {
  return {.view = {row_count(x, cols), cols}, .dims = {1}, .weight = {1, cols}, .eps = eps};
}

detail::NormedView of_groups(const Tensor& x, int64_t groups, double eps) {
  const int64_t planes = x.size(0) * x.size(1), channels = x.size(1) / groups;
  return {.view = {x.size(0), groups, channels, planes == 0 ? 0 : x.numel() / planes},
          .dims = {2, 3},
          .weight = {1, groups, channels, 1},
          .eps = eps};
}

}  // namespace

Tensor layer_norm(const Tensor& x_, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  static constexpr Op kOp{"layer_norm", OpClass::norm, true};
  auto [given] = kOp.enter(x_);
  check_eps(kOp.name, eps);
  const int64_t cols = checked_cols(kOp.name, given, normalized_shape, weight, bias);
  const DType compute = compute_dtype(given.dtype());
  const Tensor x = contiguous(given), w = compute_vector(weight, compute),
               b = compute_vector(bias, compute);
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  const Tensor mean = empty({row_count(x, cols)}, compute, x.device()),
               rstd = empty({row_count(x, cols)}, compute, x.device());
  kernels::layer_norm_forward({.x = rows_of(x, cols),
                               .weight = flat(w),
                               .bias = flat(b),
                               .y = rows_of(y, cols),
                               .mean = mean,
                               .rstd = rstd,
                               .eps = eps});
  return kOp.record({x, w, b}, y, save(x, w, mean, rstd),
                    [cols, eps](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w,
                                const Tensor& mean, const Tensor& rstd) -> Grads {
                      if (grad_enabled()) {
                        return detail::recorded_norm_gradients(x, w, dy, needs,
                                                               of_rows(x, cols, eps));
                      }
                      // With g = dy w: dx = rstd (g - mean(g) - xhat mean(g xhat))
                      Tensor dx = needs.out(0), dw = needs.out(1), db = needs.out(2);
                      rows_backward({x, w, mean, rstd, cols}, dy, dx, dw, db);
                      return {dx, dw, db};
                    });
}

Tensor rms_norm(const Tensor& x_, const Dims& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  static constexpr Op kOp{"rms_norm", OpClass::norm, true};
  auto [given] = kOp.enter(x_);
  check_eps(kOp.name, eps.value_or(0));
  const int64_t cols = checked_cols(kOp.name, given, normalized_shape, weight, Tensor());
  const DType compute = compute_dtype(given.dtype());
  const Tensor x = contiguous(given), w = compute_vector(weight, compute);
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  const Tensor rstd = empty({row_count(x, cols)}, compute, x.device());
  const double machine = compute == DType::f64 ? std::numeric_limits<double>::epsilon()
                                               : std::numeric_limits<float>::epsilon();
  kernels::layer_norm_forward({.x = rows_of(x, cols),
                               .weight = flat(w),
                               .bias = kNoView,
                               .y = rows_of(y, cols),
                               .mean = kNoView,
                               .rstd = rstd,
                               .eps = eps.value_or(machine)});
  return kOp.record(
      {x, w}, y, save(x, w, rstd),
      [cols, eps = eps.value_or(machine)](const Tensor& dy, Needs needs, const Tensor& x,
                                          const Tensor& w, const Tensor& rstd) -> Grads {
        if (grad_enabled()) {
          detail::NormedView rows = of_rows(x, cols, eps);
          rows.centred = false;
          return detail::recorded_norm_gradients(x, w, dy, needs, rows);
        }
        // With g = dy w and u = x rstd: dx = rstd (g - u mean(g u))
        Tensor dx = needs.out(0), dw = needs.out(1);
        rows_backward({x, w, Tensor(), rstd, cols}, dy, dx, dw, Tensor());
        return {dx, dw};
      });
}

namespace {

void check_image(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x.defined() && x.dim() >= 2 && is_floating(x.dtype()), op, ": got ",
        x.defined() ? text("x of shape ", x.sizes(), " and dtype ", x.dtype())
                    : "an undefined tensor",
        ", expected [N, C, ...] of a floating dtype");
  check_vector(op, "a weight", weight, x, {x.size(1)});
  check_vector(op, "a bias", bias, x, {x.size(1)});
}

// y = (x - mean) rstd w + b with the mean and rstd of each group
Tensor normalize_groups(const Op& op, const Tensor& x, int64_t groups, const Tensor& weight,
                        const Tensor& bias, double eps) {
  check_eps(op.name, eps);
  const DType compute = compute_dtype(x.dtype());
  const Tensor w = compute_vector(weight, compute), b = compute_vector(bias, compute);
  Tensor y = empty_like(x);
  const Tensor mean = empty({x.size(0), groups}, compute, x.device()),
               rstd = empty({x.size(0), groups}, compute, x.device());
  kernels::group_norm_forward(
      {.x = x, .weight = w, .bias = b, .y = y, .mean = mean, .rstd = rstd, .eps = eps});
  return op.record({x, w, b}, y, save(x, w, mean, rstd),
                   [groups, eps](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w,
                                 const Tensor& mean, const Tensor& rstd) -> Grads {
                     if (grad_enabled()) {
                       return detail::recorded_norm_gradients(x, w, dy, needs,
                                                              of_groups(x, groups, eps));
                     }
                     // With g = dy w: dx = rstd (g - mean(g) - xhat mean(g xhat))
                     Tensor dx = needs.out_like(0, x), dw = needs.out(1), db = needs.out(2);
                     kernels::group_norm_backward({.x = x,
                                                   .dy = dy,
                                                   .weight = w,
                                                   .mean = mean,
                                                   .rstd = rstd,
                                                   .dx = dx,
                                                   .dweight = dw,
                                                   .dbias = db});
                     return {dx, dw, db};
                   });
}

}  // namespace

Tensor group_norm(const Tensor& x_, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps) {
  static constexpr Op kOp{"group_norm", OpClass::norm, true};
  auto [x] = kOp.enter(x_);
  check_image(kOp.name, x, weight, bias);
  check(num_groups >= 1 && x.size(1) >= 1 && x.size(1) % num_groups == 0, "group_norm: got ",
        num_groups, " groups for x of shape ", x.sizes(), ", expected groups that divide C");
  for (int d = 2; d < x.dim(); ++d) {
    check(x.size(d) > 0, "group_norm: got x of shape ", x.sizes(),
          ", expected [N, C, ...] with at least one value per channel");
  }
  return normalize_groups(kOp, x, num_groups, weight, bias, eps);
}

Tensor instance_norm(const Tensor& x_, const Tensor& weight, const Tensor& bias, double eps) {
  static constexpr Op kOp{"instance_norm", OpClass::norm, true};
  auto [x] = kOp.enter(x_);
  check_image(kOp.name, x, weight, bias);
  const int64_t planes = x.size(0) * x.size(1);
  check(x.dim() >= 3 && x.size(1) >= 1 && (planes == 0 || x.numel() > planes),
        "instance_norm: got x of shape ", x.sizes(),
        ", expected [N, C, L, ...] with more than one value per channel");
  return normalize_groups(kOp, x, x.size(1), weight, bias, eps);
}

}  // namespace binade
