// CUDA embedding_bag: a thread per element of the result; neighbouring threads read neighbouring
// columns.
#include <binade/kernels/index/embedding_bag_internal.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

template <class T>
struct Plan {
  const T *weight, *factors;
  const int64_t *index, *offsets;
  T* y;
  int64_t* chosen;
  int64_t rows, columns, bags, entries, row_stride, column_stride, exempt;
  BagMode mode;
  FaultSite site;  // of the index
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    embedding_bag_kernel(const __grid_constant__ Plan<T> p) {
  using C = Compute<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, items = p.bags * p.columns;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < items;
       item += step) {
    const int64_t bag = item / p.columns, column = item - bag * p.columns;
    const BagEntries entries(p.offsets, bag, p.bags, p.entries,
                             [&](const char* what, int64_t value, int64_t bound) {
                               FaultSite site = p.site;
                               site.what = what;
                               dev::report_fault(site, value, bound);
                             });
    const T* source = p.weight + column * p.column_stride;
    C sum = 0;
    int64_t count = 0;
    BagMaximum<C> largest;
    for (int64_t e = entries.begin; e < entries.end; ++e) {
      const int64_t k = p.index[e];
      if (!dev::in_range(p.site, k, p.rows) || k == p.exempt) {
        continue;
      }
      const C x = static_cast<C>(source[k * p.row_stride]);
      if (p.mode == BagMode::max) {
        largest.add(x, k);
      } else {
        sum += p.factors ? x * static_cast<C>(p.factors[e]) : x;
        ++count;
      }
    }
    if (p.mode == BagMode::mean && count > 0) {
      sum /= static_cast<C>(count);
    }
    p.y[item] = static_cast<T>(p.mode == BagMode::max ? largest.value : sum);
    if (p.chosen) {
      p.chosen[item] = largest.row;
    }
  }
}

}  // namespace

void cuda::embedding_bag(const EmbeddingBag& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_floating(a.op, a.y.dtype, [&]<class T>(Type<T>) {
    const Plan<T> plan{.weight = a.weight.as<const T>(),
                       .factors = a.factors.as<const T>(),
                       .index = a.index.as<const int64_t>(),
                       .offsets = a.offsets.as<const int64_t>(),
                       .y = a.y.as<T>(),
                       .chosen = a.chosen.as<int64_t>(),
                       .rows = a.weight.size(0),
                       .columns = a.weight.size(1),
                       .bags = a.y.size(0),
                       .entries = a.index.numel,
                       .row_stride = a.weight.strides[0],
                       .column_stride = a.weight.strides[1],
                       .exempt = a.exempt,
                       .mode = a.mode,
                       .site = fault_site(a.y.device, a.op, "index")};
    launch({"embedding_bag_kernel", grid_blocks(a.y.numel, kThreads), kThreads},
           embedding_bag_kernel<T>, plan);
  });
}

}  // namespace binade::kernels
