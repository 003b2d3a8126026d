// Implicit-GEMM convolution without tensor cores: the register tile of gemm/gemm_simt.cuh with the
// loaders of conv/conv2d_loaders.cuh. For f32 and f64, and for f16 and bf16 where tensor cores do
// not support them.
//
// conv2d_correlation_register_tile_kernel: forward and backward to the data; a block of 256 threads
// computes kTile target pixels by kTile channels.
//
// conv2d_weight_register_tile_kernel: a block computes output channels by (r, s, c), summed over
// the block's range of pixels.
//
// Only f32 has the tile of 128: f64 would need twice the registers, and f16 and bf16 run here on
// few devices.
#include <binade/kernels/conv/conv2d_kernels.cuh>
#include <binade/kernels/gemm/gemm_simt.cuh>

namespace binade::kernels {
namespace {

// Blocks per multiprocessor. With two, a thread has 128 registers: too few for 64 sums of f32 or 16
// of f64 and the state of the loaders. One block has enough independent sums per thread to hide the
// latency of the arithmetic, and 16 steps of k to hide the latency of the loads.
template <class T, int kTile>
inline constexpr int kBlocks = sizeof(T) == 8 || kTile == 128 ? 1 : 2;

template <class T, int kTile, bool kForward>
__global__ void __launch_bounds__(256, kBlocks<T, kTile>)
    conv2d_correlation_register_tile_kernel(const __grid_constant__ CorrelationProblem<T> p) {
  using Tile = SimtTile<T, kTile>;
  correlate_tile<Tile, kForward>(dev::shared_mem<typename Tile::Shared>(), p);
}

template <class T, int kTile>
__global__ void __launch_bounds__(256, kBlocks<T, kTile>)
    conv2d_weight_register_tile_kernel(const __grid_constant__ WeightProblem<T> p) {
  using Tile = SimtTile<T, kTile>;
  weight_tile<Tile>(dev::shared_mem<typename Tile::Shared>(), p);
}

template <class T, int kTile>
void launch_tile(const CorrelationProblem<T>& p, bool forward) {
  launch({"conv2d_correlation_register_tile_kernel",
          static_cast<unsigned>(p.shape.blocks(kTile, kTile)), 256,
          sizeof(typename SimtTile<T, kTile>::Shared)},
         forward ? conv2d_correlation_register_tile_kernel<T, kTile, true>
                 : conv2d_correlation_register_tile_kernel<T, kTile, false>,
         p);
}

template <class T, int kTile>
void launch_tile(const WeightProblem<T>& p) {
  const dim3 grid(weight_blocks(p.shape, kTile, kTile), static_cast<unsigned>(p.shape.splits));
  launch({"conv2d_weight_register_tile_kernel", grid, 256,
          sizeof(typename SimtTile<T, kTile>::Shared)},
         conv2d_weight_register_tile_kernel<T, kTile>, p);
}

}  // namespace

template <class T>
void launch_conv2d_simt(const CorrelationProblem<T>& p, bool forward, int tile) {
  if constexpr (std::is_same_v<T, float>) {
    if (tile == 128) {
      launch_tile<T, 128>(p, forward);
      return;
    }
  }
  launch_tile<T, 64>(p, forward);
}

template <class T>
void launch_conv2d_simt(const WeightProblem<T>& p, int tile) {
  if constexpr (std::is_same_v<T, float>) {
    if (tile == 128) {
      launch_tile<T, 128>(p);
      return;
    }
  }
  launch_tile<T, 64>(p);
}

#define BINADE_CONV2D(T)                                                     \
  template void launch_conv2d_simt(const CorrelationProblem<T>&, bool, int); \
  template void launch_conv2d_simt(const WeightProblem<T>&, int);
BINADE_CONV2D(double)
BINADE_CONV2D(float)
BINADE_CONV2D(half)
BINADE_CONV2D(bfloat16)
#undef BINADE_CONV2D

}  // namespace binade::kernels
