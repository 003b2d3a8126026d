// CUDA argmax. An output is scanned by one thread, a warp or a block: neighbouring threads take
// neighbouring elements where `dim` is innermost or long, else neighbouring outputs. Each thread
// keeps the first largest element of its part; of equals the one with the lowest index wins, so the
// result does not depend on how the parts are cut.
#include <binade/kernels/reduce_checks.h>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <limits>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

// f16, bf16 and f32 are compared as double, i32 as i64, so that a candidate has 16 bytes.
template <class T>
using Comparable = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <class C>
struct Candidate {
  C value;
  int64_t index;
  // NaN is above everything.
  __device__ bool above(const Candidate& other) const {
    const bool nan = value != value, other_nan = other.value != other.value;
    if (value > other.value || nan != other_nan) {
      return value > other.value || nan;
    }
    return (value == other.value || nan) && index < other.index;
  }
  __device__ Candidate merge(const Candidate& other) const {
    return other.above(*this) ? other : *this;
  }
};

struct ArgMaxPlan {
  StridedIndex<2> outputs;  // x, y
  int64_t n, stride;        // of `dim`; stride in elements
  int32_t lanes;            // threads of an output: 1, 32 or kThreads
};

template <class C>
struct ArgMaxMemory {
  dev::BlockReduceMemory<Candidate<C>, kThreads> block;
};

template <class T>
__global__ void __launch_bounds__(kThreads) argmax_kernel(const __grid_constant__ ArgMaxPlan p) {
  using C = Comparable<T>;
  using Scan = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;
  auto& memory = dev::shared_mem<ArgMaxMemory<C>>();
  const int lanes = p.lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t groups = static_cast<int64_t>(gridDim.x) * (kThreads / lanes);
  const int64_t group = static_cast<int64_t>(blockIdx.x) * (kThreads / lanes) + threadIdx.x / lanes;
  // All threads of the block make the same number of rounds, because of its barriers.
  for (int64_t first = 0; first < p.outputs.numel; first += groups) {
    const int64_t output = first + group;
    const bool active = output < p.outputs.numel;
    std::byte* at[2];
    p.outputs.locate(active ? output : 0, at);
    const T* x = reinterpret_cast<const T*>(at[0]);
    Candidate<C> best = {C(0), std::numeric_limits<int64_t>::max()};
    if (active && lane < p.n) {
      auto largest = static_cast<Scan>(x[lane * p.stride]);
      int64_t index = lane;
#pragma unroll 4
      for (int64_t i = lane + lanes; i < p.n; i += lanes) {
        const auto value = static_cast<Scan>(x[i * p.stride]);
        if (value > largest || (value != value && largest == largest)) {
          largest = value;
          index = i;
        }
      }
      best = {static_cast<C>(largest), index};
    } else {
      best.value = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                        : std::numeric_limits<C>::lowest();
    }
    if (lanes == 32) {
      best = dev::warp_reduce<dev::Merge>(best);
    } else if (lanes == kThreads) {
      best = dev::block_reduce<dev::Merge>(best, memory.block);
    }
    if (active && lane == 0) {
      *reinterpret_cast<int64_t*>(at[1]) = best.index;
    }
  }
}

}  // namespace

void cuda::argmax(const ArgMax& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  View x = a.x, y = a.y;  // with size 1 at dim, in both
  x.sizes[a.dim] = 1;
  x.numel = a.y.numel;
  if (y.dim() != x.dim()) {
    y.sizes = y.strides = Dims::of(x.dim(), 1);
    for (int d = 0, kept = 0; d < x.dim(); ++d) {
      if (d != a.dim) {
        y.sizes[d] = a.y.sizes[kept];
        y.strides[d] = a.y.strides[kept++];
      }
    }
  }
  const StridedLoop loop("argmax", {&x, &y});
  ArgMaxPlan p = {StridedIndex<2>(loop), a.x.size(a.dim), a.x.strides[a.dim], 1};
  constexpr int64_t kManyOutputs = 16384;  // a thread each keeps the device busy
  const bool innermost = p.stride == 1 || p.n == 1;
  if (innermost ? p.n >= 16 : loop.numel() < kManyOutputs && p.n >= 64) {
    p.lanes = p.n >= 1024 ? kThreads : 32;
  }
  const auto start = [&]<class T>(Type<T>) {
    launch({"argmax_kernel", grid_blocks(loop.numel(), kThreads / p.lanes), kThreads,
            sizeof(ArgMaxMemory<Comparable<T>>)},
           argmax_kernel<T>, p);
  };
  switch (a.x.dtype) {
    case DType::i64: return start(Type<int64_t>{});
    case DType::i32: return start(Type<int32_t>{});
    default: dispatch_floating("argmax", a.x.dtype, start);
  }
}

}  // namespace binade::kernels
