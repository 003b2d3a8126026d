// Reading, adding and writing at indices. Indices are i64 and are not negative; an index out of
// range is an IndexError, which a device reports at the next synchronisation
// (kernels/base/fault.h). Gradients are deterministic: terms of one element are added in a fixed
// order. All ops are differentiable any number of times, if they do not say
// otherwise. Several dimensions at once, masks and negative indices: core/ops/advanced_index.h.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/base/fault.h>
#include <binade/kernels/index/embedding_bag.h>

#include <optional>
#include <string_view>

namespace binade {

using kernels::IndexError;

// y[.., i, ..] = x[.., index[i], ..]; index [n] or a scalar.
Tensor index_select(const Tensor& x, int dim, const Tensor& index);

// y[.., i, ..] = x[.., index[.., i, ..], ..]; index has x's rank; its sizes are at most those of x,
// except in `dim`.
Tensor gather(const Tensor& x, int dim, const Tensor& index);

// x plus src[.., i, ..] added at [.., index[.., i, ..], ..]. index has the rank of x and src. Its
// sizes are at most those of src and, except in `dim`, those of x. Floating, i64, i32.
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// x with src[.., i, ..] written at [.., index[.., i, ..], ..]; sizes as in scatter_add. If several
// entries have the same target, the last one is written and only it gets a gradient.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// The same with one number in place of src.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, double value);

// scatter_add with another operation: reduce is sum, prod, mean, amax or amin. Without include_self
// the elements of x at an index take no part. Ties of amax and amin share the gradient equally.
// Floating, i64, i32 (mean: floating). Differentiable once, sum and mean any number of times.
Tensor scatter_reduce(const Tensor& x, int dim, const Tensor& index, const Tensor& src,
                      std::string_view reduce, bool include_self = true);

// gather, but the sizes of x and index broadcast, except in `dim`. Without dim, x and index count
// as vectors.
Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int> dim = std::nullopt);

// Changes the rows of x that index [n] names along dim: adds alpha src (index_add), writes src
// (index_copy) or a number (index_fill). src has the sizes of x, but n in `dim`. Of equal indices
// the last one is written, and only it gets a gradient. index_add: floating, i64, i32.
Tensor index_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src,
                 double alpha = 1);
Tensor index_copy(const Tensor& x, int dim, const Tensor& index, const Tensor& src);
Tensor index_fill(const Tensor& x, int dim, const Tensor& index, double value);

// Rows of weight [rows, columns]: index [...] -> [..., columns]. Row padding_idx gets no gradient;
// a negative one counts from the end.
Tensor embedding(const Tensor& weight, const Tensor& index,
                 std::optional<int64_t> padding_idx = std::nullopt);

using kernels::BagMode;
struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  std::optional<int64_t> padding_idx = std::nullopt;  // takes no part; negative: from the end
  bool include_last_offset = false;  // the last offset is the end of the last bag, n
};
// The sum, mean or elementwise maximum of rows of weight [rows, columns], per bag: [bags, columns].
// index [bags, n] without offsets, or [n] and offsets i64 [bags], ascending from 0, at which the
// bags begin. per_sample_weights, of index's sizes, multiply the rows of a sum. A bag without
// entries is 0. The gradient of a maximum goes to the first of equal elements; NaN is the largest.
// The rows are read once and not stored.
Tensor embedding_bag(const Tensor& weight, const Tensor& index, const Tensor& offsets = {},
                     const Tensor& per_sample_weights = {},
                     const EmbeddingBagOptions& options = {});

}  // namespace binade
