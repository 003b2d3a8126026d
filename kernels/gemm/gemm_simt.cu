// The third step of the gemm ladder: register tiles without tensor cores (gemm/gemm_simt.cuh).
//
// gemm_register_tile_kernel: a block computes one kTile x kTile tile for one range of k, 16-byte
// loads, 8 x 8 (tile 128) or 4 x 4 (tile 64) elements per thread. Tile 64 gives small outputs
// enough blocks, and f64 enough registers.
//
// gemm_split_sum_kernel: where k was split over blocks, one thread per element of y adds the
// splits' sums in order and applies the epilogue.
#include <binade/kernels/gemm/gemm_kernels.cuh>
#include <binade/kernels/gemm/gemm_simt.cuh>

namespace binade::kernels {
namespace {

template <class T, int kTile>
__global__ void __launch_bounds__(256, kTile == 128 ? 1 : 2)
    gemm_register_tile_kernel(GemmOperands<T> p) {
  using Tile = SimtTile<T, kTile>;
  multiply_tile<T, Tile>(dev::shared_mem<typename Tile::Shared>(), p, p.a_k == 1, p.b_k == 1);
}

template <class T>
__global__ void __launch_bounds__(256) gemm_split_sum_kernel(GemmOperands<T> p) {
  const int64_t matrix = p.m * p.n, count = p.batches * matrix;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    Compute<T> sum[1] = {p.partials[i]};
    for (int split = 1; split < p.splits; ++split) {
      sum[0] += p.partials[split * count + i];
    }
    TileStore<T> store = p.store(i / matrix, 0);
    store.partial = nullptr;
    store(i % matrix / p.n, i % p.n, sum);
  }
}

template <class T, int kTile>
void launch_tile(const GemmOperands<T>& p) {
  launch({"gemm_register_tile_kernel", gemm_grid(p, kTile, kTile), 256,
          sizeof(typename SimtTile<T, kTile>::Shared)},
         gemm_register_tile_kernel<T, kTile>, p);
}

}  // namespace

template <class T>
void launch_gemm_simt(const GemmOperands<T>& p, int tile) {
  if constexpr (sizeof(T) <= 4) {
    if (tile == 128) {
      launch_tile<T, 128>(p);
      return;
    }
  }
  launch_tile<T, 64>(p);
}

template <class T>
void launch_gemm_split_sum(const GemmOperands<T>& p) {
  launch({"gemm_split_sum_kernel", grid_blocks(p.batches * p.m * p.n, 256), 256},
         gemm_split_sum_kernel<T>, p);
}

#define BINADE_GEMM(T)                                         \
  template void launch_gemm_simt(const GemmOperands<T>&, int); \
  template void launch_gemm_split_sum(const GemmOperands<T>&);
BINADE_GEMM(double)
BINADE_GEMM(float)
BINADE_GEMM(half)
BINADE_GEMM(bfloat16)

}  // namespace binade::kernels
