// One single-threaded block of a matrix product: packs a into panels as high as a register tile and
// b into panels as wide, kPackDepth of k at a time, and runs the tiles. Operands that a tile can
// read in place are not packed where they would be read only a few times.
#include <binade/kernels/contraction.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kUnpackedSteps = 32;  // the same where rows of a are strided
constexpr int64_t kUnpackedRows = 64;   // up to this m rows of b are read at most 11 times

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
class Block {
 public:
  Block(const GemmBlock& g, const TileSet<T>& tiles)
      : g_(g),
        tiles_(tiles),
        a_in_place_(sizeof(T) == size_of(g.dtype) && (g.a_strides[0] == 1 || g.a_strides[1] == 1) &&
                    (g.a_strides[1] == 1 ? g.k <= kPackDepth || g.n <= kUnpackedColumns
                                         : g.n <= kUnpackedSteps)),
        b_in_place_(sizeof(T) == size_of(g.dtype) && g.b_strides[1] == 1 && g.m <= kUnpackedRows) {}

  void run() {
    int64_t begin = 0;
    do {  // once for k = 0
      const int64_t depth = smaller(g_.k - begin, depth_of_part(g_.k));
      for (int64_t row = 0; row < g_.m; row += kPackRows) {
        const int64_t rows = smaller(g_.m - row, kPackRows);
        pack_a(row, rows, begin, depth);
        multiply(row, rows, begin, depth);
      }
      begin += depth;
    } while (begin < g_.k);
  }

 private:
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

  void pack(const void* source, const int64_t strides[2], int64_t rows, int64_t columns,
            int64_t width, T* target) {
    const DType compute = sizeof(T) == 8 ? DType::f64 : DType::f32;
    copy_strided({.source = source,
                  .from = g_.dtype,
                  .to = compute,
                  .source_strides = {0, strides[0], strides[1]},
                  .target = target,
                  .target_strides = {0, width, 1},
                  .sizes = {1, rows, columns},
                  .padded_columns = width});
  }

  void pack_a(int64_t row, int64_t rows, int64_t begin, int64_t depth) {
    if (a_in_place_) {
      return;
    }
    const int64_t count = tiles_high(rows), strides[2] = {g_.a_strides[1], g_.a_strides[0]};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = cut(rows, i, count), high = cut(rows, i + 1, count) - first;
      pack(at(g_.a, (row + first) * g_.a_strides[0] + begin * g_.a_strides[1]), strides, depth,
           high, high, static_cast<T*>(g_.packed_a) + first * depth);
    }
  }

  void multiply(int64_t row, int64_t rows, int64_t begin, int64_t depth) {
    static constexpr int64_t kNoOffset = 0;
    const bool last = begin + depth >= g_.k;
    Tile<T> t{.offsets = &kNoOffset, .segments = 1, .length = depth};
    t.c_row = g_.c_row;
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
        pack(at(g_.b, begin * g_.b_strides[0] + j * g_.b_strides[1]), g_.b_strides, depth,
             t.columns, panel_width(t.columns), panel);
      }
      t.b = in_place ? static_cast<const T*>(g_.b) + begin * g_.b_strides[0] + j : panel;
      t.b_step = in_place ? g_.b_strides[0] : panel_width(t.columns);
      t.bias = g_.bias && last ? static_cast<const T*>(g_.bias) + j : nullptr;
      t.c = static_cast<T*>(g_.c) + row * g_.c_row + j;
      multiply_panel(t, row, rows, begin);
    }
  }

  void multiply_panel(Tile<T>& t, int64_t row, int64_t rows, int64_t begin) {
    const int64_t count = tiles_high(rows);
    T* c = t.c;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = cut(rows, i, count), high = cut(rows, i + 1, count) - first;
      bool rows_contiguous = true;
      if (a_in_place_) {
        rows_contiguous = g_.a_strides[1] != 1;
        t.a =
            static_cast<const T*>(g_.a) + (row + first) * g_.a_strides[0] + begin * g_.a_strides[1];
        t.a_row = g_.a_strides[0];
        t.a_step = g_.a_strides[1];
      } else {
        t.a = static_cast<const T*>(g_.packed_a) + first * t.length;
        t.a_step = high;
      }
      t.c = c + first * t.c_row;
      tiles_.get(high, t.columns, rows_contiguous)(t);
    }
  }

  const GemmBlock& g_;
  const TileSet<T>& tiles_;
  const bool a_in_place_, b_in_place_;
};

}  // namespace

void gemm_block(const GemmBlock& g) {
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets(f32, f64);
  if (g.dtype == DType::f64) {
    Block<double>(g, f64).run();
  } else {
    Block<float>(g, f32).run();
  }
}

}  // namespace binade::kernels::BINADE_ISA
