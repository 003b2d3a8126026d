// CUDA index_offset: one thread per offset.
#include <binade/kernels/index/index_offset.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

struct OffsetPlan {
  StridedIndex<2> loop;  // offsets, indices
  int64_t bound, step;
  bool accumulate;
  FaultSite site;
};

__global__ void __launch_bounds__(kThreads)
    index_offset_kernel(const __grid_constant__ OffsetPlan p) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.loop.numel;
       i += threads) {
    std::byte* at[2];
    p.loop.locate(i, at);
    auto* offset = reinterpret_cast<int64_t*>(at[0]);
    const int64_t given = *reinterpret_cast<const int64_t*>(at[1]);
    int64_t k = given < 0 ? given + p.bound : given;
    if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(p.bound)) {
      dev::report_fault(p.site, given, p.bound);
      k = 0;
    }
    *offset = (p.accumulate ? *offset : 0) + k * p.step;
  }
}

}  // namespace

void cuda::index_offset(const IndexOffset& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  launch({"index_offset_kernel", grid_blocks(a.y.numel, kThreads), kThreads}, index_offset_kernel,
         OffsetPlan{.loop = StridedIndex<2>(StridedLoop(a.op, {&a.y, &a.index})),
                    .bound = a.bound,
                    .step = a.step,
                    .accumulate = a.accumulate,
                    .site = fault_site(a.y.device, a.op, "index")});
}

}  // namespace binade::kernels
