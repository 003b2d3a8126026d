// CUDA gather and one_hot: one thread per element of the result. If whole rows are copied, the
// elements are as wide as the layout allows, up to 16 bytes: rows are read and written as vectors,
// and the threads of a row read the same index.
#include <binade/kernels/index/index_internal.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
enum Operand { kResult, kIndex, kSource };

struct GatherPlan {
  StridedIndex<3> index;  // result, index, source without the indexed dimension
  int64_t along;          // source: bytes between elements of the indexed dimension
  int64_t bound, exempt;
  FaultSite site;
};

template <class W>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const __grid_constant__ GatherPlan plan, W nothing) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < plan.index.numel;
       i += threads) {
    std::byte* at[3];
    plan.index.locate(i, at);
    const int64_t k = *reinterpret_cast<const int64_t*>(at[kIndex]);
    W value = nothing;
    if (dev::in_range(plan.site, k, plan.bound) && k != plan.exempt) {
      value = *reinterpret_cast<const W*>(at[kSource] + k * plan.along);
    }
    *reinterpret_cast<W*>(at[kResult]) = value;
  }
}

__global__ void __launch_bounds__(kThreads)
    one_hot_kernel(const __grid_constant__ StridedIndex<2> index, int64_t classes, FaultSite site) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < index.numel;
       i += threads) {
    std::byte* at[2];
    index.locate(i, at);
    const int64_t k = *reinterpret_cast<const int64_t*>(at[1]);
    int64_t column;
    if (index.wide) {
      column = i % classes;
    } else {
      const auto n = static_cast<uint32_t>(i);
      column = n - index.divider[0].quotient(n) * index.divider[0].divisor();
    }
    if (column == 0) {
      dev::in_range(site, k, classes);
    }
    *reinterpret_cast<int64_t*>(at[0]) = column == k;
  }
}

// launchers ---------------------------------------------------------------------------------------

// Appends dimension d of the operands, innermost first, and merges it with the previous one if both
// form one range in all operands.
void append(StridedIndex<3>& index, int64_t size, const int64_t (&stride)[3]) {
  const int last = index.dims - 1;
  bool merge = last >= 0;
  for (int k = 0; merge && k < 3; ++k) {
    merge = stride[k] == index.stride[k][last] * index.size[last];
  }
  if (merge) {
    index.set_size(last, index.size[last] * size);
    return;
  }
  for (int k = 0; k < 3; ++k) {
    index.stride[k][index.dims] = stride[k];
  }
  index.set_size(index.dims++, size);
}

GatherPlan gather_plan(const Gather& a) {
  const int64_t width = static_cast<int64_t>(size_of(a.y.dtype));
  GatherPlan plan{.index = {},
                  .along = a.x.strides[a.dim] * width,
                  .bound = a.x.size(a.dim),
                  .exempt = a.exempt,
                  .site = fault_site(a.y.device, a.op, "index")};
  plan.index.dims = 0;
  plan.index.numel = a.y.numel;
  plan.index.wide = a.y.numel >= int64_t{1} << 31;
  plan.index.data[kResult] = a.y.data;
  plan.index.data[kIndex] = a.index.data;
  plan.index.data[kSource] = a.x.data;
  for (int d = a.y.dim() - 1; d >= 0; --d) {
    if (a.y.size(d) == 1) {
      continue;
    }
    append(plan.index, a.y.size(d),
           {a.y.strides[d] * width, a.index.strides[d] * static_cast<int64_t>(sizeof(int64_t)),
            d == a.dim ? 0 : a.x.strides[d] * width});
  }
  if (plan.index.dims == 0) {
    append(plan.index, 1, {width, 0, 0});
  }
  return plan;
}

// The widest element by which rows can be copied, at least the dtype's own width.
int64_t widest(const GatherPlan& plan, int64_t width) {
  const StridedIndex<3>& index = plan.index;
  if (index.stride[kResult][0] != width || index.stride[kSource][0] != width ||
      index.stride[kIndex][0] != 0) {
    return width;
  }
  uint64_t all = static_cast<uint64_t>(index.size[0] * width) |
                 reinterpret_cast<uintptr_t>(index.data[kResult]) |
                 reinterpret_cast<uintptr_t>(index.data[kSource]) |
                 static_cast<uint64_t>(plan.along);
  for (int d = 1; d < index.dims; ++d) {
    all |= static_cast<uint64_t>(index.stride[kResult][d] | index.stride[kSource][d]);
  }
  const auto common = static_cast<int64_t>(all & (~all + 1));
  return common >= 16 ? 16 : common;
}

void widen(GatherPlan& plan, int64_t width, int64_t wide) {
  const int64_t factor = wide / width;
  StridedIndex<3>& index = plan.index;
  index.numel /= factor;
  index.set_size(0, index.size[0] / factor);
  index.stride[kResult][0] *= factor;
  index.stride[kSource][0] *= factor;
}

template <class W>
void launch_gather(const GatherPlan& plan) {
  launch({"gather_kernel", grid_blocks(plan.index.numel, kThreads), kThreads}, gather_kernel<W>,
         plan, W{});
}

}  // namespace

namespace cuda {

void gather(const Gather& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const auto width = static_cast<int64_t>(size_of(a.y.dtype));
  GatherPlan plan = gather_plan(a);
  const int64_t wide = widest(plan, width);
  widen(plan, width, wide);
  switch (wide) {
    case 16: return launch_gather<uint4>(plan);
    case 8: return launch_gather<uint64_t>(plan);
    case 4: return launch_gather<uint32_t>(plan);
    case 2: return launch_gather<uint16_t>(plan);
    default: return launch_gather<uint8_t>(plan);
  }
}

void one_hot(const OneHot& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  View index = a.index;  // the same for all classes
  index.sizes.push_back(a.y.sizes.back());
  index.strides.push_back(0);
  launch({"one_hot_kernel", grid_blocks(a.y.numel, kThreads), kThreads}, one_hot_kernel,
         StridedIndex<2>::row_major({&a.y, &index}), a.y.sizes.back(),
         fault_site(a.y.device, "one_hot", "index"));
}

}  // namespace cuda
}  // namespace binade::kernels
