// Exponent counts on a device. A block counts the elements that its threads read in a table of
// 32-bit integers in shared memory and adds the table to the result at the end. Integer atomics
// give the same counts in any order. A block reads far fewer than 2^32 elements.
#include <binade/kernels/exponents/exponent_keys.h>
#include <binade/kernels/exponents/exponents.h>
#include <binade/kernels/cuda/vector.cuh>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1024, kVectorsPerThread = 16;

struct CountMemory {
  unsigned count[kExponentKeys];
  unsigned largest, smallest;
};

__device__ __forceinline__ void add_to(int64_t* total, unsigned count) {
  if (count != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(total), count);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    count_exponents_kernel(dev::VectorSpan span, const T* x, int64_t* result) {
  auto& memory = dev::shared_mem<CountMemory>();
  for (int key = static_cast<int>(threadIdx.x); key < kExponentKeys; key += kThreads) {
    memory.count[key] = 0;
  }
  if (threadIdx.x == 0) {
    memory.largest = memory.smallest = 0;
  }
  __syncthreads();
  unsigned largest = 0, smallest = 0;
  dev::for_each_vector<dev::kVectorOf<T>>(span, [&](auto width, int64_t at) {
    constexpr int kWidth = decltype(width)::value;
    Compute<T> value[kWidth];
    dev::load_as(x + at, value);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      atomicAdd(&memory.count[exponent_key(value[i])], 1u);
      const uint32_t bits = magnitude_bits(value[i]);
      if (bits < kInfinityBits && bits != 0) {
        largest = bits > largest ? bits : largest;
        smallest = ~bits > smallest ? ~bits : smallest;
      }
    }
  });
  atomicMax(&memory.largest, largest);
  atomicMax(&memory.smallest, smallest);
  __syncthreads();
  for (int key = static_cast<int>(threadIdx.x); key < kExponentKeys; key += kThreads) {
    add_to(result + key, memory.count[key]);
  }
  if (threadIdx.x == 0) {  // the low halves of the 64-bit results
    atomicMax(reinterpret_cast<unsigned*>(result + kExponentKeys), memory.largest);
    atomicMax(reinterpret_cast<unsigned*>(result + kExponentKeys + 1), memory.smallest);
  }
}

struct LostMemory {
  unsigned count[3];
};

__global__ void __launch_bounds__(kThreads)
    count_lost_updates_kernel(const float* before, const float* after, int64_t n, int64_t* result) {
  auto& memory = dev::shared_mem<LostMemory>();
  if (threadIdx.x < 3) {
    memory.count[threadIdx.x] = 0;
  }
  __syncthreads();
  unsigned changed = 0, lost_half = 0, lost_bfloat16 = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
       i += static_cast<int64_t>(gridDim.x) * kThreads) {
    const double update = static_cast<double>(after[i]) - static_cast<double>(before[i]);
    if (update != 0) {
      ++changed;
      lost_half += update_is_lost<half>(before[i], update);
      lost_bfloat16 += update_is_lost<bfloat16>(before[i], update);
    }
  }
  atomicAdd(&memory.count[0], changed);
  atomicAdd(&memory.count[1], lost_half);
  atomicAdd(&memory.count[2], lost_bfloat16);
  __syncthreads();
  if (threadIdx.x < 3) {
    add_to(result + threadIdx.x, memory.count[threadIdx.x]);
  }
}

}  // namespace

void cuda::count_exponents(const CountExponents& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  dispatch_floating("count_exponents", a.x.dtype, [&]<class T>(Type<T>) {
    const T* x = a.x.as<T>();
    constexpr int64_t kPerBlock = kThreads * dev::kVectorOf<T> * kVectorsPerThread;
    const int64_t blocks = std::min(ceil_div(a.x.numel, kPerBlock), kMostBlocks);
    launch({"count_exponents_kernel", static_cast<unsigned>(blocks), kThreads, sizeof(CountMemory)},
           count_exponents_kernel<T>, dev::vector_span<dev::kVectorOf<T>>(a.x.numel, x), x,
           a.result.as<int64_t>());
  });
}

void cuda::count_lost_updates(const CountLostUpdates& a) {
  check_arguments(a);
  if (a.before.numel == 0) {
    return;
  }
  const int64_t blocks = std::min(ceil_div(a.before.numel, kThreads * 8), kMostBlocks);
  launch({"count_lost_updates_kernel", static_cast<unsigned>(blocks), kThreads, sizeof(LostMemory)},
         count_lost_updates_kernel, a.before.as<float>(), a.after.as<float>(), a.before.numel,
         a.result.as<int64_t>());
}

}  // namespace binade::kernels
