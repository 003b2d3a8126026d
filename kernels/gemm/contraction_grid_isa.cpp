// Panels and grids of tiles for kernels that know their operands' geometry
// (kernels/gemm/contraction_internal.h).
#include <binade/kernels/gemm/contraction_grid_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

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
  g.compute == DType::f64 ? Grid<double>(g, f64).run() : Grid<float>(g, f32).run();
}

}  // namespace binade::kernels::BINADE_ISA
