// Accumulates the values of one thread before they are reduced over threads (block_reduce.cuh),
// with an error that does not grow with the count.
#pragma once
#include <binade/kernels/cuda/block_reduce.cuh>

namespace binade::kernels::dev {

inline constexpr unsigned kLeaf = 32;

// kCount running states of a reducer (reducers.cuh), each with R::kLevels levels (1 or 3). After
// kLeaf states a level is added to the next one.
template <class R, class C, int kCount>
class Accumulator {
 public:
  using State = typename R::template State<C>;

  __device__ Accumulator() {
#pragma unroll
    for (int level = 0; level < R::kLevels; ++level) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        level_[level][i] = R::template none<C>();
      }
    }
  }
  __device__ __forceinline__ void add(const State (&states)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      level_[0][i] = R::combine(level_[0][i], states[i]);
    }
    if constexpr (R::kLevels > 1) {
      if (++count_ % kLeaf == 0) {
        carry(0);
        if (count_ % (kLeaf * kLeaf) == 0) {
          carry(1);
        }
      }
    }
  }
  __device__ State total(int i) const {
    if constexpr (R::kLevels == 1) {
      return level_[0][i];
    } else {
      return R::combine(R::combine(level_[0][i], level_[1][i]), level_[2][i]);
    }
  }

 private:
  __device__ __forceinline__ void carry(int from) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      level_[from + 1][i] = R::combine(level_[from + 1][i], level_[from][i]);
      level_[from][i] = R::template none<C>();
    }
  }
  State level_[R::kLevels][kCount];
  unsigned count_ = 0;
};

// Combines the elements of a vector in a binary tree.
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
