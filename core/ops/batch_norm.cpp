// Batch normalisation. Statistics, weight and bias are f32 for every dtype of x (f64 for f64).
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/batch_norm_ranks_internal.h>
#include <binade/core/ops/detail/cast_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/recorded_norm_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/rank_group.h>
#include <binade/kernels/norm/batch_norm.h>

namespace binade {
namespace {

using detail::compute_vector;

constexpr Op kBatchNorm{"batch_norm", OpClass::norm, true};

// relu(y + residual), as separate ops.
Tensor finish(Tensor y, const Tensor& residual, bool is_relu) {
  y = residual.defined() ? y + residual : y;
  return is_relu ? relu(y) : y;
}

detail::NormedView of_channels(const Tensor& x, double eps) {
  const int64_t planes = x.size(0) * x.size(1);
  return {.view = {x.size(0), x.size(1), planes == 0 ? 0 : x.numel() / planes},
          .dims = {0, 2},
          .weight = {1, x.size(1), 1},
          .eps = eps};
}

struct SavedRunning {
  const Tensor &x, &w, &mean, &var;
  double eps;
};
// The gradients of normalize_by_running() as ops.
Grads recorded_inference_gradients(const Tensor& dy_, Needs needs, const SavedRunning& saved) {
  const auto& [x, w, mean, var, eps] = saved;
  Dims sizes = Dims::of(x.dim(), 1);
  sizes[1] = x.size(1);
  const DType compute = mean.dtype();
  const Tensor dy = cast(dy_, compute);
  const Tensor rstd = reshape(rsqrt(add(var, eps)), sizes);
  Tensor dx, dw, db;
  if (needs[0]) {
    dx = mul(dy, w.defined() ? mul(rstd, reshape(w, sizes)) : rstd);
    dx = cast(dx, x.dtype());
  }
  if (needs[1]) {
    const Tensor d = sub(cast(x, compute), reshape(mean, sizes));
    dw = reshape(sum_to(mul(dy, mul(d, rstd)), sizes), w.sizes());
  }
  if (needs[2]) {
    db = reshape(sum_to(dy, sizes), needs.sizes(2));
  }
  return {dx, dw, db};
}

// y = relu((x - mean) rstd w + b + residual) with the batch's mean and rstd
Tensor normalize_by_batch(const BatchNormInputs& in, const Tensor& residual) {
  const auto& [op, x, w, b, running_mean, running_var, options] = in;
  const DType compute = compute_dtype(x.dtype());
  if (options.group && options.group->size() > 1) {
    return finish(batch_norm_of_ranks(in), residual, options.relu);
  }
  check(x.numel() != x.size(1), "batch_norm: got x of shape ", x.sizes(),
        ", expected more than one value per channel in training; leave out a last batch of one "
        "sample (LoaderOptions::drop_last), or call eval()");
  Tensor y = empty_like(x);
  Tensor mean = empty({x.size(1)}, compute, x.device()),
         rstd = empty({x.size(1)}, compute, x.device());
  const bool tracked = running_mean.defined() && x.numel() > 0 && !detail::thread_state.recomputing;
  const Tensor variance = tracked ? empty_like(mean) : Tensor();
  kernels::batch_norm_forward({.x = x,
                               .weight = w,
                               .bias = b,
                               .y = y,
                               .mean = mean,
                               .rstd = rstd,
                               .eps = options.eps,
                               .residual = residual,
                               .relu = options.relu,
                               .variance = variance});
  if (tracked) {
    update_running_statistics(in, mean, variance, x.numel() / x.size(1));
  }
  return op.record(
      {x, w, b, residual}, y, save(x, w, mean, rstd, when(options.relu, y)),
      [relu = options.relu, eps = options.eps](const Tensor& dy, Needs needs, const Tensor& x,
                                               const Tensor& w, const Tensor& mean,
                                               const Tensor& rstd, const Tensor& y) -> Grads {
        if (grad_enabled()) {
          const Tensor dz = relu ? masked_fill(dy, le(y, 0), 0) : dy;
          Grads gradients = detail::recorded_norm_gradients(x, w, dz, needs, of_channels(x, eps));
          gradients[3] = dz;
          return gradients;
        }
        // With dz = dy where y > 0: dx = w rstd (dz - mean(dz) - xhat mean(dz xhat)),
        // dw = sum(dz xhat), db = sum(dz), dresidual = dz
        const bool alike = dy.strides() == x.strides();
        Tensor dz = !relu ? Tensor() : alike ? needs.out_over(3, dy) : needs.out_like(3, x);
        Tensor dx = alike && !needs[3] ? needs.out_over(0, dy) : needs.out_like(0, x);
        Tensor dw = needs.out(1), db = needs.out(2);
        kernels::batch_norm_backward({.x = x,
                                      .dy = dy,
                                      .weight = w,
                                      .mean = mean,
                                      .rstd = rstd,
                                      .dx = dx,
                                      .dweight = dw,
                                      .dbias = db,
                                      .y = y,
                                      .dresidual = dz});
        return {dx, dw, db, relu ? dz : dy};
      });
}

Tensor normalize_by_running(const BatchNormInputs& in, const Tensor& residual) {
  const auto& [op, x, w, b, running_mean, running_var, options] = in;
  const double eps = options.eps;
  const bool recorded = grad_enabled() && (x.requires_grad() || w.requires_grad() ||
                                           b.requires_grad() || residual.requires_grad());
  Tensor y = empty_like(x);
  const bool at_once = !recorded && (residual.defined() || options.relu);
  kernels::batch_norm_inference({.x = x,
                                 .weight = w,
                                 .bias = b,
                                 .running_mean = running_mean,
                                 .running_var = running_var,
                                 .y = y,
                                 .eps = eps,
                                 .residual = at_once ? residual : Tensor(),
                                 .relu = at_once && options.relu});
  if (at_once) {
    return op.plain({x, w, b, residual}, y);
  }
  y = op.record(
      {x, w, b}, y, save(x, w, running_mean, running_var),
      [eps](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w,
            const Tensor& running_mean, const Tensor& running_var) -> Grads {
        if (grad_enabled()) {
          return recorded_inference_gradients(dy, needs, {x, w, running_mean, running_var, eps});
        }
        Tensor dx = needs.out_like(0, x), dw = needs.out(1), db = needs.out(2);
        kernels::batch_norm_inference_backward({.x = x,
                                                .dy = dy,
                                                .weight = w,
                                                .running_mean = running_mean,
                                                .running_var = running_var,
                                                .dx = dx,
                                                .dweight = dw,
                                                .dbias = db,
                                                .eps = eps});
        return {dx, dw, db};
      });
  return finish(y, residual, options.relu);
}

}  // namespace

Tensor batch_norm(const Tensor& x_, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options) {
  auto [x, residual] = kBatchNorm.enter(x_, options.residual);
  check(x.defined() && x.dim() >= 2 && is_floating(x.dtype()), "batch_norm: got ",
        x.defined() ? text("x of shape ", x.sizes(), " and dtype ", x.dtype())
                    : "an undefined tensor",
        ", expected [N, C, ...] of a floating dtype");
  check_eps(kBatchNorm.name, options.eps);
  check(options.momentum >= 0 && options.momentum <= 1, "batch_norm: got momentum ",
        options.momentum, ", expected 0 to 1");
  check_vector(kBatchNorm.name, "a weight", weight, x, {x.size(1)});
  check_vector(kBatchNorm.name, "a bias", bias, x, {x.size(1)});
  check_vector(kBatchNorm.name, "running_mean", running_mean, x, {x.size(1)});
  check_vector(kBatchNorm.name, "running_var", running_var, x, {x.size(1)});
  check(!residual.defined() || (residual.sizes() == x.sizes() && residual.dtype() == x.dtype()),
        "batch_norm: got a residual of shape ", residual.defined() ? residual.sizes() : Dims{},
        " and dtype ", residual.defined() ? residual.dtype() : x.dtype(), ", expected ", x.sizes(),
        " of ", x.dtype(), " like x");
  const DType compute = compute_dtype(x.dtype());
  check(running_mean.defined() == running_var.defined(),
        "batch_norm: got one of running_mean and running_var, expected both or neither");
  check(!running_mean.defined() ||
            (running_mean.dtype() == compute && running_var.dtype() == compute &&
             running_mean.is_contiguous() && running_var.is_contiguous()),
        "batch_norm: got running statistics that are not contiguous or not of dtype ", compute);
  check(options.training || running_mean.defined(),
        "batch_norm: got training = false without running_mean and running_var, expected both; to "
        "normalise by the batch without them, set training = true");
  const Tensor w = compute_vector(weight, compute), b = compute_vector(bias, compute);
  const BatchNormInputs in{.op = kBatchNorm,
                           .x = x,
                           .w = w,
                           .b = b,
                           .running_mean = running_mean,
                           .running_var = running_var,
                           .options = options};
  return options.training ? normalize_by_batch(in, residual) : normalize_by_running(in, residual);
}

}  // namespace binade
