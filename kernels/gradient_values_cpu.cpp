// Clipping of gradients on the CPU: plain loops in memory order.
#include <binade/kernels/gradient_values_checks.h>

#include <cmath>

namespace binade::kernels {
namespace {

double full_scale(double scale, const View& tag) { return tag ? scale * *tag.as<double>() : scale; }

}  // namespace

void cpu::gradient_norm(const GradientNorm& a) {
  check_gradient_norm(a);
  const double scale = full_scale(a.scale, a.tag), p = a.p;
  double result = *a.result.as<double>();
  dispatch_floating("gradient_norm", a.grad.dtype, [&]<class T>(Type<T>) {
    const T* g = a.grad.as<T>();
    for (int64_t i = 0; i < a.grad.numel; ++i) {
      const double magnitude = std::abs(static_cast<double>(g[i])) / scale;
      if (!std::isinf(p)) {
        result += std::pow(magnitude, p);
      } else if (magnitude > result || std::isnan(magnitude)) {
        result = magnitude;
      }
    }
  });
  *a.result.as<double>() = result;
}

void cpu::clamp_gradient(const ClampGradient& a) {
  check_clamp_gradient(a);
  const double bound = a.limit * full_scale(a.scale, a.tag);
  dispatch_floating("clamp_gradient", a.grad.dtype, [&]<class T>(Type<T>) {
    T* g = a.grad.as<T>();
    for (int64_t i = 0; i < a.grad.numel; ++i) {
      const auto value = static_cast<double>(g[i]);
      if (std::isfinite(value) && std::abs(value) > bound) {
        g[i] = static_cast<T>(static_cast<Compute<T>>(std::copysign(bound, value)));
      }
    }
  });
}

void cpu::replace_non_finite(const ReplaceNonFinite& a) {
  check_replace_non_finite(a);
  if (a.when && *a.when.as<double>() == 0) {
    return;
  }
  const double largest = largest_finite(a.grad.dtype);
  dispatch_floating("replace_non_finite", a.grad.dtype, [&]<class T>(Type<T>) {
    T* g = a.grad.as<T>();
    for (int64_t i = 0; i < a.grad.numel; ++i) {
      const auto value = static_cast<double>(g[i]);
      if (!std::isfinite(value)) {
        const double replacement = std::isnan(value) ? 0 : std::copysign(largest, value);
        g[i] = static_cast<T>(static_cast<Compute<T>>(replacement));
      }
    }
  });
}

}  // namespace binade::kernels
