// Products of few rows (kFewRows) with a large b, as in a linear layer with a small batch. b is
// read once, in place and in its memory order, and multiplied by all rows, so the time is the time
// to read b. Only sources that are compiled per instruction set may include it (rules:
// kernels/base/isa.h).
//
// An element is the same chain of multiply-adds in the same blocks of k as in
// kernels/gemm/gemm_block_internal.h, so its bits do not depend on the number of rows. The vectors
// hold columns: where the elements of a column are adjacent in memory, squares of b are transposed
// in registers.
#pragma once
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/contraction_tile_internal.h>
#include <binade/kernels/gemm/gemm_block_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// The rows of a as [rows][step], and what a product of few rows computes. `S` is the type of b's
// elements in memory.
template <class T, class S>
struct RowsProduct {
  const GemmBlock& g;
  const T* a = nullptr;
  int64_t a_row = 0;
  int64_t steps = 0, part = 0;  // of k; of a block of k
  const S* b = nullptr;
  int64_t step_stride = 0, column_stride = 0;  // of b, one of them is 1
};

#define BINADE_UNROLL_STEPS _Pragma("GCC unroll 16")

constexpr int64_t kRowsBytes = 16 * 1024;  // of the sums of a group of columns

struct Group {
  int64_t column, columns;  // the first, and how many
};

// Sums of a group of columns, [rows][width]: those of the present block of k and the total.
template <class Sum>
class GroupSums {
 public:
  GroupSums(const GemmBlock& g, int64_t width, bool several)
      : g_(g), width_(width), several_(several) {}

  Sum* row(int64_t i) { return chain_ + i * width_; }
  void clear() {
    for (int64_t i = 0; i < g_.product.m * width_; i += kLanes<Sum>) {
      store(chain_ + i, Vector<Sum>{});
    }
  }
  // Adds the sums of a block of k to the total; the first adds the old values of c.
  template <class T>
  void finish_part(int64_t column, int64_t columns, bool first, bool last) {
    if (several_) {
      add_to_total(column, columns, first);
    }
    if (last) {
      write<T>(column, columns);
    }
  }

 private:
  void add_to_total(int64_t column, int64_t columns, bool first) {
    for (int64_t i = 0; i < g_.product.m; ++i) {
      const Sum* c = static_cast<const Sum*>(g_.c) + i * g_.c_row + column;
      for (int64_t j = 0; j < columns; j += kLanes<Sum>) {
        Sum* total = total_ + i * width_ + j;
        Vector<Sum> sum = load(chain_ + i * width_ + j);
        if (!first) {
          sum += load(total);
        } else if (g_.epilogue.accumulate) {
          sum +=
              load(c + j, static_cast<int>(columns - j < kLanes<Sum> ? columns - j : kLanes<Sum>));
        }
        store(total, sum);
      }
    }
  }
  template <class T>
  void write(int64_t column, int64_t columns) {
    const int64_t size = g_.epilogue.stored(sizeof(Sum));
    for (int64_t i = 0; i < g_.product.m; ++i) {
      const Sum* from = (several_ ? total_ : chain_) + i * width_;
      for (int64_t j = 0; j < columns; j += kLanes<Sum>) {
        Tile<T> t{.c = static_cast<char*>(g_.c) + (i * g_.c_row + column + j) * size,
                  .c_row = g_.c_row,
                  .columns = columns - j,
                  .epilogue = g_.epilogue.at(i, column + j, sizeof(Sum))};
        t.epilogue.accumulate = g_.epilogue.accumulate && !several_;
        Sums<Sum, 1, 1> sums;
        sums.at[0][0] = load(from + j);
        store_sums(t, sums);
      }
    }
  }

  const GemmBlock& g_;
  const int64_t width_;
  const bool several_;  // blocks of k
  alignas(64) Sum chain_[kRowsBytes / sizeof(Sum)];
  alignas(64) Sum total_[kRowsBytes / sizeof(Sum)];
};

// sums += the products of a row of a with kCount steps; rows[s] is a vector of columns of step s.
template <class T, int kCount, class Sum>
BINADE_INLINE void add_steps_of(const T* a, Sum* sums,
                                const typename Step<T>::Row (&rows)[kCount]) {
  Vector<Sum> sum = load(sums);
  BINADE_UNROLL_STEPS
  for (int s = 0; s < kCount; ++s) {
    sum = Step<T>::add(sum, Step<T>::factor(a + s), rows[s]);
  }
  store(sums, sum);
}

// Reads steps of b as vectors of columns.
template <class T, class S>
struct StepReader {
  using Sum = typename Tile<T>::Sum;
  using Row = typename Step<T>::Row;
  static constexpr int64_t kPerStep = 1;
  // `n` steps of a column; zeros after them.
  BINADE_INLINE static Vector<Sum> column(const S* b) { return load(b); }
  BINADE_INLINE static Vector<Sum> column(const S* b, int n, bool) { return load(b, n); }
  BINADE_INLINE static Row row(const S* b, int64_t, bool) { return load(b); }
  BINADE_INLINE static Row row(const S* b, int64_t, bool, int n) { return load(b, n); }
  BINADE_INLINE static Row as_row(Vector<Sum> v) { return v; }
};

