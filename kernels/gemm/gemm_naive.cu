// The first two steps of the gemm ladder, for reading and for comparison.
//
// gemm_thread_per_element_kernel: one thread sums one element of y, reading its row of a and its
// column of b from global memory. Neighbouring threads read neighbouring elements of b, and the
// same of a; every value is read m or n times.
//
// gemm_shared_tile_kernel: a block of 32 x 8 threads computes a 32 x 32 tile. For each 32 of k the
// block copies one square of a and one of b to shared memory, where each value then serves 32
// sums; a thread keeps 4 elements of a column of the tile in registers. Any strides: the threads of
// a warp run along whichever dimension of the operand is contiguous.
#include <binade/kernels/gemm/gemm_kernels.cuh>

namespace binade::kernels {
namespace {

template <class T>
__global__ void __launch_bounds__(256) gemm_thread_per_element_kernel(GemmOperands<T> p) {
  using C = Compute<T>;
  const int64_t count = p.batches * p.m * p.n;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    const int64_t batch = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
    const T* a = p.a + batch * p.a_batch + row * p.a_row;
    const T* b = p.b + batch * p.b_batch + column * p.b_column;
    C sum[1] = {0};
    for (int64_t k = 0; k < p.k; ++k) {
      sum[0] += static_cast<C>(a[k * p.a_k]) * static_cast<C>(b[k * p.b_k]);
    }
    p.store(batch, 0)(row, column, sum);
  }
}

template <class T>
struct SharedSquares {
  Compute<T> a[32][33], b[32][33];  // [k][row], [k][column]; padded against bank conflicts
};

// An operand: rows of a or columns of b, and k.
template <class T>
struct OperandMatrix {
  const T* data;
  int64_t outer_end, k_end, outer_stride, k_stride;
};

// Copies rows [outer, outer + 32) and columns [k, k + 32) of a matrix; zeros outside of it.
template <class T>
__device__ void copy_square(const OperandMatrix<T>& m, int64_t outer, int64_t k,
                            Compute<T> (&square)[32][33]) {
  const int x = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int y = static_cast<int>(threadIdx.y); y < 32; y += 8) {
    const int i = m.k_stride == 1 ? y : x, j = m.k_stride == 1 ? x : y;
    const bool inside = outer + i < m.outer_end && k + j < m.k_end;
    const int64_t at = (outer + i) * m.outer_stride + (k + j) * m.k_stride;
    square[j][i] = inside ? static_cast<Compute<T>>(m.data[at]) : Compute<T>(0);
  }
}

template <class T>
__global__ void __launch_bounds__(256) gemm_shared_tile_kernel(GemmOperands<T> p) {
  using C = Compute<T>;
  auto& shared = dev::shared_mem<SharedSquares<T>>();
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int64_t tiles_n = (p.n + 31) / 32;
  const int64_t row = blockIdx.x / tiles_n * 32, column = blockIdx.x % tiles_n * 32;
  for (int64_t batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    C sums[4] = {};
    const OperandMatrix<T> a{p.a + batch * p.a_batch, p.m, p.k, p.a_row, p.a_k};
    const OperandMatrix<T> b{p.b + batch * p.b_batch, p.n, p.k, p.b_column, p.b_k};
    for (int64_t k = 0; k < p.k; k += 32) {
      copy_square(a, row, k, shared.a);
      copy_square(b, column, k, shared.b);
      __syncthreads();
      for (int j = 0; j < 32; ++j) {
        const C factor = shared.b[j][x];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[i] += shared.a[j][y + i * 8] * factor;
        }
      }
      __syncthreads();
    }
    const TileStore<T> store = p.store(batch, 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      C sum[1] = {sums[i]};
      store(row + y + i * 8, column + x, sum);
    }
  }
}

}  // namespace

template <class T>
void launch_gemm_naive(const GemmOperands<T>& p) {
  launch({"gemm_thread_per_element_kernel", grid_blocks(p.batches * p.m * p.n, 256), 256},
         gemm_thread_per_element_kernel<T>, p);
}

template <class T>
void launch_gemm_tiled(const GemmOperands<T>& p) {
  launch({"gemm_shared_tile_kernel", gemm_grid(p, 32, 32), dim3(32, 8), sizeof(SharedSquares<T>)},
         gemm_shared_tile_kernel<T>, p);
}

#define BINADE_GEMM(T)                                     \
  template void launch_gemm_naive(const GemmOperands<T>&); \
  template void launch_gemm_tiled(const GemmOperands<T>&);
BINADE_GEMM(double)
BINADE_GEMM(float)
BINADE_GEMM(half)
BINADE_GEMM(bfloat16)

}  // namespace binade::kernels
