// Panels and grids of tiles for kernels that know their operands' geometry (kernels/contraction.h).
#include <binade/kernels/contraction.h>

namespace binade::kernels::BINADE_ISA {
namespace {

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// The last panel is one vector wide where that is enough.
template <class T>
int64_t panel_width(const TileSet<T>& tiles, int64_t columns) {
  return columns > tiles.lanes ? tiles.width() : tiles.lanes;
}

template <class T>
void pack(const PanelPacking& p, const TileSet<T>& tiles) {
  const int64_t size = static_cast<int64_t>(size_of(p.from));
  T* panel = static_cast<T*>(p.target);
  for (int64_t j = 0; j < p.columns; j += tiles.width(), panel += p.total_rows * tiles.width()) {
    const int64_t width = panel_width(tiles, p.columns - j);
    copy_strided({.source = static_cast<const char*>(p.source) + j * p.column_stride * size,
                  .from = p.from,
                  .to = sizeof(T) == 8 ? DType::f64 : DType::f32,
                  .source_strides = {0, p.row_stride, p.column_stride},
                  .target = panel + p.first_row * width,
                  .target_strides = {0, width, 1},
                  .sizes = {1, p.rows, smaller(p.columns - j, width)},
                  .padded_columns = width});
  }
}

template <class T>
void run_panel(const TileGrid& g, const TileSet<T>& tiles, Tile<T>& t, int64_t column) {
  const bool rows_contiguous = g.a_step != 1 || g.a_row == 1;
  const int64_t count = (g.rows + tiles.max_rows - 1) / tiles.max_rows;
  for (int64_t o = 0; o < g.outer[0]; ++o) {
    for (int64_t p = 0; p < g.outer[1]; ++p) {
      const T* a = static_cast<const T*>(g.a) + o * g.a_outer[0] + p * g.a_outer[1];
      T* c = static_cast<T*>(g.c) + o * g.c_outer[0] + p * g.c_outer[1] + column;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t first = g.rows * i / count, high = g.rows * (i + 1) / count - first;
        t.a = a + first * g.a_row;
        t.c = c + first * g.c_row;
        tiles.get(high, t.columns, rows_contiguous)(t);
      }
    }
  }
}

template <class T>
void run(const TileGrid& g, const TileSet<T>& tiles) {
  Tile<T> t{.a_row = g.a_row, .a_step = g.a_step, .offsets = g.offsets, .segments = g.segments};
  t.length = g.length;
  t.c_row = g.c_row;
  t.accumulate = g.accumulate;
  t.relu = g.relu;
  for (int64_t j = 0; j < g.columns; j += tiles.width()) {
    t.columns = smaller(g.columns - j, tiles.width());
    t.b = static_cast<const T*>(g.b) + (g.b_step ? j : j * g.segments * g.length);
    t.b_step = g.b_step ? g.b_step : panel_width(tiles, t.columns);
    t.bias = g.bias ? static_cast<const T*>(g.bias) + j : nullptr;
    run_panel(g, tiles, t, j);
  }
}

}  // namespace

void pack_panels(const PanelPacking& p) {
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets(f32, f64);
  p.from == DType::f64 ? pack(p, f64) : pack(p, f32);
}

void tile_grid(const TileGrid& g) {
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets(f32, f64);
  g.compute == DType::f64 ? run(g, f64) : run(g, f32);
}

}  // namespace binade::kernels::BINADE_ISA
