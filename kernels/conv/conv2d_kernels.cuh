// Shared by the kernels of convolution: the problems as block tiles see them, the bodies of the
// kernels around those tiles, and the launches that conv2d.cu chooses from.
#pragma once
#include <binade/kernels/conv/conv2d_loaders.cuh>
#include <binade/kernels/gemm/gemm_epilogue.cuh>

namespace binade::kernels {

// conv2d_forward, or conv2d_backward_data, which has no activation.
template <class T>
struct CorrelationProblem {
  CorrelationShape shape;
  const T *source = nullptr, *w = nullptr;
  T* target = nullptr;
  DeviceEpilogue<T> epilogue = {};
};

template <class T>
struct WeightProblem {
  WeightGradient shape;
  const T *x = nullptr, *dy = nullptr;
  Compute<T>* partials = nullptr;  // [splits, O, R, S, group_c]
};

// Writes the rows of a tile to the pixels of the target.
template <class T>
class TargetPixels {
 public:
  __device__ __forceinline__ TargetPixels(const CorrelationProblem<T>& p,
                                          const CorrelationTile& tile)
      : p_(p), tile_(tile) {
    const int64_t channel = static_cast<int64_t>(tile.group) * p.shape.produced;
    pixel_.y = p.target + channel;
    pixel_.rows = 1;
    pixel_.columns = p.shape.produced;
    pixel_.epilogue = p.epilogue.from(channel);
    pixel_.vector = p.shape.vector_target;
  }

  template <int N>
  __device__ __forceinline__ void operator()(int64_t row, int64_t column,
                                             Compute<T> (&sums)[N]) const {
    if (row >= tile_.rows) {
      return;
    }
    int i, j;
    const CorrelationShape& shape = p_.shape;
    const int64_t image = tile_.pixel(row, i, j);
    TileStore<T> pixel = pixel_;
    pixel.y += image * shape.target_strides[0] +
               (tile_.v->first + i * shape.vertical.target_step) * shape.target_strides[1] +
               (tile_.h->first + j * shape.horizontal.target_step) * shape.target_strides[2];
    pixel(0, column, sums);
  }

 private:
  const CorrelationProblem<T>& p_;
  const CorrelationTile& tile_;
  TileStore<T> pixel_;
};

// Forward if kForward (k of the weights is contiguous), else backward to the data.
template <class Tile, bool kForward, class T>
__device__ __forceinline__ void correlate_tile(typename Tile::Shared& shared,
                                               const CorrelationProblem<T>& p) {
  const CorrelationTile tile(p.shape, Tile::kM, Tile::kN);
  if (tile.row >= tile.rows) {
    return;  // the whole block: this phase has fewer tiles than the largest
  }
  const SourcePixels<T> source(p.shape, tile, p.source);
  const TargetPixels<T> target(p, tile);
  const TileRange range{tile.row, tile.column, 0, tile.k_end};
  if constexpr (kForward) {
    const T* w = p.w + static_cast<int64_t>(tile.group) * p.shape.produced * p.shape.weight_o;
    const DenseLoader<T> weights{w,    p.shape.weight_o,      1, p.shape.produced, tile.k_end,
                                 true, p.shape.vector_weights};
    Tile::run(shared, source, weights, range, target);
  } else {
    const WeightTaps<T> weights(p.shape, tile, p.w);
    Tile::run(shared, source, weights, range, target);
  }
}

// blockIdx.x: column tiles, row tiles, groups; blockIdx.y: the split of the pixels.
template <class Tile, class T>
__device__ __forceinline__ void weight_tile(typename Tile::Shared& shared,
                                            const WeightProblem<T>& p) {
  const WeightGradient& shape = p.shape;
  const unsigned column_tiles = static_cast<unsigned>((shape.columns - 1) / Tile::kN + 1);
  const unsigned row_tiles = static_cast<unsigned>((shape.group_o - 1) / Tile::kM + 1);
  const int64_t column = static_cast<int64_t>(blockIdx.x % column_tiles) * Tile::kN;
  const int64_t row = static_cast<int64_t>(blockIdx.x / column_tiles % row_tiles) * Tile::kM;
  const int group = static_cast<int>(blockIdx.x / column_tiles / row_tiles);
  const int64_t first = blockIdx.y * shape.split_pixels;
  const int64_t left = shape.pixels - first;
  const int count = static_cast<int>(left < shape.split_pixels ? left : shape.split_pixels);

  const int64_t channel = static_cast<int64_t>(group) * shape.group_o;
  const DenseLoader<T> dy{p.dy + first * shape.dy_stride + channel,
                          1,
                          shape.dy_stride,
                          shape.group_o,
                          count,
                          false,
                          shape.vector_dy};
  const ImagePatches<T> x(shape, p.x, group, first, count);
  TileStore<Compute<T>> sums;
  sums.y = p.partials + ((blockIdx.y * shape.groups + group) * shape.group_o) * shape.columns;
  sums.rows = shape.group_o;
  sums.columns = sums.row_stride = shape.columns;
  sums.vector = shape.vector_partials;
  Tile::run(shared, dy, x, {row, column, 0, count}, sums);
}

inline unsigned weight_blocks(const WeightGradient& p, int tile_rows, int tile_columns) {
  return static_cast<unsigned>(ceil_div(p.columns, tile_columns) * ceil_div(p.group_o, tile_rows) *
                               p.groups);
}

// Launches with tensor-core tiles (half, bfloat16) or register tiles; `tile` is 64 or 128 rows.
template <class T>
void launch_conv2d_tensor(const CorrelationProblem<T>& p, bool forward, int tile);
template <class T>
void launch_conv2d_tensor(const WeightProblem<T>& p, int tile);
template <class T>
void launch_conv2d_simt(const CorrelationProblem<T>& p, bool forward, int tile);
template <class T>
void launch_conv2d_simt(const WeightProblem<T>& p, int tile);

// One thread per output element, any layout and size. Outputs must not be empty.
void conv2d_forward_direct(const Conv2dForward& a, const Conv2dSizes& size);
void conv2d_backward_data_direct(const Conv2dBackwardData& a, const Conv2dSizes& size);
void conv2d_backward_weight_direct(const Conv2dBackwardWeight& a, const Conv2dSizes& size);

// dw = the sum over the splits, in their order, of partials [splits, O, R, S, C / groups] in the
// compute dtype. With no splits dw is zero.
void conv2d_sum_weight_partials(const void* partials, int64_t splits, const View& dw);

}  // namespace binade::kernels
