// Reductions of rows of a table, named by bags of indices.
#pragma once
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/index/index.h>

namespace binade::kernels {

enum class BagMode : uint8_t { sum, mean, max };

// y[b] = the sum, mean or elementwise maximum of weight[index[e]] for the entries e of bag b, which
// are offsets[b] to offsets[b + 1] - 1. weight [rows, columns]: floating, any strides; index i64
// [n] and offsets i64 [bags + 1], whose first is 0 and whose last is n, and y [bags, columns] of
// weight's dtype are contiguous. Entries whose index is `exempt` take no part; a bag without others
// is 0. factors [n], contiguous, of weight's dtype, or none: sum only, each row times the factor of
// its entry. chosen, i64 [bags, columns], contiguous, or none: max only, the rows of the first
// largest elements, -1 for an empty bag. NaN is the largest. An element is summed in Compute<T> in
// the order of the entries and rounded once. A bad index or offset is an IndexError of `op`.
struct EmbeddingBag {
  const char* op;
  const View& weight;
  const View& index;
  const View& offsets;
  const View& factors;
  const View& y;
  const View& chosen;
  BagMode mode;
  int64_t exempt = kNoExemption;
};
BINADE_KERNEL(embedding_bag, EmbeddingBag, y)

}  // namespace binade::kernels
