// Implicit-GEMM convolution on tensor cores, f16 and bf16 with f32 sums: the block tile of
// gemm/gemm_tile.cuh with the loaders of conv/conv2d_loaders.cuh.
//
// conv2d_correlation_tensor_tile_kernel: forward and backward to the data. A block of 4 warps
// computes kM target pixels by kN channels; each step of 32 along k copies, by cp.async, 16-byte
// chunks of channels of the source under one tap, zero-filled outside of the image, and of the
// weights. 128 x 128 is the full tile; 128 x 64 is for layers of up to 64 channels, where half of a
// full tile would be empty; 64 x 64 is for outputs with too few large tiles to fill the device.
//
// conv2d_weight_tensor_tile_kernel: a block computes output channels by (r, s, c), summed over the
// block's range of pixels; both operands are stored with pixels as rows, and ldmatrix transposes
// them.
#include <binade/kernels/conv/conv2d_kernels.cuh>
#include <binade/kernels/gemm/gemm_tile.cuh>

namespace binade::kernels {
namespace {

constexpr int kStages = 4;

template <class T, int kM, int kN, bool kForward>
__global__ void __launch_bounds__(128, kM == 128 ? 2 : 4)
    conv2d_correlation_tensor_tile_kernel(const __grid_constant__ CorrelationProblem<T> p) {
  using Tile = TensorTile<T, kM, kN, 2, 2, kStages, true, kForward>;
  correlate_tile<Tile, kForward>(dev::shared_mem<typename Tile::Shared>(), p);
}

template <class T, int kTile>
__global__ void __launch_bounds__(128, kTile == 128 ? 2 : 4)
    conv2d_weight_tensor_tile_kernel(const __grid_constant__ WeightProblem<T> p) {
  using Tile = TensorTile<T, kTile, kTile, 2, 2, kStages, false, false>;
  weight_tile<Tile>(dev::shared_mem<typename Tile::Shared>(), p);
}

template <class T, int kM, int kN, bool kForward>
void launch_correlation(const CorrelationProblem<T>& p) {
  using Tile = TensorTile<T, kM, kN, 2, 2, kStages, true, kForward>;
  launch({"conv2d_correlation_tensor_tile_kernel", static_cast<unsigned>(p.shape.blocks(kM, kN)),
          Tile::kThreads, sizeof(typename Tile::Shared)},
         conv2d_correlation_tensor_tile_kernel<T, kM, kN, kForward>, p);
}

template <class T, bool kForward>
void launch_correlation(const CorrelationProblem<T>& p, int tile) {
  if (tile == 64) {
    launch_correlation<T, 64, 64, kForward>(p);
  } else if (p.shape.produced <= 64) {
    launch_correlation<T, 128, 64, kForward>(p);
  } else {
    launch_correlation<T, 128, 128, kForward>(p);
  }
}

template <class T, int kTile>
void launch_weight(const WeightProblem<T>& p) {
  using Tile = TensorTile<T, kTile, kTile, 2, 2, kStages, false, false>;
  const dim3 grid(weight_blocks(p.shape, kTile, kTile), static_cast<unsigned>(p.shape.splits));
  launch({"conv2d_weight_tensor_tile_kernel", grid, Tile::kThreads, sizeof(typename Tile::Shared)},
         conv2d_weight_tensor_tile_kernel<T, kTile>, p);
}

}  // namespace

template <class T>
void launch_conv2d_tensor(const CorrelationProblem<T>& p, bool forward, int tile) {
  forward ? launch_correlation<T, true>(p, tile) : launch_correlation<T, false>(p, tile);
}
template <class T>
void launch_conv2d_tensor(const WeightProblem<T>& p, int tile) {
  tile == 128 ? launch_weight<T, 128>(p) : launch_weight<T, 64>(p);
}

#define BINADE_CONV2D(T)                                                       \
  template void launch_conv2d_tensor(const CorrelationProblem<T>&, bool, int); \
  template void launch_conv2d_tensor(const WeightProblem<T>&, int);
BINADE_CONV2D(half)
BINADE_CONV2D(bfloat16)
#undef BINADE_CONV2D

}  // namespace binade::kernels
