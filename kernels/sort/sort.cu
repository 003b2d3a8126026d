// CUDA sort and topk. Each element becomes an item: a key and an index (sort_keys_internal.h). All
// items differ, so any order of comparisons is stable.
//
// sort_tiles_kernel: a block sorts kTile items in shared memory by a bitonic network. Short lines
// share a tile, each in a power of two of slots, and are written as results at once.
// merge_runs_kernel: merges sorted runs of a line, pair by pair. A block writes kTile items of a
// pair: it finds where these begin and end in both runs (Green, McColl and Bader, "GPU merge path",
// ICS 2012), loads them into shared memory, and each thread merges its kItems. finish_sort_kernel:
// splits items into values and indices.
//
// topk of a small k sorts tiles, keeps the first k items of each, and repeats this until one tile
// is left: it reads x once, and little more.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/sort/sort.h>
#include <binade/kernels/sort/sort_keys_internal.h>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

#include <bit>
#include <utility>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256, kItems = 4, kTile = kThreads * kItems;

struct SortPlan {
  StridedIndex<3> lines;  // x, values, indices at the first element of each line
  int64_t n, k;           // elements of a line, and of its result
  int64_t x_step, values_step, indices_step;  // bytes
  bool descending;
};

// A launch of sort_tiles_kernel. Lines consist of elements of x, or of items (`count` each).
struct TilePlan {
  const void* items = nullptr;  // null: x
  void* sorted = nullptr;       // null: values and indices
  int64_t count, tiles;         // of a line
  int64_t keep, stride;         // items written per tile, and per line in `sorted`
  int32_t slots;                // of a line in a tile: a power of two
};

template <class T>
__device__ __forceinline__ void store_pair(const SortPlan& p, std::byte* const (&at)[3], int64_t i,
                                           int64_t from) {
  *reinterpret_cast<T*>(at[1] + i * p.values_step) =
      *reinterpret_cast<const T*>(at[0] + from * p.x_step);
  *reinterpret_cast<int64_t*>(at[2] + i * p.indices_step) = from;
}

template <class Item>
struct TileMemory {
  Item item[kTile];
};

