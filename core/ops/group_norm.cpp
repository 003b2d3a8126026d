// Group norm, and instance norm, which is group norm with one channel per group.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/group_norm.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/norm/group_norm.h>

namespace binade {
namespace {

void check_image(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x.defined() && x.dim() >= 2 && is_floating(x.dtype()), op, ": got ",
        x.defined() ? text("x of shape ", x.sizes(), " and dtype ", x.dtype())
                    : "an undefined tensor",
        ", expected [N, C, ...] of a floating dtype");
  for (const Tensor* t : {&weight, &bias}) {
    check(!t->defined() || t->sizes() == Dims{x.size(1)}, op, ": got a ",
          t == &weight ? "weight" : "bias", " of shape ", t->defined() ? t->sizes() : Dims{},
          ", expected [", x.size(1), "], the channels of x ", x.sizes());
  }
}

// Contiguous per-channel vectors in the compute dtype. Both steps are differentiable.
Tensor channel_vector(const Tensor& t, DType compute) {
  return t.defined() ? contiguous(cast(t, compute)) : t;
}

// y = (x - mean) rstd w + b with the mean and rstd of each group
Tensor normalize_groups(const Op& op, const Tensor& x, int64_t groups, const Tensor& weight,
                        const Tensor& bias, double eps) {
  const DType compute = compute_dtype(x.dtype());
  const Tensor w = channel_vector(weight, compute), b = channel_vector(bias, compute);
  Tensor y = empty_like(x);
  const Tensor mean = empty({x.size(0), groups}, compute, x.device()),
               rstd = empty({x.size(0), groups}, compute, x.device());
  kernels::group_norm_forward(
      {.x = x, .weight = w, .bias = b, .y = y, .mean = mean, .rstd = rstd, .eps = eps});
  return op.record({x, w, b}, y, save(x, w, mean, rstd),
                   [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w,
                      const Tensor& mean, const Tensor& rstd) -> Grads {
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
  static constexpr Op kOp{"group_norm", OpClass::norm};
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
  static constexpr Op kOp{"instance_norm", OpClass::norm};
  auto [x] = kOp.enter(x_);
  check_image(kOp.name, x, weight, bias);
  const int64_t planes = x.size(0) * x.size(1);
  check(x.dim() >= 3 && x.size(1) >= 1 && (planes == 0 || x.numel() != planes),
        "instance_norm: got x of shape ", x.sizes(),
        ", expected [N, C, L, ...] with more than one value per channel");
  return normalize_groups(kOp, x, x.size(1), weight, bias, eps);
}

}  // namespace binade
