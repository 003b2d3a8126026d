// Reductions, along contiguous runs or across columns. Sums are pairwise: leaves of a fixed number
// of elements, then a cascade in which level k holds the sum of 2^k leaves, like a binary counter.
#include <binade/kernels/base/blocks.h>
#include <binade/kernels/reduce_isa.h>

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
struct Max {
  template <class C>
  static C identity();
  template <class C>
  static C combine(C a, C b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Min {
  template <class C>
  static C identity();
  template <class C>
  static C combine(C a, C b) {
    return (a < b) | (a != a) ? a : b;
  }
};
template <>
double Max::identity() {
  return -__builtin_inf();
}
template <>
float Max::identity() {
  return -__builtin_inff();
}
template <>
int64_t Max::identity() {
  return INT64_MIN;
}
template <>
int32_t Max::identity() {
  return INT32_MIN;
}
template <>
double Min::identity() {
  return __builtin_inf();
}
template <>
float Min::identity() {
  return __builtin_inff();
}
template <>
int64_t Min::identity() {
  return INT64_MAX;
}
template <>
int32_t Min::identity() {
  return INT32_MAX;
}

inline constexpr int kLevels = 40;
inline constexpr int64_t kLeafRows = 32;

// Pairwise combination of a stream of one or more vectors of `columns` values.
template <class C, class Op>
class Cascade {
 public:
  explicit Cascade(int64_t columns) : columns_(columns) {}

  // Where the next leaf belongs; call push() once it is complete.
  C* leaf() { return level_[depth_]; }
  void push() {
    ++depth_;
    for (uint64_t bits = ++count_; (bits & 1) == 0; bits >>= 1) {
      merge_top();
    }
  }
  void finish(C* y) {
    while (depth_ > 1) {
      merge_top();
    }
    __builtin_memcpy(y, level_[0], static_cast<size_t>(columns_) * sizeof(C));
  }

 private:
  void merge_top() {
    --depth_;
    C* a = level_[depth_ - 1];
    const C* b = level_[depth_];
#pragma GCC ivdep
    for (int64_t i = 0; i < columns_; ++i) {
      a[i] = Op::combine(a[i], b[i]);
    }
  }

  int64_t columns_;
  int depth_ = 0;
  uint64_t count_ = 0;
  C level_[kLevels][ReduceTask::kColumns];
};

// The same for single values.
template <class C, class Op>
class ScalarCascade {
 public:
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

// n <= kBlockSize contiguous values: each of the lanes takes every kLanes-th, then a tree.
template <class C, class Op>
C reduce_block(const C* x, int64_t n) {
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

template <class T, class C, class Op>
void reduce_along(const ReduceTask& task) {
  C* y = static_cast<C*>(task.partial);
  C block[kBlockSize];
  for (int64_t column = 0; column < task.columns; ++column) {
    const std::byte* x = task.x + column * task.column_stride;
    ScalarCascade<C, Op> cascade;
    const int64_t blocks = (task.size[0] + kBlockSize - 1) / kBlockSize;
    Rows rows(task, 1, task.begin / blocks);
    int64_t b = task.begin % blocks;
    for (int64_t unit = task.begin; unit < task.end; ++unit) {
      const int64_t i = b * kBlockSize;
      const int64_t n = task.size[0] - i < kBlockSize ? task.size[0] - i : kBlockSize;
      const std::byte* from = x + rows.offset() + i * task.stride[0];
      cascade.push(reduce_block<C, Op>(load_block<T>(from, task.stride[0], n, block), n));
      if (++b == blocks) {
        b = 0;
        rows.next();
      }
    }
    y[column] = cascade.finish();
  }
}

template <class T, class C, class Op>
void reduce_across(const ReduceTask& task) {
  const int64_t n = task.columns;
  C block[4][ReduceTask::kColumns];
  Cascade<C, Op> cascade(n);
  Rows rows(task, 0, task.begin);
  const auto load = [&](int k) {
    const C* row = load_block<T>(task.x + rows.offset(), task.column_stride, n, block[k]);
    rows.next();
    return row;
  };
  for (int64_t begin = task.begin; begin < task.end; begin += kLeafRows) {
    const int64_t end = begin + kLeafRows < task.end ? begin + kLeafRows : task.end;
    C* y = cascade.leaf();
    const C* first = load(0);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = first[i];
    }
    int64_t r = begin + 1;
    for (; r + 4 <= end; r += 4) {
      const C *a = load(0), *b = load(1), *c = load(2), *d = load(3);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = Op::combine(y[i], Op::combine(Op::combine(a[i], b[i]), Op::combine(c[i], d[i])));
      }
    }
    for (; r < end; ++r) {
      const C* a = load(0);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = Op::combine(y[i], a[i]);
      }
    }
    cascade.push();
  }
  cascade.finish(static_cast<C*>(task.partial));
}

template <class T, class C, class Op>
void reduce(const ReduceTask& task) {
  if (task.begin == task.end) {
    for (int64_t i = 0; i < task.columns; ++i) {
      static_cast<C*>(task.partial)[i] = Op::template identity<C>();
    }
    return;
  }
  task.across ? reduce_across<T, C, Op>(task) : reduce_along<T, C, Op>(task);
}

template <class Op>
void reduce_dtype(DType dtype, const ReduceTask& task) {
  constexpr bool kModular = kSame<Op, Sum> || kSame<Op, Product>;
  switch (dtype) {
    case DType::f64: return reduce<double, double, Op>(task);
    case DType::f32: return reduce<float, float, Op>(task);
    case DType::f16: return reduce<half, float, Op>(task);
    case DType::bf16: return reduce<bfloat16, float, Op>(task);
    case DType::i64:
      if constexpr (kModular) {  // unsigned: sums of signed integers must wrap
        return reduce<uint64_t, uint64_t, Op>(task);
      } else {
        return reduce<int64_t, int64_t, Op>(task);
      }
    default:
      if constexpr (kModular) {
        return reduce<uint32_t, uint32_t, Op>(task);
      } else {
        return reduce<int32_t, int32_t, Op>(task);
      }
  }
}

}  // namespace

void reduce_rows(Reduce op, DType dtype, const ReduceTask& task) {
  switch (op) {
    case Reduce::max: return reduce_dtype<Max>(dtype, task);
    case Reduce::min: return reduce_dtype<Min>(dtype, task);
    case Reduce::prod: return reduce_dtype<Product>(dtype, task);
    default: return reduce_dtype<Sum>(dtype, task);
  }
}

void reduce_partials(Reduce op, DType dtype, void* partial, int64_t chunks, int64_t columns) {
  // The partials are themselves a matrix of the accumulator type, to be reduced across its columns.
  const DType type = is_floating(dtype) ? compute_dtype(dtype) : dtype;
  const auto width = static_cast<int64_t>(size_of(type));
  alignas(64) std::byte combined[ReduceTask::kColumns * 8];
  ReduceTask task = {static_cast<std::byte*>(partial),
                     columns,
                     width,
                     1,
                     {chunks},
                     {columns * width},
                     0,
                     chunks,
                     true,
                     combined};
  reduce_rows(op, type, task);
  __builtin_memcpy(partial, combined, static_cast<size_t>(columns * width));
}

}  // namespace binade::kernels::BINADE_ISA
