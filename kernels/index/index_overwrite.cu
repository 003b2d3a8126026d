// CUDA scatter: one thread per entry. If several entries have the same target, the last one must
// win, whatever the order of the threads. Each entry first claims its target by an atomic maximum
// of its number, which does not depend on the order, and only the winner writes.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index_internal.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
using Claim = unsigned long long;  // the number of an entry plus 1

struct Entries {
  StridedIndex<3> loop;  // index, source, target without the indexed dimension
  int64_t step;          // target: bytes between elements of the indexed dimension
  int64_t bound;
  const std::byte* y;
  int64_t width;
  Claim* claims;  // per element of y's storage; null if the indices are distinct
  FaultSite site;

  // The target of entry i, or null if its index is out of range.
  __device__ std::byte* locate(int64_t i, std::byte* (&at)[3]) const {
    loop.locate(i, at);
    const int64_t k = *reinterpret_cast<const int64_t*>(at[0]);
    return dev::in_range(site, k, bound) ? at[2] + k * step : nullptr;
  }
  __device__ Claim* claim_of(const std::byte* target) const {
    return claims + (target - y) / width;
  }
};

__device__ __forceinline__ int64_t first_entry() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t entry_step() {
  return static_cast<int64_t>(gridDim.x) * kThreads;
}

__global__ void __launch_bounds__(kThreads)
    scatter_claim_kernel(const __grid_constant__ Entries entries) {
  for (int64_t i = first_entry(); i < entries.loop.numel; i += entry_step()) {
    std::byte* at[3];
    if (const std::byte* target = entries.locate(i, at)) {
      atomicMax(entries.claim_of(target), static_cast<Claim>(i + 1));
    }
  }
}

template <class W>
__global__ void __launch_bounds__(kThreads)
    scatter_write_kernel(const __grid_constant__ Entries entries) {
  for (int64_t i = first_entry(); i < entries.loop.numel; i += entry_step()) {
    std::byte* at[3];
    std::byte* target = entries.locate(i, at);
    if (target && (!entries.claims || *entries.claim_of(target) == static_cast<Claim>(i + 1))) {
      *reinterpret_cast<W*>(target) = *reinterpret_cast<const W*>(at[1]);
    }
  }
}

// Number of elements from the first to the last one in memory, both included.
int64_t extent_of(const View& view) {
  int64_t last = 0;
  for (int d = 0; d < view.dim(); ++d) {
    last += (view.size(d) - 1) * view.strides[d];
  }
  return last + 1;
}

}  // namespace

void cuda::scatter(const Scatter& a) {
  check_arguments(a);
  if (a.src.numel == 0) {
    return;
  }
  const View lines = target_lines(a);
  const auto width = static_cast<int64_t>(size_of(a.y.dtype));
  const bool claimed = !a.distinct && a.index.size(a.dim) > 1;
  const int64_t extent = claimed && a.y.numel > 0 ? extent_of(a.y) : 0;
  const Workspace claims(static_cast<size_t>(extent) * sizeof(Claim), a.y.device);
  const Entries entries{.loop = StridedIndex<3>::row_major({&a.index, &a.src, &lines}),
                        .step = a.y.strides[a.dim] * width,
                        .bound = a.y.size(a.dim),
                        .y = a.y.data,
                        .width = width,
                        .claims = claimed ? claims.as<Claim>() : nullptr,
                        .site = fault_site(a.y.device, a.op, "index")};
  const unsigned blocks = grid_blocks(entries.loop.numel, kThreads);
  if (claimed) {
    View zeros = a.y;
    zeros.data = claims.as<std::byte>();
    zeros.dtype = DType::i64;
    zeros.sizes = {extent};
    zeros.strides = {1};
    zeros.numel = extent;
    zeros.contiguous = true;
    kernels::fill({.y = zeros, .value = 0});
    launch({"scatter_claim_kernel", blocks, kThreads}, scatter_claim_kernel, entries);
  }
  dispatch_width(a.y.dtype, [&]<class W>(Type<W>) {
    launch({"scatter_write_kernel", blocks, kThreads}, scatter_write_kernel<W>, entries);
  });
}

}  // namespace binade::kernels
