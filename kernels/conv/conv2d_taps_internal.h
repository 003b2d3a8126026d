// Packed weights of a convolution as a caller keeps them (kernels/base/weight_packing.h): panels of
// output channels whose rows are (tap, input channel), as pack_panels writes them. The direct
// kernel and Winograd read the same packing.
#pragma once
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/weight_packing.h>
#include <binade/kernels/gemm/contraction_internal.h>

namespace binade::kernels {

// Columns of packed panels: the last panel is one vector wide if that is enough.
inline int64_t whole_vectors(int64_t columns, DType compute) {
  TileSet<float> f32;
  TileSet<double> f64;
  tile_sets_best(f32, f64);
  const int64_t lanes = compute == DType::f64 ? f64.lanes : f32.lanes;
  return ceil_div(columns, lanes) * lanes;
}

inline PackingFormat taps_format(int64_t elements, int64_t element_size, bool pairs) {
  return {.order = PackingFormat::Order::convolution_taps,
          .pairs = pairs,
          .bytes = static_cast<size_t>(elements * element_size)};
}

}  // namespace binade::kernels
