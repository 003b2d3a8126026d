// Declarations for the kernels of the gemm ladder: the problem, the order of the tiles, and the
// launches from which gemm.cu chooses.
#pragma once
#include <binade/kernels/gemm/gemm_epilogue.cuh>
#include <binade/kernels/gemm/gemm_loader.cuh>

namespace binade::kernels {

// y = epilogue(a b) for each matrix of the batch, any strides (in elements).
template <class T>
struct GemmOperands {
  int64_t batches = 1, m = 0, n = 0, k = 0;
  const T *a = nullptr, *b = nullptr;
  int64_t a_batch = 0, a_row = 0, a_k = 0;
  int64_t b_batch = 0, b_k = 0, b_column = 0;
  bool a_vector = false, b_vector = false;  // 16-byte chunks along the contiguous dimension
  int64_t y_batch = 0;
  TileStore<T> output;  // of matrix 0
  int splits = 1;       // of k; the sums of split s go to partials, [splits, batches, m, n]
  int64_t split_k = 0;  // a multiple of 32
  Compute<T>* partials = nullptr;

  __device__ __forceinline__ DenseLoader<T> a_loader(int64_t batch, int64_t k_end,
                                                     bool k_contiguous) const {
    return {a + batch * a_batch, a_row, a_k, m, k_end, k_contiguous, a_vector};
  }
  __device__ __forceinline__ DenseLoader<T> b_loader(int64_t batch, int64_t k_end,
                                                     bool k_contiguous) const {
    return {b + batch * b_batch, b_column, b_k, n, k_end, k_contiguous, b_vector};
  }
  __device__ __forceinline__ TileStore<T> store(int64_t batch, int split) const {
    TileStore<T> result = output;
    result.y += batch * y_batch;
    result.partial = splits > 1 ? partials + (split * batches + batch) * m * n : nullptr;
    return result;
  }
};

// The tile of block `index`. Groups of 8 rows of tiles are visited column by column, so that blocks
// that run at the same time share rows of a and columns of b in the L2 cache.
struct TilePosition {
  int64_t row, column;  // of tiles
};
__device__ __forceinline__ TilePosition tile_position(int64_t index, int64_t tiles_m,
                                                      int64_t tiles_n) {
  constexpr int64_t kGroup = 8;
  const int64_t group = index / (kGroup * tiles_n), first = group * kGroup;
  const int64_t rows = std::min(kGroup, tiles_m - first), rest = index - first * tiles_n;
  return {first + rest % rows, rest / rows};
}

// The grid. x: tiles, y: splits, z: batches; kernels loop over further batches.
template <class T>
dim3 gemm_grid(const GemmOperands<T>& p, int tile_m, int tile_n) {
  constexpr int64_t kMost = 65535;
  return dim3(static_cast<unsigned>(ceil_div(p.m, tile_m) * ceil_div(p.n, tile_n)),
              static_cast<unsigned>(p.splits),
              static_cast<unsigned>(p.batches < kMost ? p.batches : kMost));
}

// Multiplies with a block tile: the body of the kernels around SimtTile and TensorTile.
template <class T, class Tile>
__device__ __forceinline__ void multiply_tile(typename Tile::Shared& shared,
                                              const GemmOperands<T>& p, bool a_k_contiguous,
                                              bool b_k_contiguous) {
  const int64_t tiles_m = (p.m + Tile::kM - 1) / Tile::kM;
  const int64_t tiles_n = (p.n + Tile::kN - 1) / Tile::kN;
  const TilePosition tile = tile_position(blockIdx.x, tiles_m, tiles_n);
  const int split = static_cast<int>(blockIdx.y);
  const int64_t k = split * p.split_k, k_end = p.splits > 1 ? std::min(p.k, k + p.split_k) : p.k;
  for (int64_t batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    Tile::run(shared, p.a_loader(batch, k_end, a_k_contiguous),
              p.b_loader(batch, k_end, b_k_contiguous),
              {tile.row * Tile::kM, tile.column * Tile::kN, k, k_end}, p.store(batch, split));
    __syncthreads();  // the next matrix uses the same shared memory
  }
}

template <class T>
void launch_gemm_naive(const GemmOperands<T>& p);
template <class T>
void launch_gemm_tiled(const GemmOperands<T>& p);
template <class T>
void launch_gemm_simt(const GemmOperands<T>& p, int tile);  // 64 or 128; f64 always 64
template <class T>
void launch_gemm_tensor(const GemmOperands<T>& p, int tile);  // half and bfloat16; 64 or 128
template <class T>
void launch_gemm_split_sum(const GemmOperands<T>& p);

}  // namespace binade::kernels
