// CUDA scatter_add, deterministic without float atomics. An entry is an index, or a row of columns
// that share one.
//  - scatter_short_kernel: few indices along the dimension. The thread of the first occurrence of
//    an index adds up all its occurrences.
//  - otherwise the entries are sorted by target, and equal neighbours are added up
//    (cuda/sorted_sums.cuh).
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/index/index_internal.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/sorted_sums.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <bit>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kShort = 16;

struct Problem {
  IndexShape shape;
  const int64_t* index;  // [outer, count, index_inner]
  int64_t exempt;
  FaultSite site;
};

// The type in which terms of type T are combined.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;

template <class Combined, class T>
__device__ __forceinline__ void add_to(T* y, Wide<T> sum) {
  *y = static_cast<T>(Combined::join(static_cast<Wide<T>>(*y), sum));
}

__device__ __forceinline__ int64_t first_item() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

template <class T, class Combined>
__global__ void __launch_bounds__(kThreads)
    scatter_short_kernel(Problem p, const T* src, T* y, int64_t items) {
  const IndexShape& s = p.shape;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t item = first_item(); item < items; item += step) {
    const int64_t row = item / s.inner, i = item - row * s.inner;
    const int64_t o = row / s.count, j = row - o * s.count;
    const int64_t* line = p.index + o * s.count * s.index_inner + (s.rows ? 0 : i);
    const int64_t k = line[j * s.index_inner];
    if (!dev::in_range(p.site, k, s.bound) || k == p.exempt) {
      continue;
    }
    bool first = true;
    for (int64_t before = 0; before < j; ++before) {
      first = first && line[before * s.index_inner] != k;
    }
    if (!first) {
      continue;
    }
    auto sum = Combined::template none<Wide<T>>();
    for (int64_t other = j; other < s.count; ++other) {
      if (line[other * s.index_inner] == k) {
        const T term = src[(o * s.count + other) * s.inner + i];
        sum = Combined::join(sum, static_cast<Wide<T>>(term));
      }
    }
    add_to<Combined>(y + (o * s.bound + k) * s.inner + i, sum);
  }
}

// key = the number of the target element of y, or `targets` if there is none.
__global__ void __launch_bounds__(kThreads)
    scatter_keys_kernel(Problem p, int64_t* keys, int64_t entries, int64_t targets) {
  const IndexShape& s = p.shape;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t entry = first_item(); entry < entries; entry += step) {
    const int64_t row = entry / s.index_inner, i = entry - row * s.index_inner;
    const int64_t k = p.index[entry], o = row / s.count;
    const bool used = dev::in_range(p.site, k, s.bound) && k != p.exempt;
    keys[entry] = used ? (o * s.bound + k) * s.index_inner + i : targets;
  }
}

// The rows of src, and the rows of y to which they are added.
template <class T>
struct Rows {
  const T* src;
  T* y;
  int64_t columns;

  __device__ Wide<T> term(int64_t entry, int64_t column) const {
    return static_cast<Wide<T>>(src[entry * columns + column]);
  }
  template <class Combined>
  __device__ void add(int64_t target, int64_t column, Wide<T> sum) const {
    add_to<Combined>(y + target * columns + column, sum);
  }
};

// launchers ---------------------------------------------------------------------------------------

template <class T, class Combined>
void scatter_sorted(const Problem& p, const T* src, const View& y) {
  const IndexShape& s = p.shape;
  const int64_t entries = s.outer * s.count * s.index_inner;
  const int64_t targets = s.outer * s.bound * s.index_inner;
  const int64_t columns = s.inner / s.index_inner;
  RadixOrder order(y.device, entries, std::bit_width(static_cast<uint64_t>(targets)));
  launch({"scatter_keys_kernel", grid_blocks(entries, kThreads), kThreads}, scatter_keys_kernel, p,
         order.input_keys(), entries, targets);
  order.sort();
  combine_sorted<T, Combined, Wide<T>>(order, entries, targets, y.device,
                                       Rows<T>{src, y.as<T>(), columns});
}

}  // namespace

void cuda::scatter_add(const ScatterAdd& a) {
  check_arguments(a);
  if (a.src.numel == 0) {
    return;
  }
  const IndexShape shape = index_shape(a.index, a.dim, a.y.size(a.dim));
  const DenseInput index(distinct_indices(a.index, a.dim, shape)), src(a.src);
  const Problem p{shape, index.as<int64_t>(), a.exempt, fault_site(a.y.device, a.op, "index")};
  dispatch_terms(a, [&]<class T, class Combined>(Type<T>, Combined) {
    if (shape.count > kShort) {
      return scatter_sorted<T, Combined>(p, src.as<T>(), a.y);
    }
    launch({"scatter_short_kernel", grid_blocks(a.src.numel, kThreads), kThreads},
           scatter_short_kernel<T, Combined>, p, src.as<T>(), a.y.as<T>(), a.src.numel);
  });
}

}  // namespace binade::kernels
