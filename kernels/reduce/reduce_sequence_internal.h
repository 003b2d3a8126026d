// Helpers of the CPU reductions: operations on two values, cascades, and positions.
// Include only from *_isa.cpp files.
#pragma once
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/reduce/reduce_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

struct Sum {
  template <class C>
  static C identity() {
    return C(0);
  }
  template <class C>
  static C combine(C a, C b) {
    return a + b;
  }
};
struct Product {
  template <class C>
  static C identity() {
    return C(1);
  }
  template <class C>
  static C combine(C a, C b) {
    return a * b;
  }
};
// The largest value of a type, and below the smallest.
template <class C>
constexpr C highest() {
  if constexpr (kSame<C, float> || kSame<C, double>) {
    return static_cast<C>(__builtin_inf());
  } else if constexpr (kSame<C, uint8_t>) {
    return UINT8_MAX;
  } else {
    return static_cast<C>(~(uint64_t(1) << (8 * sizeof(C) - 1)));
  }
}
template <class C>
constexpr C lowest() {
  if constexpr (kSame<C, float> || kSame<C, double>) {
    return -highest<C>();
  } else {
    return kSame<C, uint8_t> ? C(0) : static_cast<C>(-highest<C>() - 1);
  }
}

struct Max {
  template <class C>
  static C identity() {
    return lowest<C>();
  }
  template <class C>
  static C combine(C a, C b) {
    const C larger = a > b ? a : b;  // b where one is NaN
    return a != a ? a : larger;
  }
};
struct Min {
  template <class C>
  static C identity() {
    return highest<C>();
  }
  template <class C>
  static C combine(C a, C b) {
    const C smaller = a < b ? a : b;
    return a != a ? a : smaller;
  }
};

// Pairwise combination of a stream of values, or of states of a reducer.
template <class C, class Op>
class ScalarCascade {
 public:
  ScalarCascade() { level_[0] = C{}; }
  void push(C value) {
    for (uint64_t bits = ++count_; (bits & 1) == 0; bits >>= 1) {
      value = Op::combine(level_[--depth_], value);
    }
    level_[depth_++] = value;
  }
  C finish() {
    while (depth_ > 1) {
      --depth_;
      level_[depth_ - 1] = Op::combine(level_[depth_ - 1], level_[depth_]);
    }
    return level_[0];
  }

 private:
  int depth_ = 0;
  uint64_t count_ = 0;
  C level_[64];
};

// load_block of a dtype, called through a pointer, so that dtypes with the same compute type share
// loops.
template <class C>
using LoadBlock = const C* (*)(const std::byte* x, int64_t stride, int64_t n, C* block);

// Reduces n <= kBlockSize contiguous values: each lane takes every kLanes-th one, then a tree.
template <class C, class Op>
[[gnu::noinline]] C reduce_block(const C* x, int64_t n) {
  constexpr int64_t kLanes = 256 / sizeof(C);
  C lane[kLanes];
  if (n < kLanes) {
    C value = x[0];
    for (int64_t i = 1; i < n; ++i) {
      value = Op::combine(value, x[i]);
    }
    return value;
  }
  for (int64_t j = 0; j < kLanes; ++j) {
    lane[j] = x[j];
  }
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      lane[j] = Op::combine(lane[j], x[i + j]);
    }
  }
  for (int64_t j = 0; i + j < n; ++j) {
    lane[j] = Op::combine(lane[j], x[i + j]);
  }
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) {
      lane[j] = Op::combine(lane[j], lane[j + width]);
    }
  }
  return lane[0];
}

// A position in the sequence over dimensions first .. dims - 1.
class Rows {
 public:
  Rows(const ReduceTask& task, int first, int64_t begin) : task_(task), first_(first) {
    for (int d = first; d < task.dims; ++d) {
      index_[d] = begin % task.size[d];
      begin /= task.size[d];
      offset_ += index_[d] * task.stride[d];
    }
  }
  int64_t offset() const { return offset_; }
  void next() {
    for (int d = first_; d < task_.dims; ++d) {
      offset_ += task_.stride[d];
      if (++index_[d] < task_.size[d]) {
        return;
      }
      offset_ -= task_.size[d] * task_.stride[d];
      index_[d] = 0;
    }
  }

 private:
  const ReduceTask& task_;
  int first_;
  int64_t index_[kMaxDims];
  int64_t offset_ = 0;
};

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