#if defined(__AVX512BF16__)
template <>
struct StepReader<BfloatPair, bfloat16> {
  using Row = __m512bh;
  static constexpr int64_t kPerStep = 2;
  BINADE_INLINE static Vector<float> column(const bfloat16* b) {
    return (Vector<float>)_mm512_loadu_si512(b);
  }
  // `half`: the last step has one element.
  BINADE_INLINE static Vector<float> column(const bfloat16* b, int n, bool half) {
    const uint32_t elements = (n < 16 ? (1u << 2 * n) : 0u) - 1u;
    return (Vector<float>)_mm512_maskz_loadu_epi16(half ? elements >> 1 & elements : elements, b);
  }
  BINADE_INLINE static Row row(const bfloat16* b, int64_t stride, bool half, int n = 16) {
    const __mmask16 read = first(n), odd = half ? __mmask16{0} : read;
    const Bits low = (Bits)_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(read, b));
    const Bits high = (Bits)_mm512_maskz_cvtepu16_epi32(
        0xffff, _mm256_maskz_loadu_epi16(odd, half ? b : b + stride));
    return (__m512bh)(low | high << 16);
  }
  BINADE_INLINE static Row as_row(Vector<float> v) { return (__m512bh)v; }
};
#endif

// The elements of a column are adjacent: squares of kLanes columns and steps are transposed.
template <class T, class S>
class AdjacentSteps {
  using Reader = StepReader<T, S>;
  using Sum = typename Tile<T>::Sum;
  static constexpr int kCount = kLanes<Sum>;

 public:
  static constexpr int64_t kWidth = 2 * kCount;

  static void add(const RowsProduct<T, S>& p, const Group& group, int64_t begin, int64_t end,
                  GroupSums<Sum>& sums) {
    const auto [column, columns] = group;
    const int64_t whole = begin + (end - begin) / kCount * kCount;
    const bool odd = p.g.product.k % Reader::kPerStep != 0;  // the last step is half
    for (int64_t k = begin; k < end; k += kCount) {
      for (int64_t v = 0; v < columns; v += kCount) {
        const int wide = static_cast<int>(columns - v < kCount ? columns - v : kCount);
        const S* b = p.b + (column + v) * p.column_stride + k * Reader::kPerStep;
        const bool reads_beyond = k + kCount == p.steps && odd;
        if (k < whole && wide == kCount && !reads_beyond) {
          add_square(p, {b, k, v}, sums);
        } else {
          const int64_t left = end - k;
          add_part(p, {b, k, v, wide, static_cast<int>(left < kCount ? left : kCount)}, sums);
        }
      }
    }
  }

 private:
  // `wide` columns from vector v of the group on, `count` steps from k on; b is their first
  // element.
  struct Square {
    const S* b;
    int64_t k, v;
    int wide = kCount, count = kCount;
  };

  BINADE_INLINE static void add_square(const RowsProduct<T, S>& p, const Square& square,
                                       GroupSums<Sum>& sums) {
    const S* b = square.b;
    const int64_t k = square.k, v = square.v;
    Vector<Sum> r[kCount];
    // The same place of the next group of columns, if that is near enough to stay in a cache.
    const int64_t ahead = p.column_stride * kWidth * int64_t{sizeof(S)} <= 256 * 1024
                              ? p.column_stride * kWidth
                              : 1024 / int64_t{sizeof(S)};
    BINADE_UNROLL_STEPS
    for (int q = 0; q < kCount; ++q) {
      const S* from = b + q * p.column_stride;
      __builtin_prefetch(from + ahead, 0, 2);
      r[q] = Reader::column(from);
    }
    transpose<Sum>(r);
    typename Step<T>::Row rows[kCount];
    BINADE_UNROLL_STEPS
    for (int q = 0; q < kCount; ++q) {
      rows[q] = Reader::as_row(r[q]);
    }
    for (int64_t i = 0; i < p.g.product.m; ++i) {
      add_steps_of<T, kCount>(p.a + i * p.a_row + k, sums.row(i) + v, rows);
    }
  }

  // A square that is not full.
  static void add_part(const RowsProduct<T, S>& p, const Square& square, GroupSums<Sum>& sums) {
    const auto [b, k, v, wide, count] = square;
    const bool half = k + count == p.steps && p.g.product.k % Reader::kPerStep != 0;
    Vector<Sum> r[kCount] = {};
    for (int q = 0; q < wide; ++q) {
      r[q] = Reader::column(b + q * p.column_stride, count, half);
    }
    transpose<Sum>(r);
    for (int64_t i = 0; i < p.g.product.m; ++i) {
      Sum* to = sums.row(i) + v;
      const T* a = p.a + i * p.a_row + k;
      Vector<Sum> sum = load(to);
      for (int s = 0; s < count; ++s) {
        sum = Step<T>::add(sum, Step<T>::factor(a + s), Reader::as_row(r[s]));
      }
      store(to, sum);
    }
  }
};

