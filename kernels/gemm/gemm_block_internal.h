// One single-threaded block of a matrix product (GemmBlock): packs a into panels as high as a
// register tile and b into panels as wide, kPackDepth steps of k at a time, and runs the tiles. An
// operand that a tile can read in place and that is read only a few times is not packed. Only
// sources that are compiled per instruction set may include it (rules: kernels/base/isa.h).
#pragma once
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/contraction_vector_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// a with strided rows is read in place if b has at most kUnpackedSteps columns, and b if a has at
// most kUnpackedRows rows: then a panel would be read too few times to pay for packing. Tiles
// prefetch, so a stride between steps costs little if a step has many multiplications.
#if defined(__AVX512F__)
constexpr int64_t kUnpackedSteps = 512, kUnpackedRows = 512;
#else
constexpr int64_t kUnpackedSteps = 32, kUnpackedRows = 64;
#endif

// Steps of every block of k but the last, a multiple of `unit`: the blocks are nearly equal.
inline int64_t depth_of_part(int64_t steps, int64_t unit) {
  const int64_t parts = steps > kPackDepth ? (steps + kPackDepth - 1) / kPackDepth : 1;
  return ((steps + parts - 1) / parts + unit - 1) / unit * unit;
}

// Operands defines a step of k: its Element, which holds kPerStep elements of k; pack(); can_stay,
// true if a tile can read a or b in place; whether a is packed by rows only; and kDepthUnit: a
// block of k has a multiple of so many steps.
template <class Operands>
class Block {
  using T = typename Operands::Element;
  using Sum = typename Tile<T>::Sum;

 public:
  Block(const GemmBlock& g, const TileSet<T>& tiles)
      : g_(g),
        p_(g.product),
        tiles_(tiles),
        steps_((p_.k + Operands::kPerStep - 1) / Operands::kPerStep),
        c_size_(g.epilogue.stored(sizeof(Sum))),
        a_in_place_(Operands::a_can_stay(p_) &&
                    (p_.a_strides[1] == 1
                         ? !g.row_sums && (steps_ <= kPackDepth || p_.n <= kUnpackedColumns)
                         : p_.n <= kUnpackedSteps)),
        a_by_rows_(!a_in_place_ && (Operands::kPacksRows || (!g.row_sums && p_.a_strides[1] == 1 &&
                                                             p_.n <= kUnpackedColumns))),
        b_in_place_(Operands::b_can_stay(p_) && p_.m <= kUnpackedRows && !g.keeps_b &&
                    !g.b_is_packed),
        tile_by_tile_(a_in_place_ && p_.a_strides[1] == 1 && p_.n > tiles.width() &&
                      depth_of_part(steps_, Operands::kDepthUnit) >= kLongRows &&
                      p_.n * depth_of_part(steps_, Operands::kDepthUnit) * int64_t{sizeof(T)} <=
                          kNearBytes),
        row_parts_(tile_by_tile_ ? tiles_high(p_.m) : (p_.m + kPackRows - 1) / kPackRows) {}

  // Packs all of b in the form of GemmBlock::kept_b.
  void pack_all(T* target) const {
    for (int64_t begin = 0, depth = 0; begin < steps_; begin += depth) {
      depth = smaller(steps_ - begin, depth_of_part(steps_, Operands::kDepthUnit));
      for (int64_t j = 0; j < p_.n; j += tiles_.width()) {
        const int64_t columns = smaller(p_.n - j, tiles_.width());
        Operands::pack({.source = b_at(begin, j),
                        .dtype = p_.dtype,
                        .k_stride = p_.b_strides[0],
                        .column_stride = p_.b_strides[1],
                        .k = elements(begin, depth),
                        .columns = columns,
                        .step_width = columns},
                       target + begin * p_.n + j * depth);
      }
    }
  }

