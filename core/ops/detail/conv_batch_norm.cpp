#include <binade/core/observe/observer.h>
#include <binade/core/ops/detail/conv_batch_norm_internal.h>
#include <binade/core/ops/detail/conv_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/user/user_kernels_internal.h>

#include <cmath>

namespace binade {
namespace {

// y = sums * scale + shift
struct Affine {
  Tensor scale, shift;
};

bool is_f32_beside(const Tensor& x, const Tensor& t) {
  return t.dtype() == DType::f32 && t.device() == x.device();
}

Affine affine_of(const Tensor& conv_bias, const BatchNormOperands& norm, double eps) {
  const int64_t channels = norm.running_mean.numel();
  Affine affine{empty({channels}), empty({channels})};
  const auto at = [](const Tensor& t, int64_t c, float otherwise) {
    return t.defined() ? t.data<const float>()[c] : otherwise;
  };
  for (int64_t c = 0; c < channels; ++c) {
    const double rstd = 1 / std::sqrt(double{at(norm.running_var, c, 1)} + eps);
    const double scale = rstd * at(norm.weight, c, 1);
    affine.scale.data<float>()[c] = static_cast<float>(scale);
    affine.shift.data<float>()[c] = static_cast<float>(
        at(norm.bias, c, 0) +
        (double{at(conv_bias, c, 0)} - double{at(norm.running_mean, c, 0)}) * scale);
  }
  return affine;
}

}  // namespace

// Inputs that either op rejects take the unfused path, so the error is the same.
bool conv2d_batch_norm_is_one_op(const Conv2dOperands& conv, const BatchNormOperands& norm,
                                 const BatchNormOptions& options) {
  const auto& [x, w, b, geometry] = conv;
  if (options.training || detail::thread_state.precision || detail::observers_read_values() ||
      !x.defined() || !w.defined() || !x.device().is_cpu() || !is_f32_beside(x, x) ||
      !is_f32_beside(x, w) || x.dim() != 4 || w.dim() != 4 ||
      x.size(1) != w.size(1) * geometry.groups ||
      kernels::user_computes(kernels::UserFunction::conv2d_forward, x.device())) {
    return false;
  }
  for (const Tensor* t : {&norm.running_mean, &norm.running_var, &norm.weight, &norm.bias, &b}) {
    const bool is_needed = t == &norm.running_mean || t == &norm.running_var;
    const bool fits =
        t->defined() ? is_f32_beside(x, *t) && t->is_contiguous() && t->sizes() == Dims{w.size(0)}
                     : !is_needed;
    if (!fits) {
      return false;
    }
  }
  const Tensor& residual = options.residual;
  if (residual.defined() && !is_f32_beside(x, residual)) {
    return false;
  }
  return !grad_enabled() ||
         !(x.requires_grad() || w.requires_grad() || b.requires_grad() ||
           norm.weight.requires_grad() || norm.bias.requires_grad() || residual.requires_grad());
}

Tensor conv2d_batch_norm(const Conv2dOperands& conv, const BatchNormOperands& norm,
                         const BatchNormOptions& options) {
  const auto& [x, w, b, geometry] = conv;
  if (!conv2d_batch_norm_is_one_op(conv, norm, options)) {
    return batch_norm(conv2d(x, w, b, geometry), norm.weight, norm.bias, norm.running_mean,
                      norm.running_var, options);
  }
  const Affine affine = affine_of(b, norm, options.eps);
  return conv2d_with_epilogue({.x = x,
                               .w = w,
                               .geometry = geometry,
                               .scale = affine.scale,
                               .shift = affine.shift,
                               .residual = options.residual,
                               .relu = options.relu});
}

}  // namespace binade