// Sorts each segment of `slots` items in ascending order.
template <class Item>
__device__ void sort_segments(Item (&item)[kTile], int slots) {
  for (int size = 2; size <= slots; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kTile / 2; i += kThreads) {
        const int low = 2 * i - (i & (stride - 1)), high = low + stride;
        const bool ascending = (low & (slots - 1) & size) == 0;
        const Item a = item[low], b = item[high];
        if (comes_before(b, a) == ascending) {
          item[low] = b;
          item[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    sort_tiles_kernel(const __grid_constant__ SortPlan p, const TilePlan t) {
  using Item = SortItem<SortKey<T>>;
  auto& memory = dev::shared_mem<TileMemory<Item>>();
  const int64_t lines_per_block = kTile / t.slots;
  const int64_t groups = ceil_div(p.lines.numel, lines_per_block);
  for (int64_t task = blockIdx.x; task < groups * t.tiles; task += gridDim.x) {
    const int64_t group = task / t.tiles, tile = task - group * t.tiles;
    for (int slot = static_cast<int>(threadIdx.x); slot < kTile; slot += kThreads) {
      const int64_t line = group * lines_per_block + slot / t.slots;
      const int64_t i = tile * kTile + slot % t.slots;
      Item item = last_item<Item>();
      if (line < p.lines.numel && i < t.count) {
        if (t.items) {
          item = static_cast<const Item*>(t.items)[line * t.count + i];
        } else {
          std::byte* at[3];
          p.lines.locate(line, at);
          const T x = *reinterpret_cast<const T*>(at[0] + i * p.x_step);
          item = make_item(sort_key(x, p.descending), i);
        }
      }
      memory.item[slot] = item;
    }
    sort_segments(memory.item, t.slots);
    for (int slot = static_cast<int>(threadIdx.x); slot < kTile; slot += kThreads) {
      const int64_t line = group * lines_per_block + slot / t.slots;
      const int64_t i = slot % t.slots, to = tile * t.keep + i;
      if (line >= p.lines.numel || i >= t.keep || to >= t.stride) {
        continue;
      }
      if (t.sorted) {
        static_cast<Item*>(t.sorted)[line * t.stride + to] = memory.item[slot];
      } else {
        std::byte* at[3];
        p.lines.locate(line, at);
        store_pair<T>(p, at, i, index_of(memory.item[slot]));
      }
    }
    __syncthreads();  // before the memory is used again
  }
}

// How many of the first `d` items of the merged runs a and b come from a.
template <class Item>
__device__ int64_t taken_of_first(const Item* a, int64_t count_a, const Item* b, int64_t count_b,
                                  int64_t d) {
  int64_t low = d > count_b ? d - count_b : 0, high = d < count_a ? d : count_a;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (comes_before(a[middle], b[d - 1 - middle])) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class Item>
__global__ void __launch_bounds__(kThreads)
    merge_runs_kernel(const Item* from, Item* to, int64_t lines, int64_t n, int64_t run) {
  auto& memory = dev::shared_mem<TileMemory<Item>>();
  const int64_t tiles = ceil_div(n, kTile);
  for (int64_t task = blockIdx.x; task < lines * tiles; task += gridDim.x) {
    const int64_t line = task / tiles, out = (task - line * tiles) * kTile;
    const int64_t start = out & -(2 * run);  // run is a power of two
    const int64_t middle = start + run < n ? start + run : n;
    const int64_t end = middle + run < n ? middle + run : n;
    const Item *a = from + line * n + start, *b = from + line * n + middle;
    const int64_t first = out - start;
    const int64_t last = first + kTile < end - start ? first + kTile : end - start;
    const int64_t a0 = taken_of_first(a, middle - start, b, end - middle, first);
    const int64_t a1 = taken_of_first(a, middle - start, b, end - middle, last);
    const auto count_a = static_cast<int>(a1 - a0), count = static_cast<int>(last - first);
    const int64_t b0 = first - a0;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
      memory.item[i] = i < count_a ? a[a0 + i] : b[b0 + i - count_a];
    }
    __syncthreads();
    const int begin = static_cast<int>(threadIdx.x) * kItems;
    if (begin < count) {
      const Item *low = memory.item, *high = memory.item + count_a;
      const int count_b = count - count_a;
      auto i = static_cast<int>(taken_of_first(low, count_a, high, count_b, begin));
      int j = begin - i;
      for (int k = begin; k < begin + kItems && k < count; ++k) {
        const bool take_low = j >= count_b || (i < count_a && comes_before(low[i], high[j]));
        to[line * n + out + k] = take_low ? low[i++] : high[j++];
      }
    }
    __syncthreads();  // before the memory is used again
  }
}

template <class T, class Item>
__global__ void __launch_bounds__(kThreads)
    finish_sort_kernel(const __grid_constant__ SortPlan p, const Item* items, int64_t stride) {
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       task < p.lines.numel * p.k; task += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t line = task / p.k, i = task - line * p.k;
    std::byte* at[3];
    p.lines.locate(line, at);
    store_pair<T>(p, at, i, index_of(items[line * stride + i]));
  }
}

// Launchers ---------------------------------------------------------------------------------------

View first_of_lines(const View& view, int dim) {
  View lines = view;
  lines.numel = view.numel / view.size(dim);
  lines.sizes[dim] = 1;
  return lines;
}

SortPlan plan_of(const TopK& a) {
  const View x = first_of_lines(a.x, a.dim), values = first_of_lines(a.values, a.dim),
             indices = first_of_lines(a.indices, a.dim);
  const auto width = static_cast<int64_t>(size_of(a.x.dtype));
  return {.lines = StridedIndex<3>(StridedLoop("sort", {&x, &values, &indices})),
          .n = a.x.size(a.dim),
          .k = a.values.size(a.dim),
          .x_step = a.x.strides[a.dim] * width,
          .values_step = a.values.strides[a.dim] * width,
          .indices_step = a.indices.strides[a.dim] * static_cast<int64_t>(sizeof(int64_t)),
          .descending = a.largest};
}

template <class T>
void sort_tiles(const SortPlan& p, TilePlan t) {
  t.tiles = ceil_div(t.count, kTile);
  t.slots =
      t.tiles > 1 ? kTile : static_cast<int32_t>(std::bit_ceil(static_cast<uint64_t>(t.count)));
  const int64_t groups = ceil_div(p.lines.numel, kTile / t.slots);
  launch({"sort_tiles_kernel", grid_blocks(groups * t.tiles, 1), kThreads,
          sizeof(TileMemory<SortItem<SortKey<T>>>)},
         sort_tiles_kernel<T>, p, t);
}

// Copies bits, so one kernel serves all element types of a size.
template <class T, class Item>
void finish(const SortPlan& p, const Item* items, int64_t stride) {
  using Bits =
      std::conditional_t<sizeof(T) == 8, uint64_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t,
                                            std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
  launch({"finish_sort_kernel", grid_blocks(p.lines.numel * p.k, kThreads), kThreads},
         finish_sort_kernel<Bits, Item>, p, items, stride);
}

// Sorts tiles, then merges runs to twice the length until a line is one run.
template <class T>
void merge_sort(const SortPlan& p, Device device) {
  using Item = SortItem<SortKey<T>>;
  const int64_t all = p.lines.numel * p.n;
  const Workspace memory(2 * static_cast<size_t>(all) * sizeof(Item), device);
  Item *from = memory.as<Item>(), *to = from + all;
  sort_tiles<T>(
      p, {.sorted = from, .count = p.n, .tiles = 0, .keep = kTile, .stride = p.n, .slots = 0});
  for (int64_t run = kTile; run < p.n; run *= 2) {
    launch({"merge_runs_kernel", grid_blocks(p.lines.numel * ceil_div(p.n, kTile), 1), kThreads,
            sizeof(TileMemory<Item>)},
           merge_runs_kernel<Item>, from, to, p.lines.numel, p.n, run);
    std::swap(from, to);
  }
  finish<T>(p, from, p.n);
}

template <class T>
void select(const SortPlan& p, Device device) {
  using Item = SortItem<SortKey<T>>;
  const int64_t kept = ceil_div(p.n, kTile) * p.k;  // of a line, after the first round
  const Workspace memory(2 * static_cast<size_t>(p.lines.numel * kept) * sizeof(Item), device);
  Item *from = nullptr, *to = memory.as<Item>(), *other = to + p.lines.numel * kept;
  int64_t count = p.n;
  while (count > p.k || !from) {
    const int64_t left = ceil_div(count, kTile) * p.k;
    sort_tiles<T>(p, {.items = from,
                      .sorted = to,
                      .count = count,
                      .tiles = 0,
                      .keep = p.k,
                      .stride = left,
                      .slots = 0});
    from = to;
    std::swap(to, other);
    count = left;
  }
  finish<T>(p, from, count);
}

template <class T>
void sort_lines(const TopK& a) {
  const SortPlan p = plan_of(a);
  constexpr int64_t kSmall = kTile / 4;
  if (p.n <= kTile) {
    sort_tiles<T>(p, {.count = p.n, .tiles = 0, .keep = p.k, .stride = p.k, .slots = 0});
  } else if (p.k <= kSmall) {
    select<T>(p, a.values.device);
  } else {
    merge_sort<T>(p, a.values.device);
  }
}

void run(const TopK& a) {
  if (a.values.numel > 0) {
    dispatch("sort", a.x.dtype, [&]<class T>(Type<T>) { sort_lines<T>(a); });
  }
}

}  // namespace

void cuda::sort(const Sort& a) {
  check_arguments(a);
  run({a.x, a.values, a.indices, a.dim, a.descending});
}

void cuda::topk(const TopK& a) {
  check_arguments(a);
  run(a);
}

}  // namespace binade::kernels
