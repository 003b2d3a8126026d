// Reductions of one value per thread over lane groups, warps and blocks, in a fixed order: results
// are bitwise repeatable and the same on every thread. A value is an arithmetic type or a struct of
// 4-byte words; an operation is a type with a static combine(a, b), associative in exact
// arithmetic, called with the values of lower threads first.
#pragma once
#include <binade/kernels/base/moments.h>
#include <binade/kernels/cuda/device.cuh>

#include <cmath>
#include <limits>
#include <type_traits>

namespace binade::kernels::dev {

// value of lane (this lane ^ offset), for any trivially copyable type of 4-byte words.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int offset) {
  if constexpr (std::is_arithmetic_v<T>) {
    return __shfl_xor_sync(~0u, value, offset);
  } else {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
    struct Words {
      uint32_t word[sizeof(T) / 4];
    };
    Words words = std::bit_cast<Words>(value);
#pragma unroll
    for (uint32_t& word : words.word) {
      word = __shfl_xor_sync(~0u, word, offset);
    }
    return std::bit_cast<T>(words);
  }
}

struct Sum {
  template <class T>
  __device__ static T combine(T a, T b) {
    return a + b;
  }
};
// NaN if either value is NaN.
struct Max {
  template <class T>
  __device__ static T combine(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Min {
  template <class T>
  __device__ static T combine(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};
// For structs with a member merge(other).
struct Merge {
  template <class T>
  __device__ static T combine(const T& a, const T& b) {
    return a.merge(b);
  }
};

// Two sums at once.
template <class C>
struct SumPair {
  C first, second;
  __device__ SumPair merge(const SumPair& other) const {
    return {first + other.first, second + other.second};
  }
};

using kernels::Moments;

// The largest x and the sum of exp(x - max): a softmax denominator. The empty state is {-inf, 0}.
template <class C>
struct MaxSum {
  C max, sum;
  __device__ static MaxSum none() { return {-std::numeric_limits<C>::infinity(), C(0)}; }
  __device__ MaxSum merge(const MaxSum& other) const {
    const C top = Max::combine(max, other.max);
    // Both -inf: exp(-inf - -inf) would be NaN.
    const C a = max == top ? sum : sum * std::exp(max - top);
    const C b = other.max == top ? other.sum : other.sum * std::exp(other.max - top);
    return {top, a + b};
  }
};

// Reduces over each group of kWidth neighbouring lanes (a power of two up to 32). The whole warp
// must call it.
template <class Op, int kWidth = 32, class T>
__device__ __forceinline__ T warp_reduce(T value) {
  static_assert(kWidth >= 1 && kWidth <= 32 && (kWidth & (kWidth - 1)) == 0);
#pragma unroll
  for (int offset = 1; offset < kWidth; offset *= 2) {
    const T other = shuffle_xor(value, offset);
    if constexpr (std::is_arithmetic_v<T>) {
      value = Op::combine(value, other);  // commutative
    } else {
      const bool upper = threadIdx.x & static_cast<unsigned>(offset);
      value = upper ? Op::combine(other, value) : Op::combine(value, other);
    }
  }
  return value;
}

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  return warp_reduce<Sum>(value);
}
template <class T>
__device__ __forceinline__ T warp_max(T value) {
  return warp_reduce<Max>(value);
}
template <class T>
__device__ __forceinline__ T warp_min(T value) {
  return warp_reduce<Min>(value);
}

// Shared memory of block reductions: a member of the kernel's Smem struct. Several reductions may
// use the same memory one after the other without further barriers.
template <class T, int kThreads>
struct BlockReduceMemory {
  T warp[kThreads / 32];
};

// Reduces over a one-dimensional block of kThreads threads (32 to 1024, a power of two). All
// threads must call it, and all get the result.
template <class Op, class T, int kThreads>
__device__ __forceinline__ T block_reduce(T value, BlockReduceMemory<T, kThreads>& memory) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kThreads % 32 == 0 && kWarps <= 32 && (kWarps & (kWarps - 1)) == 0);
  value = warp_reduce<Op>(value);
  if constexpr (kWarps > 1) {
    if (threadIdx.x % 32 == 0) {
      memory.warp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = memory.warp[threadIdx.x % kWarps];
    __syncthreads();  // before the memory is used again
    value = warp_reduce<Op, kWarps>(value);
  }
  return value;
}

template <class T, int kThreads>
__device__ __forceinline__ T block_sum(T value, BlockReduceMemory<T, kThreads>& memory) {
  return block_reduce<Sum>(value, memory);
}
template <class T, int kThreads>
__device__ __forceinline__ T block_max(T value, BlockReduceMemory<T, kThreads>& memory) {
  return block_reduce<Max>(value, memory);
}

}  // namespace binade::kernels::dev
