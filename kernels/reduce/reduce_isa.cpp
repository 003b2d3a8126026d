// Reductions, along contiguous runs or across columns. Sums are pairwise: leaves of a fixed number
// of elements, then a cascade in which level k holds the sum of 2^k leaves, like a binary counter.
#include <binade/kernels/reduce/reduce_sequence_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

inline constexpr int kLevels = 40;
inline constexpr int64_t kLeafRows = 32;

// Pairwise combination of a stream of vectors, each of `columns` values.
template <class C, class Op>
class Cascade {
 public:
  explicit Cascade(int64_t columns) : columns_(columns) {}

  // The place of the next leaf; call push() once it is complete.
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

template <class C, class Op>
void reduce_along(const ReduceTask& task, LoadBlock<C> load) {
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
      cascade.push(reduce_block<C, Op>(load(from, task.stride[0], n, block), n));
      if (++b == blocks) {
        b = 0;
        rows.next();
      }
    }
    y[column] = cascade.finish();
  }
}

template <class C, class Op>
void reduce_across(const ReduceTask& task, LoadBlock<C> load) {
  const int64_t n = task.columns;
  C block[4][ReduceTask::kColumns];
  Cascade<C, Op> cascade(n);
  Rows rows(task, 0, task.begin);
  // Rows may be a page apart, where the hardware does not prefetch.
  constexpr int64_t kAhead = 8, kLine = 64;
  const bool adjacent = task.column_stride > 0 && task.column_stride <= 8;
  const int64_t bytes = adjacent ? n * task.column_stride : 0;
  const auto next_row = [&](int k) {
    const std::byte* from = task.x + rows.offset();
    for (int64_t line = 0; line < bytes; line += kLine) {
      __builtin_prefetch(from + kAhead * task.stride[0] + line);
    }
    const C* row = load(from, task.column_stride, n, block[k]);
    rows.next();
    return row;
  };
  for (int64_t begin = task.begin; begin < task.end; begin += kLeafRows) {
    const int64_t end = begin + kLeafRows < task.end ? begin + kLeafRows : task.end;
    C* y = cascade.leaf();
    const C* first = next_row(0);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = first[i];
    }
    int64_t r = begin + 1;
    for (; r + 4 <= end; r += 4) {
      const C *a = next_row(0), *b = next_row(1), *c = next_row(2), *d = next_row(3);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        y[i] = Op::combine(y[i], Op::combine(Op::combine(a[i], b[i]), Op::combine(c[i], d[i])));
      }
    }
    for (; r < end; ++r) {
      const C* a = next_row(0);
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
  task.across ? reduce_across<C, Op>(task, load_block<T, C>)
              : reduce_along<C, Op>(task, load_block<T, C>);
}

template <class Op>
void reduce_dtype(DType dtype, const ReduceTask& task) {
  // Unsigned: sums and products of signed integers must wrap.
  constexpr bool kSums = kSame<Op, Sum>, kModular = kSums || kSame<Op, Product>;
  switch (dtype) {
    case DType::f64: return reduce<double, double, Op>(task);
    case DType::f32: return reduce<float, float, Op>(task);
    case DType::f16: return reduce<half, float, Op>(task);
    case DType::bf16: return reduce<bfloat16, float, Op>(task);
    case DType::i64:
      if constexpr (kModular) {
        return reduce<uint64_t, uint64_t, Op>(task);
      } else {
        return reduce<int64_t, int64_t, Op>(task);
      }
    case DType::i32:
      if constexpr (kSums) {
        return reduce<int32_t, uint64_t, Op>(task);
      } else if constexpr (kModular) {
        return reduce<uint32_t, uint32_t, Op>(task);
      } else {
        return reduce<int32_t, int32_t, Op>(task);
      }
    default:
      if constexpr (kSums) {
        return reduce<uint8_t, uint64_t, Op>(task);
      } else if constexpr (!kModular) {
        return reduce<uint8_t, uint8_t, Op>(task);
      }
  }
}

}  // namespace

void reduce_rows(Reducer reducer, DType dtype, const ReduceTask& task) {
  switch (reducer) {
    case Reducer::max: return reduce_dtype<Max>(dtype, task);
    case Reducer::min: return reduce_dtype<Min>(dtype, task);
    case Reducer::product: return reduce_dtype<Product>(dtype, task);
    default: return reduce_dtype<Sum>(dtype, task);
  }
}

void reduce_partials(Reducer reducer, DType dtype, void* partial, int64_t chunks, int64_t columns) {
  // The partials are themselves a matrix of the accumulator type, which is reduced across its
  // columns.
  const DType type = accumulator_dtype(reducer, dtype);
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
                     Term::plain,
                     combined};
  reduce_rows(reducer, type, task);
  __builtin_memcpy(partial, combined, static_cast<size_t>(columns * width));
}

}  // namespace binade::kernels::BINADE_ISA
