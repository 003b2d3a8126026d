// CUDA scatter_add, deterministic without float atomics. An entry is an index, or a row of columns
// that share one.
//  - scatter_short_kernel: few indices along the dimension. The thread of the first occurrence of
//    an index adds up all its occurrences.
//  - otherwise the entries are sorted by target (cuda/radix_order.h, stable), and
//    scatter_chunks_kernel adds up equal neighbours: a thread takes a column of kChunk entries.
//    Sums that cross the border of a chunk are kept in `open` and `inner` for scatter_merge_kernel.
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/cuda/radix_order_internal.h>
#include <binade/kernels/index/index_internal.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <bit>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kShort = 16, kChunk = 32;

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

// Sorted entries, and the sums that cross borders of chunks, [chunks, columns] each.
template <class T>
struct Sorted {
  const int64_t *keys, *order;
  int64_t entries, targets, columns, chunks;
  const T* src;
  T* y;
  Wide<T>* open;   // for a last target that begins in the chunk and continues
  Wide<T>* inner;  // for a first target that began before the chunk

  __device__ bool same(int64_t a, int64_t b) const { return keys[a] == keys[b]; }
};

template <class T, class Combined>
__global__ void __launch_bounds__(kThreads) scatter_chunks_kernel(Sorted<T> p) {
  using C = Wide<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, items = p.chunks * p.columns;
  for (int64_t item = first_item(); item < items; item += step) {
    const int64_t chunk = item / p.columns, column = item - chunk * p.columns;
    const int64_t begin = chunk * kChunk;
    const int64_t end = begin + kChunk < p.entries ? begin + kChunk : p.entries;
    bool continued = begin > 0 && p.same(begin - 1, begin);
    C sum = Combined::template none<C>();
    for (int64_t at = begin; at < end; ++at) {
      const int64_t key = p.keys[at];
      if (key == p.targets) {
        break;
      }
      sum = Combined::join(sum, static_cast<C>(p.src[p.order[at] * p.columns + column]));
      const bool goes_on = at + 1 < p.entries && p.same(at, at + 1);
      if (goes_on && at + 1 < end) {
        continue;
      }
      if (continued) {
        p.inner[item] = sum;
      } else if (goes_on) {
        p.open[item] = sum;
      } else {
        add_to<Combined>(p.y + key * p.columns + column, sum);
      }
      continued = false;
      sum = Combined::template none<C>();
    }
  }
}

template <class T, class Combined>
__global__ void __launch_bounds__(kThreads) scatter_merge_kernel(Sorted<T> p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads, items = p.chunks * p.columns;
  for (int64_t item = first_item(); item < items; item += step) {
    const int64_t chunk = item / p.columns, column = item - chunk * p.columns;
    const int64_t begin = chunk * kChunk, next = begin + kChunk;
    if (next >= p.entries || !p.same(next - 1, next) || p.keys[next] == p.targets ||
        (begin > 0 && p.same(begin - 1, next))) {
      continue;  // no target begins here and continues
    }
    Wide<T> sum = p.open[item];
    for (int64_t other = chunk + 1; other < p.chunks && p.same(other * kChunk, next); ++other) {
      sum = Combined::join(sum, p.inner[other * p.columns + column]);
    }
    add_to<Combined>(p.y + p.keys[next] * p.columns + column, sum);
  }
}

// launchers ---------------------------------------------------------------------------------------

template <class T, class Combined>
void scatter_sorted(const Problem& p, const T* src, const View& y) {
  const IndexShape& s = p.shape;
  const int64_t entries = s.outer * s.count * s.index_inner;
  const int64_t targets = s.outer * s.bound * s.index_inner;
  const int64_t columns = s.inner / s.index_inner, chunks = ceil_div(entries, kChunk);
  RadixOrder order(y.device, entries, std::bit_width(static_cast<uint64_t>(targets)));
  launch({"scatter_keys_kernel", grid_blocks(entries, kThreads), kThreads}, scatter_keys_kernel, p,
         order.input_keys(), entries, targets);
  order.sort();
  const auto partials = static_cast<size_t>(chunks * columns);
  const Workspace sums(2 * partials * sizeof(Wide<T>), y.device);
  const Sorted<T> sorted{.keys = order.keys(),
                         .order = order.order(),
                         .entries = entries,
                         .targets = targets,
                         .columns = columns,
                         .chunks = chunks,
                         .src = src,
                         .y = y.as<T>(),
                         .open = sums.as<Wide<T>>(),
                         .inner = sums.as<Wide<T>>() + partials};
  const unsigned blocks = grid_blocks(chunks * columns, kThreads);
  launch({"scatter_chunks_kernel", blocks, kThreads}, scatter_chunks_kernel<T, Combined>, sorted);
  launch({"scatter_merge_kernel", blocks, kThreads}, scatter_merge_kernel<T, Combined>, sorted);
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
