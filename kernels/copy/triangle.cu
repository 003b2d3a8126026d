// CUDA triangular parts: one thread per element, which is read only if it is kept.
#include <binade/kernels/copy/triangle.h>
#include <binade/kernels/cuda/device.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

template <class W>
__global__ void __launch_bounds__(kThreads)
    triangle_kernel(const __grid_constant__ StridedIndex<2> index, int64_t rows, int64_t cols,
                    int64_t diagonal, bool upper) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < index.numel;
       i += threads) {
    std::byte* at[2];
    index.locate(i, at);
    int64_t row, col;
    if (index.wide) {
      row = i / cols % rows;
      col = i % cols;
    } else {  // dimensions 0 and 1 of the index are columns and rows
      const uint32_t above = index.divider[0].quotient(static_cast<uint32_t>(i));
      col = static_cast<uint32_t>(i) - above * index.divider[0].divisor();
      row = above - index.divider[1].quotient(above) * index.divider[1].divisor();
    }
    const bool kept = upper ? col - row >= diagonal : col - row <= diagonal;
    *reinterpret_cast<W*>(at[0]) = kept ? *reinterpret_cast<const W*>(at[1]) : W(0);
  }
}

}  // namespace

void cuda::triangle(const Triangle& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const auto index = StridedIndex<2>::row_major({&a.y, &a.x});
  const int last = a.y.dim() - 1;
  dispatch_width(a.y.dtype, [&]<class W>(Type<W>) {
    launch({"triangle_kernel", grid_blocks(a.y.numel, kThreads), kThreads}, triangle_kernel<W>,
           index, a.y.size(last - 1), a.y.size(last), a.diagonal, a.upper);
  });
}

}  // namespace binade::kernels
