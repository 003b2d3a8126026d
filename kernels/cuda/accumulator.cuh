// What a thread accumulates before its value meets those of other threads (block_reduce.cuh), with
// errors that do not grow with the count.
#pragma once
#include <binade/kernels/cuda/block_reduce.cuh>

namespace binade::kernels::dev {

inline constexpr unsigned kLeaf = 32;

struct Product {
  template <class T>
  __device__ static T combine(T a, T b) {
    return a * b;
  }
};

template <class Op, class C>
__device__ C identity() {
  using Limits = std::numeric_limits<C>;
  if constexpr (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>) {
    return std::is_same_v<Op, Product> ? C(1) : C(0);
  } else if constexpr (std::is_same_v<Op, Max>) {
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  } else {
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
}

// kCount running results, each in levels: a level takes kLeaf values before it goes to the next.
template <class Op, class C, int kCount>
class Accumulator {
 public:
  __device__ Accumulator() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      level_[0][i] = level_[1][i] = level_[2][i] = identity<Op, C>();
    }
  }
  __device__ __forceinline__ void add(const C (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      level_[0][i] = Op::combine(level_[0][i], values[i]);
    }
    if (++count_ % kLeaf == 0) {
      carry(0);
      if (count_ % (kLeaf * kLeaf) == 0) {
        carry(1);
      }
    }
  }
  __device__ C total(int i) const {
    return Op::combine(Op::combine(level_[0][i], level_[1][i]), level_[2][i]);
  }

 private:
  __device__ __forceinline__ void carry(int from) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      level_[from + 1][i] = Op::combine(level_[from + 1][i], level_[from][i]);
      level_[from][i] = identity<Op, C>();
    }
  }
  C level_[3][kCount];
  unsigned count_ = 0;
};

// A tree over the elements of a vector.
template <class Op, class C, int N>
__device__ __forceinline__ C combine_all(const C (&values)[N]) {
  C tree[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    tree[i] = values[i];
  }
#pragma unroll
  for (int width = N / 2; width > 0; width /= 2) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      tree[i] = Op::combine(tree[i], tree[i + width]);
    }
  }
  return tree[0];
}

}  // namespace binade::kernels::dev
