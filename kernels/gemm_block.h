// One single-threaded block of a matrix product (GemmBlock): packs a into panels as high as a
// register tile and b into panels as wide, kPackDepth steps of k at a time, and runs the tiles.
// Operands that a tile can read where they are stay there if they are read only a few times.
// Included by sources that are compiled per instruction set only (kernels/base/isa.h has their
// rules).
#pragma once
#include <binade/kernels/contraction.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kUnpackedSteps = 32;  // kUnpackedColumns, where rows of a are strided
constexpr int64_t kUnpackedRows = 64;   // up to this m rows of b are read at most 11 times

// Operands says what a step of k is: its Element, of which there are kPerStep in k, pack(), and
// can_stay() for a tile to read a or b as they lie.
template <class Operands>
class Block {
  using T = typename Operands::Element;

 public:
  Block(const GemmBlock& g, const TileSet<T>& tiles)
      : g_(g),
        tiles_(tiles),
        steps_((g.k + Operands::kPerStep - 1) / Operands::kPerStep),
        c_size_(g.rounded == Rounded::no ? sizeof(typename Tile<T>::Sum) : sizeof(half)),
        a_in_place_(Operands::a_can_stay(g) &&
                    (g.a_strides[1] == 1 ? steps_ <= kPackDepth || g.n <= kUnpackedColumns
                                         : g.n <= kUnpackedSteps)),
        a_by_rows_(!a_in_place_ && g.a_strides[1] == 1 && g.n <= kUnpackedColumns),
        b_in_place_(Operands::b_can_stay(g) && g.m <= kUnpackedRows) {}

  void run() {
    int64_t begin = 0;
    do {  // once for k = 0
      const int64_t depth = smaller(steps_ - begin, depth_of_part(steps_));
      for (int64_t row = 0; row < g_.m; row += kPackRows) {
        const int64_t rows = smaller(g_.m - row, kPackRows);
        pack_a(row, rows, begin, depth);
        multiply(row, rows, begin, depth);
      }
      begin += depth;
    } while (begin < steps_);
  }

 private:
  static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t depth_of_part(int64_t k) {
    const int64_t parts = k > kPackDepth ? (k + kPackDepth - 1) / kPackDepth : 1;
    return ((k + parts - 1) / parts + 7) / 8 * 8;
  }
  // The last panel is one vector wide where that is enough.
  int64_t panel_width(int64_t columns) const {
    return columns > tiles_.lanes ? tiles_.width() : tiles_.lanes;
  }
  bool panel_in_place(int64_t columns) const { return b_in_place_ && columns >= tiles_.width(); }
  const char* at(const void* base, int64_t offset) const {
    return static_cast<const char*>(base) + offset * static_cast<int64_t>(size_of(g_.dtype));
  }
  // First row of tile i of `count` tiles of nearly equal height.
  static int64_t cut(int64_t rows, int64_t i, int64_t count) { return rows * i / count; }
  int64_t tiles_high(int64_t rows) const { return (rows + tiles_.max_rows - 1) / tiles_.max_rows; }

  const char* a_at(int64_t row, int64_t step) const {
    return at(g_.a, row * g_.a_strides[0] + step * Operands::kPerStep * g_.a_strides[1]);
  }
  const char* b_at(int64_t step, int64_t column) const {
    return at(g_.b, step * Operands::kPerStep * g_.b_strides[0] + column * g_.b_strides[1]);
  }
  int64_t elements(int64_t begin, int64_t depth) const {
    return smaller(g_.k - begin * Operands::kPerStep, depth * Operands::kPerStep);
  }

  // Panels [steps][rows], or rows as they lie, converted, where few columns read them.
  void pack_a(int64_t row, int64_t rows, int64_t begin, int64_t depth) {
    if (a_in_place_) {
      return;
    }
    T* target = static_cast<T*>(g_.packed_a);
    if (a_by_rows_) {
      Operands::pack_rows({.source = a_at(row, begin),
                           .dtype = g_.dtype,
                           .k_stride = 1,
                           .column_stride = g_.a_strides[0],
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
                      .dtype = g_.dtype,
                      .k_stride = g_.a_strides[1],
                      .column_stride = g_.a_strides[0],
                      .k = elements(begin, depth),
                      .columns = high,
                      .step_width = high},
                     target + first * depth);
    }
  }

  void multiply(int64_t row, int64_t rows, int64_t begin, int64_t depth) {
    static constexpr int64_t kNoOffset = 0;
    const bool last = begin + depth >= steps_;
    Tile<T> t{.offsets = &kNoOffset, .segments = 1, .length = depth};
    t.c_row = g_.c_row;
    t.rounded = g_.rounded;
    t.accumulate = g_.accumulate || begin > 0;
    t.relu = g_.relu && last;
    // A panel is packed when its first rows come; one that no other rows need makes room for the
    // next.
    const bool packs = row == 0 && !g_.b_is_packed;
    const bool stays = g_.m > kPackRows || g_.keeps_b || g_.b_is_packed;
    for (int64_t j = 0; j < g_.n; j += tiles_.width()) {
      T* panel = static_cast<T*>(g_.packed_b) + (stays ? j * depth : 0);
      t.columns = smaller(g_.n - j, tiles_.width());
      const bool in_place = panel_in_place(t.columns);
      if (packs && !in_place) {
        Operands::pack({.source = b_at(begin, j),
                        .dtype = g_.dtype,
                        .k_stride = g_.b_strides[0],
                        .column_stride = g_.b_strides[1],
                        .k = elements(begin, depth),
                        .columns = t.columns,
                        .step_width = panel_width(t.columns)},
                       panel);
      }
      t.b = in_place ? reinterpret_cast<const T*>(b_at(begin, j)) : panel;
      t.b_step = in_place ? g_.b_strides[0] : panel_width(t.columns);
      t.bias = g_.bias && last ? static_cast<const typename Tile<T>::Sum*>(g_.bias) + j : nullptr;
      multiply_panel(t, row, rows, begin, j);
    }
  }

  void multiply_panel(Tile<T>& t, int64_t row, int64_t rows, int64_t begin, int64_t column) {
    const int64_t count = tiles_high(rows);
    char* c = static_cast<char*>(g_.c) + (row * g_.c_row + column) * c_size_;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = cut(rows, i, count), high = cut(rows, i + 1, count) - first;
      bool rows_contiguous = true;
      if (a_in_place_) {
        rows_contiguous = g_.a_strides[1] != 1;
        t.a = reinterpret_cast<const T*>(a_at(row + first, begin));
        t.a_row = g_.a_strides[0] / Operands::kPerStep;
        t.a_step = g_.a_strides[1];
      } else {
        t.a = static_cast<const T*>(g_.packed_a) + first * t.length;
        rows_contiguous = !a_by_rows_;
        t.a_row = a_by_rows_ ? t.length : 1;
        t.a_step = a_by_rows_ ? 1 : high;
      }
      t.c = c + first * t.c_row * c_size_;
      tiles_.get(high, t.columns, rows_contiguous)(t);
    }
  }

  const GemmBlock& g_;
  const TileSet<T>& tiles_;
  const int64_t steps_, c_size_;
  const bool a_in_place_, a_by_rows_, b_in_place_;
};

}  // namespace
}  // namespace binade::kernels::BINADE_ISA
