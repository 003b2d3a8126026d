// Gradient clipping on the CPU: plain loops in memory order. A norm sums chunks of fixed size in
// order.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer/gradient_values_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::kernels {
namespace {

double full_scale(double scale, const View& tag) { return tag ? scale * *tag.as<double>() : scale; }

// NaN propagates.
double larger(double a, double b) { return b > a || std::isnan(b) ? b : a; }

}  // namespace

void cpu::gradient_norm(const GradientNorm& a) {
  check_arguments(a);
  const double scale = full_scale(a.scale, a.tag), p = a.p;
  const bool largest = std::isinf(p);
  constexpr int64_t kChunk = 16384;
  const int64_t chunks = (a.grad.numel + kChunk - 1) / kChunk;
  const Workspace memory(static_cast<size_t>(chunks) * sizeof(double));
  double* partials = memory.as<double>();
  dispatch_floating("gradient_norm", a.grad.dtype, [&]<class T>(Type<T>) {
    const T* g = a.grad.as<T>();
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        double part = 0;
        const int64_t last = std::min((chunk + 1) * kChunk, a.grad.numel);
        for (int64_t i = chunk * kChunk; i < last; ++i) {
          const double magnitude = std::abs(static_cast<double>(g[i])) / scale;
          part = largest ? larger(part, magnitude)
                         : part + (p == 1   ? magnitude
                                   : p == 2 ? magnitude * magnitude
                                            : std::pow(magnitude, p));
        }
        partials[chunk] = part;
      }
    });
  });
  double& result = *a.result.as<double>();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    result = largest ? larger(result, partials[chunk]) : result + partials[chunk];
  }
}

void cpu::clamp_gradient(const ClampGradient& a) {
  check_arguments(a);
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
  check_arguments(a);
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
