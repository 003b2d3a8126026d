// Clipping of gradients on a device.
//
// gradient_norm has two stages. Blocks stride over the gradient as 16-byte vectors; each thread
// keeps one double and each block writes one partial; then one block adds the partials in a fixed
// order to the result. The number of blocks depends on the length only, so the bits are the same on
// any device. clamp_gradient and replace_non_finite are one pass in place, one vector per thread
// and turn; a vector is written only if it changed.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer/gradient_values_internal.h>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostPartials = 1024, kVectorsPerThread = 4;

using NormMemory = dev::BlockReduceMemory<double, kThreads>;

__device__ __forceinline__ double full_scale(double scale, const double* tag) {
  return tag ? scale * *tag : scale;
}

__device__ __forceinline__ double merge_norms(bool largest, double value, NormMemory& memory) {
  return largest ? dev::block_reduce<dev::Max>(value, memory)
                 : dev::block_reduce<dev::Sum>(value, memory);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    gradient_norm_partials_kernel(dev::VectorSpan span, const T* grad, double scale,
                                  const double* tag, double p, double* partials) {
  auto& memory = dev::shared_mem<NormMemory>();
  const bool largest = p > std::numeric_limits<double>::max();
  const double divisor = full_scale(scale, tag);
  double value = 0;
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    Compute<T> g[kWidth];
    dev::load_as(grad + at, g);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const double magnitude = std::abs(static_cast<double>(g[i])) / divisor;
      value = largest ? dev::Max::combine(value, magnitude) : value + std::pow(magnitude, p);
    }
  });
  value = merge_norms(largest, value, memory);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = value;
  }
}

__global__ void __launch_bounds__(kThreads)
    gradient_norm_finish_kernel(const double* partials, int count, bool largest, double* result) {
  auto& memory = dev::shared_mem<NormMemory>();
  double value = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    value = largest ? dev::Max::combine(value, partials[i]) : value + partials[i];
  }
  value = merge_norms(largest, value, memory);
  if (threadIdx.x == 0) {
    *result = largest ? dev::Max::combine(*result, value) : *result + value;
  }
}

// Changes elements in place: change(value) returns true if it changed the value.
template <class T, class F>
__device__ __forceinline__ void change_elements(const dev::VectorSpan& span, T* grad, F change) {
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    Compute<T> g[kWidth];
    dev::load_as(grad + at, g);
    bool changed = false;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      changed |= change(g[i]);
    }
    if (changed) {
      dev::store_from(grad + at, g);
    }
  });
}

template <class C>
__device__ __forceinline__ bool is_finite(C value) {
  return value - value == C(0);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    clamp_gradient_kernel(dev::VectorSpan span, T* grad, double scale, const double* tag,
                          double limit) {
  const double bound = limit * full_scale(scale, tag);
  change_elements(span, grad, [bound](Compute<T>& g) {
    const bool beyond = is_finite(g) && std::abs(static_cast<double>(g)) > bound;
    g = beyond ? static_cast<Compute<T>>(g < 0 ? -bound : bound) : g;
    return beyond;
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    replace_non_finite_kernel(dev::VectorSpan span, T* grad, double largest, const double* when) {
  if (when && *when == 0) {
    return;
  }
  const auto limit = static_cast<Compute<T>>(largest);
  change_elements(span, grad, [limit](Compute<T>& g) {
    const bool bad = !is_finite(g);
    g = !bad ? g : g != g ? Compute<T>(0) : g < 0 ? -limit : limit;
    return bad;
  });
}

}  // namespace

void cuda::gradient_norm(const GradientNorm& a) {
  check_arguments(a);
  if (a.grad.numel == 0) {
    return;
  }
  const bool largest = a.p > std::numeric_limits<double>::max();
  dispatch_floating("gradient_norm", a.grad.dtype, [&]<class T>(Type<T>) {
    const T* grad = a.grad.as<T>();
    constexpr int64_t kPerBlock = kThreads * dev::kVectorOf<T> * kVectorsPerThread;
    const int64_t blocks = std::min(ceil_div(a.grad.numel, kPerBlock), kMostPartials);
    const Workspace memory(static_cast<size_t>(blocks) * sizeof(double), a.grad.device);
    launch({"gradient_norm_partials_kernel", static_cast<unsigned>(blocks), kThreads,
            sizeof(NormMemory)},
           gradient_norm_partials_kernel<T>,
           dev::vector_span<dev::kVectorOf<T>>(a.grad.numel, grad), grad, a.scale,
           a.tag.as<double>(), a.p, memory.as<double>());
    launch({"gradient_norm_finish_kernel", 1, kThreads, sizeof(NormMemory)},
           gradient_norm_finish_kernel, memory.as<double>(), static_cast<int>(blocks), largest,
           a.result.as<double>());
  });
}

void cuda::clamp_gradient(const ClampGradient& a) {
  check_arguments(a);
  if (a.grad.numel == 0) {
    return;
  }
  dispatch_floating("clamp_gradient", a.grad.dtype, [&]<class T>(Type<T>) {
    const auto span = dev::vector_span<dev::kVectorOf<T>>(a.grad.numel, a.grad.as<T>());
    launch({"clamp_gradient_kernel", grid_blocks(span, dev::kVectorOf<T>, kThreads), kThreads},
           clamp_gradient_kernel<T>, span, a.grad.as<T>(), a.scale, a.tag.as<double>(), a.limit);
  });
}

void cuda::replace_non_finite(const ReplaceNonFinite& a) {
  check_arguments(a);
  if (a.grad.numel == 0) {
    return;
  }
  dispatch_floating("replace_non_finite", a.grad.dtype, [&]<class T>(Type<T>) {
    const auto span = dev::vector_span<dev::kVectorOf<T>>(a.grad.numel, a.grad.as<T>());
    launch({"replace_non_finite_kernel", grid_blocks(span, dev::kVectorOf<T>, kThreads), kThreads},
           replace_non_finite_kernel<T>, span, a.grad.as<T>(), largest_finite(a.grad.dtype),
           a.when.as<double>());
  });
}

}  // namespace binade::kernels
