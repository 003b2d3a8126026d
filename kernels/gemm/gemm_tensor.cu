// The fourth step of the gemm ladder: tensor cores through mma.sync (gemm/gemm_tile.cuh), f16 and
// bf16 with f32 sums.
//
// gemm_tensor_tile_kernel: a block of 4 warps computes one tile for one range of k. 128 x 128: each
// warp 64 x 64 of it, a ring of 4 steps of k in 64 KiB, two blocks on a multiprocessor. 64 x 64:
// each warp 32 x 32, for outputs with too few large tiles to fill the device. Row-major and
// column-major operands differ only in how ldmatrix reads them; other strides are copied element by
// element.
#include <binade/kernels/gemm/gemm_kernels.cuh>
#include <binade/kernels/gemm/gemm_tile.cuh>

namespace binade::kernels {
namespace {

template <class T, int kTile, bool kAContiguousK, bool kBContiguousK>
__global__ void __launch_bounds__(128, kTile == 128 ? 2 : 3)
    gemm_tensor_tile_kernel(GemmOperands<T> p) {
  using Tile = TensorTile<T, kTile, kTile, 2, 2, 4, kAContiguousK, kBContiguousK>;
  multiply_tile<T, Tile>(dev::shared_mem<typename Tile::Shared>(), p, kAContiguousK, kBContiguousK);
}

template <class T, int kTile, bool kAContiguousK, bool kBContiguousK>
void launch_tile(const GemmOperands<T>& p) {
  using Tile = TensorTile<T, kTile, kTile, 2, 2, 4, kAContiguousK, kBContiguousK>;
  launch({"gemm_tensor_tile_kernel", gemm_grid(p, kTile, kTile), Tile::kThreads,
          sizeof(typename Tile::Shared)},
         gemm_tensor_tile_kernel<T, kTile, kAContiguousK, kBContiguousK>, p);
}

template <class T, int kTile>
void launch_layout(const GemmOperands<T>& p) {
  if (p.a_k == 1) {
    p.b_k == 1 ? launch_tile<T, kTile, true, true>(p) : launch_tile<T, kTile, true, false>(p);
  } else {
    p.b_k == 1 ? launch_tile<T, kTile, false, true>(p) : launch_tile<T, kTile, false, false>(p);
  }
}

}  // namespace

template <class T>
void launch_gemm_tensor(const GemmOperands<T>& p, int tile) {
  tile == 128 ? launch_layout<T, 128>(p) : launch_layout<T, 64>(p);
}

template void launch_gemm_tensor(const GemmOperands<half>&, int);
template void launch_gemm_tensor(const GemmOperands<bfloat16>&, int);

}  // namespace binade::kernels
