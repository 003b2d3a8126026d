// Sums of terms with equal targets, without atomics: the terms are sorted by target
// (radix_order_internal.h), and equal neighbours are combined in their order.
// scatter_chunks_kernel: a thread takes a column of kSumChunk terms. Combinations that cross the
// border of a chunk are kept in `open` and `inner` for scatter_merge_kernel.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/radix_order_internal.h>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {

inline constexpr int kSumThreads = 256;
inline constexpr int64_t kSumChunk = 32;

// The order of the terms, and what crosses borders of chunks, [chunks, columns] each.
template <class C>
struct SortedTerms {
  const int64_t *keys, *order;
  int64_t entries, targets, chunks;  // a key of `targets` has no target
  C* open;                           // for a last target that begins in the chunk and continues
  C* inner;                          // for a first target that began before the chunk

  __device__ bool same(int64_t a, int64_t b) const { return keys[a] == keys[b]; }
};

// terms.columns is the number of columns, terms.term(entry, column) is a C, and
// terms.add<Combined>(target, column, sum) stores one. The arguments are no __grid_constant__: with
// it ptxas takes up to 6 registers more.
template <class T, class Combined, class C, class Terms>
__global__ void __launch_bounds__(kSumThreads)
    scatter_chunks_kernel(SortedTerms<C> p, Terms terms) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kSumThreads,
                items = p.chunks * terms.columns;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kSumThreads + threadIdx.x; item < items;
       item += step) {
    const int64_t chunk = item / terms.columns, column = item - chunk * terms.columns;
    const int64_t begin = chunk * kSumChunk;
    const int64_t end = begin + kSumChunk < p.entries ? begin + kSumChunk : p.entries;
    bool continued = begin > 0 && p.same(begin - 1, begin);
    C sum = Combined::template none<C>();
    for (int64_t at = begin; at < end; ++at) {
      const int64_t key = p.keys[at];
      if (key == p.targets) {
        break;
      }
      sum = Combined::join(sum, terms.term(p.order[at], column));
      const bool goes_on = at + 1 < p.entries && p.same(at, at + 1);
      if (goes_on && at + 1 < end) {
        continue;
      }
      if (continued) {
        p.inner[item] = sum;
      } else if (goes_on) {
        p.open[item] = sum;
      } else {
        terms.template add<Combined>(key, column, sum);
      }
      continued = false;
      sum = Combined::template none<C>();
    }
  }
}

template <class T, class Combined, class C, class Terms>
__global__ void __launch_bounds__(kSumThreads) scatter_merge_kernel(SortedTerms<C> p, Terms terms) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kSumThreads,
                items = p.chunks * terms.columns;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kSumThreads + threadIdx.x; item < items;
       item += step) {
    const int64_t chunk = item / terms.columns, column = item - chunk * terms.columns;
    const int64_t begin = chunk * kSumChunk, next = begin + kSumChunk;
    if (next >= p.entries || !p.same(next - 1, next) || p.keys[next] == p.targets ||
        (begin > 0 && p.same(begin - 1, next))) {
      continue;  // no target begins here and continues
    }
    C sum = p.open[item];
    for (int64_t other = chunk + 1; other < p.chunks && p.same(other * kSumChunk, next); ++other) {
      sum = Combined::join(sum, p.inner[other * terms.columns + column]);
    }
    terms.template add<Combined>(p.keys[next], column, sum);
  }
}

// Combines the terms of `order`, which was sorted. T: the dtype of the results.
template <class T, class Combined, class C, class Terms>
void combine_sorted(const RadixOrder& order, int64_t entries, int64_t targets, Device device,
                    const Terms& terms) {
  const int64_t chunks = ceil_div(entries, kSumChunk);
  const auto partials = static_cast<size_t>(chunks * terms.columns);
  const Workspace sums(2 * partials * sizeof(C), device);
  const SortedTerms<C> sorted{.keys = order.keys(),
                              .order = order.order(),
                              .entries = entries,
                              .targets = targets,
                              .chunks = chunks,
                              .open = sums.as<C>(),
                              .inner = sums.as<C>() + partials};
  const unsigned blocks = grid_blocks(chunks * terms.columns, kSumThreads);
  launch({"scatter_chunks_kernel", blocks, kSumThreads},
         scatter_chunks_kernel<T, Combined, C, Terms>, sorted, terms);
  launch({"scatter_merge_kernel", blocks, kSumThreads}, scatter_merge_kernel<T, Combined, C, Terms>,
         sorted, terms);
}

}  // namespace binade::kernels