  void run() {
    int64_t begin = 0;
    do {  // once for k = 0
      const int64_t depth = smaller(steps_ - begin, depth_of_part(steps_, Operands::kDepthUnit));
      for (int64_t i = 0; i < row_parts_; ++i) {
        const int64_t row = first_row(i), rows = first_row(i + 1) - row;
        pack_a(row, rows, begin, depth);
        multiply(row, rows, begin, depth);
      }
      begin += depth;
    } while (begin < steps_);
  }

 private:
  static constexpr int64_t kPerStep = Operands::kPerStep;
  static constexpr int64_t kRowsAhead = 16;  // steps of a that sums look ahead
  static constexpr int64_t kNearBytes = 256 * 1024, kLongRows = 192;

  static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t within(int64_t x, int64_t end) { return x < 0 ? 0 : smaller(x, end); }
  // The last panel is one vector wide if that is enough.
  int64_t panel_width(int64_t columns) const {
    return columns > tiles_.lanes ? tiles_.width() : tiles_.lanes;
  }
  bool panel_in_place(int64_t columns) const { return b_in_place_ && columns >= tiles_.width(); }
  const char* at(const void* base, int64_t offset) const {
    return static_cast<const char*>(base) + offset * static_cast<int64_t>(size_of(p_.dtype));
  }
  // First row of tile i of `count` tiles of nearly equal height.
  static int64_t cut(int64_t rows, int64_t i, int64_t count) { return rows * i / count; }
  int64_t tiles_high(int64_t rows) const { return (rows + tiles_.max_rows - 1) / tiles_.max_rows; }

  int64_t first_row(int64_t part) const {
    return tile_by_tile_ ? cut(p_.m, part, row_parts_) : smaller(part * kPackRows, p_.m);
  }

  const char* a_at(int64_t row, int64_t step) const {
    return at(p_.a, row * p_.a_strides[0] + step * Operands::kPerStep * p_.a_strides[1]);
  }
  const char* b_at(int64_t step, int64_t column) const {
    return at(p_.b, step * Operands::kPerStep * p_.b_strides[0] + column * p_.b_strides[1]);
  }
  int64_t elements(int64_t begin, int64_t depth) const {
    return smaller(p_.k - begin * Operands::kPerStep, depth * Operands::kPerStep);
  }

