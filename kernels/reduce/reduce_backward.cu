// dx = f(x, a, b) with a and b broadcast over the reduced dimensions. A thread takes a vector of dx
// and x if the innermost dimension allows it, else one element; many threads read a and b from the
// same cache line.
#include <binade/kernels/reduce/reduce_internal.h>
#include <binade/kernels/cuda/map.cuh>
#include <binade/kernels/cuda/row_team.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

struct SlopePlan {
  StridedIndex<4> index;       // dx, x, a, b: in units of a vector
  int64_t a_stride, b_stride;  // bytes between neighbours in a vector
  ReduceSlope op;
};

template <class C>
__device__ __forceinline__ C sign_of(C x) {
  return x > C(0) ? C(1) : x < C(0) ? C(-1) : C(0);
}

template <class T, class C>
__device__ __forceinline__ C slope(ReduceSlope op, C x, C a, C b) {
  switch (op) {
    case ReduceSlope::sign: return a * sign_of(x);
    case ReduceSlope::equal: return (x == b) | ((x != x) & (b != b)) ? a : C(0);
    case ReduceSlope::equal_or_nan: return x == b ? a : b != b ? b : C(0);
    case ReduceSlope::direction: return b != C(0) ? a * (x / b) : C(0);
    case ReduceSlope::equal_abs: return std::abs(x) == b ? a * sign_of(x) : C(0);
    case ReduceSlope::exponential: return a * dev::exp_for<T>(x - b);
    default: return x != C(0) ? a / x : b;
  }
}

template <class T, int kVector>
__global__ void __launch_bounds__(kThreads)
    reduce_backward_kernel(const __grid_constant__ SlopePlan p) {
  using C = Compute<T>;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.index.numel;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    std::byte* at[4];
    p.index.locate(i, at);
    C x[kVector];
    dev::load_as(reinterpret_cast<const T*>(at[1]), x);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const C a = *reinterpret_cast<const C*>(at[2] + j * p.a_stride);
      const std::byte* b = at[3] ? at[3] + j * p.b_stride : nullptr;
      if (p.op == ReduceSlope::deviation) {
        const double mean = b ? *reinterpret_cast<const double*>(b) : 0;
        x[j] = a * static_cast<C>(static_cast<double>(x[j]) - mean);
      } else {
        x[j] = slope<T>(p.op, x[j], a, b ? *reinterpret_cast<const C*>(b) : C(0));
      }
    }
    dev::store_from(reinterpret_cast<T*>(at[0]), x);
  }
}

template <class T, int kVector>
void start(SlopePlan p, const StridedLoop& loop) {
  p.a_stride = loop.stride(2, 0);
  p.b_stride = loop.stride(3, 0);
  if (kVector > 1) {
    p.index.numel /= kVector;
    p.index.set_size(0, loop.size(0) / kVector);
    for (auto& stride : p.index.stride) {
      stride[0] *= kVector;
    }
  }
  launch({"reduce_backward_kernel", grid_blocks(p.index.numel, kThreads), kThreads},
         reduce_backward_kernel<T, kVector>, p);
}

}  // namespace

void cuda::reduce_backward(const ReduceBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  const StridedLoop loop("reduce backward", {&a.dx, &a.x, &a.a, &a.b});
  const SlopePlan p = {.index = StridedIndex<4>(loop), .a_stride = 0, .b_stride = 0, .op = a.op};
  dispatch_floating("reduce backward", a.x.dtype, [&]<class T>(Type<T>) {
    constexpr int kVector = dev::kVectorOf<T>;
    const bool whole = loop.size(0) % kVector == 0 && loop.stride(1, 0) != 0 &&
                       detail::vectorizable<T, kVector>(loop, 0) &&
                       detail::vectorizable<T, kVector>(loop, 1);
    whole ? start<T, kVector>(p, loop) : start<T, 1>(p, loop);
  });
}

}  // namespace binade::kernels