// The columns of a step are adjacent: a few steps at a time are added to all sums of a group.
template <class T, class S>
class AdjacentColumns {
  using Reader = StepReader<T, S>;
  using Sum = typename Tile<T>::Sum;
  using Row = typename Step<T>::Row;
  static constexpr int64_t kCount = kLanes<Sum>;
  static constexpr int kSteps = kVectorBytes == 64 ? 16 : 8;

 public:
  static void add(const RowsProduct<T, S>& p, const Group& group, int64_t begin, int64_t end,
                  GroupSums<Sum>& sums) {
    const auto [column, columns] = group;
    const bool odd = p.g.product.k % Reader::kPerStep != 0;
    int64_t k = begin;
    for (; k + kSteps <= end - (odd && end == p.steps); k += kSteps) {
      int64_t v = 0;
      for (; v + kCount <= columns; v += kCount) {
        add_whole(p, column + v, k, v, sums);
      }
      for (int64_t s = k; s < k + kSteps && v < columns; ++s) {
        add_step(p, group, s, v, sums);
      }
    }
    for (; k < end; ++k) {
      add_step(p, group, k, 0, sums);
    }
  }

 private:
  BINADE_INLINE static const S* at(const RowsProduct<T, S>& p, int64_t step, int64_t column) {
    return p.b + step * Reader::kPerStep * p.step_stride + column;
  }
  BINADE_INLINE static void add_whole(const RowsProduct<T, S>& p, int64_t column, int64_t k,
                                      int64_t v, GroupSums<Sum>& sums) {
    Row rows[kSteps];
    const S* b = at(p, k, column);
    BINADE_UNROLL_STEPS
    for (int s = 0; s < kSteps; ++s) {
      const S* from = b + s * Reader::kPerStep * p.step_stride;
      __builtin_prefetch(from + kSteps * Reader::kPerStep * p.step_stride, 0, 2);
      rows[s] = Reader::row(from, p.step_stride, false);
    }
    for (int64_t i = 0; i < p.g.product.m; ++i) {
      add_steps_of<T, kSteps>(p.a + i * p.a_row + k, sums.row(i) + v, rows);
    }
  }
  // One step, from vector v of the group on.
  static void add_step(const RowsProduct<T, S>& p, const Group& group, int64_t k, int64_t v,
                       GroupSums<Sum>& sums) {
    const auto [column, columns] = group;
    const bool half = k + 1 == p.steps && p.g.product.k % Reader::kPerStep != 0;
    for (; v < columns; v += kCount) {
      const int wide = static_cast<int>(columns - v < kCount ? columns - v : kCount);
      const Row row = Reader::row(at(p, k, column + v), p.step_stride, half, wide);
      for (int64_t i = 0; i < p.g.product.m; ++i) {
        Sum* to = sums.row(i) + v;
        store(to, Step<T>::add(load(to), Step<T>::factor(p.a + i * p.a_row + k), row));
      }
    }
  }
};

template <class T, class S>
void multiply_rows(const RowsProduct<T, S>& p) {
  using Sum = typename Tile<T>::Sum;
  constexpr int64_t kCount = kLanes<Sum>;
  const MatrixProduct& all = p.g.product;
  const bool by_steps = p.step_stride == 1;
  const int64_t most = kRowsBytes / int64_t{sizeof(Sum)} / all.m / kCount * kCount,
                all_columns = (all.n + kCount - 1) / kCount * kCount,
                width = by_steps             ? AdjacentSteps<T, S>::kWidth
                        : all_columns < most ? all_columns
                                             : most;
  GroupSums<Sum> sums(p.g, width, p.steps > p.part);
  for (int64_t j = 0; j < all.n; j += width) {
    const int64_t columns = all.n - j < width ? all.n - j : width;
    for (int64_t begin = 0; begin < p.steps; begin += p.part) {
      const int64_t end = p.steps - begin < p.part ? p.steps : begin + p.part;
      sums.clear();
      by_steps ? AdjacentSteps<T, S>::add(p, {j, columns}, begin, end, sums)
               : AdjacentColumns<T, S>::add(p, {j, columns}, begin, end, sums);
      sums.template finish_part<T>(j, columns, begin == 0, end == p.steps);
    }
  }
}

// pack(target) writes a as [rows][steps].
template <class Operands, class S, class Pack>
void run_few_rows(const GemmBlock& g, const Pack& pack) {
  using T = typename Operands::Element;
  const MatrixProduct& p = g.product;
  const int64_t steps = (p.k + Operands::kPerStep - 1) / Operands::kPerStep;
  const bool in_place = p.a_strides[1] == 1 && Operands::a_can_stay(p);
  if (!in_place) {
    pack(static_cast<T*>(g.packed_a));
  }
  multiply_rows<T, S>({.g = g,
                       .a = static_cast<const T*>(in_place ? p.a : g.packed_a),
                       .a_row = in_place ? p.a_strides[0] / Operands::kPerStep : steps,
                       .steps = steps,
                       .part = depth_of_part(steps, Operands::kDepthUnit),
                       .b = static_cast<const S*>(p.b),
                       .step_stride = p.b_strides[0],
                       .column_stride = p.b_strides[1]});
}

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