  // Packs panels [steps][rows], or converts rows if few columns read them.
  void pack_a(int64_t row, int64_t rows, int64_t begin, int64_t depth) {
    if (a_in_place_) {
      if constexpr (kPerStep == 1) {
        if (g_.row_sums) {
          add_rows(row, rows, begin, depth);
        }
      }
      return;
    }
    T* target = static_cast<T*>(g_.packed_a);
    if (a_by_rows_) {
      Operands::pack_rows({.source = a_at(row, begin),
                           .dtype = p_.dtype,
                           .k_stride = p_.a_strides[1],
                           .column_stride = p_.a_strides[0],
                           .k = elements(begin, depth),
                           .columns = rows,
                           .step_width = depth},
                          target);
      return;
    }
    const int64_t count = tiles_high(rows);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = cut(rows, i, count), high = cut(rows, i + 1, count) - first;
      Operands::pack({.source = a_at(row + first, begin),
                      .dtype = p_.dtype,
                      .k_stride = p_.a_strides[1],
                      .column_stride = p_.a_strides[0],
                      .k = elements(begin, depth),
                      .columns = high,
                      .step_width = high},
                     target + first * depth);
      if constexpr (kPerStep == 1) {
        if (g_.row_sums) {
          add_steps(target + first * depth, depth, high,
                    static_cast<T*>(g_.row_sums) + row + first);
        }
      }
    }
  }

  // The sum of a row is four chains of steps in each block of k, for packed and unpacked rows
  // alike.
  template <int kVectors>
  struct Chains {
    Vector<T> at[kVectors][4] = {};

    void add_to(T* sums, int rows) const {
      for (int v = 0; v < kVectors; ++v) {
        const Vector<T> sum = (at[v][0] + at[v][1]) + (at[v][2] + at[v][3]);
        T* to = sums + v * kLanes<T>;
        store(to, load(to, rows) + sum, rows);
      }
    }
  };

  // Sums the rows of a packed panel.
  static void add_steps(const T* panel, int64_t depth, int64_t high, T* sums) {
    for (int64_t i = 0; i < high; i += kLanes<T>) {
      const int rows = static_cast<int>(smaller(high - i, kLanes<T>));
      Chains<1> chains;
      const T* step = panel + i;
      int64_t k = 0;
      for (; (k + 3) * high + i + kLanes<T> <= depth * high; k += 4, step += 4 * high) {
        for (int c = 0; c < 4; ++c) {  // whole vectors: lanes from `rows` on are not stored
          chains.at[0][c] += load(step + c * high);
        }
      }
      for (; k < depth; ++k, step += high) {
        chains.at[0][k % 4] += load(step, rows);
      }
      chains.add_to(sums + i, rows);
    }
  }

  // Sums rows of a that are adjacent elements of its steps.
  void add_rows(int64_t row, int64_t rows, int64_t begin, int64_t depth) const {
    constexpr int kWide = 4;
    const int64_t step = p_.a_strides[1];
    const T* a = static_cast<const T*>(p_.a) + row + begin * step;
    T* sums = static_cast<T*>(g_.row_sums) + row;
    int64_t i = 0;
    for (; i + kWide * kLanes<T> <= rows; i += kWide * kLanes<T>) {
      Chains<kWide> chains;
      const T* from = a + i;
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4) {
        for (int c = 0; c < 4; ++c, from += step) {
          for (int v = 0; v < kWide; ++v) {
            __builtin_prefetch(from + kRowsAhead * step + v * kLanes<T>);
            chains.at[v][c] += load(from + v * kLanes<T>);
          }
        }
      }
      for (int c = 0; k < depth; ++k, ++c, from += step) {
        for (int v = 0; v < kWide; ++v) {
          chains.at[v][c] += load(from + v * kLanes<T>);
        }
      }
      chains.add_to(sums + i, kLanes<T>);
    }
    for (; i < rows; i += kLanes<T>) {
      const int left = static_cast<int>(smaller(rows - i, kLanes<T>));
      Chains<1> chains;
      for (int64_t k = 0; k < depth; ++k) {
        chains.at[0][k % 4] += load(a + i + k * step, left);
      }
      chains.add_to(sums + i, left);
    }
  }

  // The epilogue applies after the last block of k; before that, c only collects the sums.
  TileEpilogue epilogue_of(int64_t begin, bool last) const {
    TileEpilogue e = g_.epilogue;
    e.accumulate = e.accumulate || begin > 0;
    if (!last) {
      e.scale = e.bias = nullptr;
      e.relu = false;
      e.use = TileOperand::prefetch;
    }
    return e;
  }

  void multiply(int64_t row, int64_t rows, int64_t begin, int64_t depth) {
    static constexpr int64_t kNoOffset = 0;
    const bool last = begin + depth >= steps_;
    const TileEpilogue epilogue = epilogue_of(begin, last);
    Tile<T> t{.sum = {.offsets = &kNoOffset, .length = depth}, .c_row = g_.c_row};
    // A panel is packed with the first rows. If no other rows need it, the next panel overwrites
    // it.
    const bool packs = row == 0 && !g_.b_is_packed && !g_.kept_b;
    const bool stays = row_parts_ > 1 || g_.keeps_b || g_.b_is_packed;
    for (int64_t j = 0; j < p_.n; j += tiles_.width()) {
      T* panel = static_cast<T*>(g_.packed_b) + (stays ? j * depth : 0);
      t.columns = smaller(p_.n - j, tiles_.width());
      const bool in_place = panel_in_place(t.columns);
      if (packs && !in_place) {
        Operands::pack({.source = b_at(begin, j),
                        .dtype = p_.dtype,
                        .k_stride = p_.b_strides[0],
                        .column_stride = p_.b_strides[1],
                        .k = elements(begin, depth),
                        .columns = t.columns,
                        .step_width = panel_width(t.columns)},
                       panel);
      }
      if (g_.kept_b) {
        t.b = static_cast<const T*>(g_.kept_b) + begin * g_.kept_columns +
              (g_.kept_first + j) * depth;
        t.b_step = t.columns;
      } else {
        t.b = in_place ? reinterpret_cast<const T*>(b_at(begin, j)) : panel;
        t.b_step = in_place ? p_.b_strides[0] : panel_width(t.columns);
      }
      t.epilogue = epilogue.at(row, j, sizeof(Sum));
      multiply_panel(t, row, rows, begin, j);
    }
  }

  // The steps of [begin, begin + depth) that rows [row, row + high) need, counted from begin.
  struct Steps {
    int64_t first, end;
  };
  Steps needed(int64_t row, int64_t high, int64_t begin, int64_t depth) const {
    const int64_t end = g_.visible + row + high - 1, first = row - g_.visible + 1;  // in k
    switch (g_.triangle) {
      case Triangular::a: return {0, within((end + kPerStep - 1) / kPerStep - begin, depth)};
      case Triangular::a_transposed: return {within(first / kPerStep - begin, depth), depth};
      default: return {0, depth};
    }
  }

  void multiply_panel(Tile<T>& t, int64_t row, int64_t rows, int64_t begin, int64_t column) {
    const int64_t count = tiles_high(rows), depth = t.sum.length;
    const T* b = t.b;
    const std::byte* operand = t.epilogue.operand;
    char* c = static_cast<char*>(g_.c) + (row * g_.c_row + column) * c_size_;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = cut(rows, i, count), high = cut(rows, i + 1, count) - first;
      if (g_.triangle == Triangular::result && column >= g_.visible + row + first + high - 1) {
        continue;
      }
      const Steps part = needed(row + first, high, begin, depth);
      bool rows_contiguous = true;
      if (a_in_place_) {
        rows_contiguous = p_.a_strides[1] != 1;
        t.a = reinterpret_cast<const T*>(a_at(row + first, begin));
        t.sum.a_row = p_.a_strides[0] / Operands::kPerStep;
        t.sum.a_step = p_.a_strides[1];
      } else {
        t.a = static_cast<const T*>(g_.packed_a) + first * depth;
        rows_contiguous = !a_by_rows_;
        t.sum.a_row = a_by_rows_ ? depth : 1;
        t.sum.a_step = a_by_rows_ ? 1 : high;
      }
      t.a += part.first * (rows_contiguous ? t.sum.a_step : 1);
      t.b = b + part.first * t.b_step;
      t.sum.length = part.end - part.first;
      t.c = c + first * t.c_row * c_size_;
      t.next_row = tile_by_tile_ ? high * column / p_.n : 0;
      t.next_rows = (tile_by_tile_ ? high * (column + t.columns) / p_.n : high) - t.next_row;
      if (operand) {
        t.epilogue.operand = operand + first * t.epilogue.operand_row * int64_t{sizeof(Sum)};
      }
      tiles_.get(high, t.columns, rows_contiguous)(t);
    }
    t.sum.length = depth;
  }

  const GemmBlock& g_;
  const MatrixProduct& p_;
  const TileSet<T>& tiles_;
  const int64_t steps_, c_size_;
  const bool a_in_place_, a_by_rows_, b_in_place_;
  // True if each tile of rows is multiplied by all panels of b before the next tile. This is so if
  // a is read in place, perhaps from main memory. Its rows stay in the first-level cache and the
  // next rows are prefetched meanwhile; the panels stay in the second-level cache.
  const bool tile_by_tile_;
  const int64_t row_parts_;
};

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
