// Reading and writing at indices, shared by the ops of core/ops/index.h and
// core/ops/advanced_index.h. All are differentiable any number of times.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/index/index.h>

namespace binade {
struct Op;
}

namespace binade::detail {

// The arguments of take and give besides tensors.
struct Along {
  const Op* op;
  int dim;
  int64_t exempt = kernels::kNoExemption;  // in range, or none
};

// y = x at index; x has the sizes of index except in dimension along.dim. Elements whose index is
// `along.exempt` get no gradient; with `mask` they are 0, else they are read like the others.
Tensor take(const Tensor& x, const Tensor& index, const Along& along, bool mask = false);
// The transpose of take: zeros of these sizes, with y added at index.
Tensor give(const Tensor& y, const Tensor& index, const Dims& sizes, const Along& along);

// Rows are the parts of a tensor at one index of dimension d; `rows` (i64, [n] or a scalar) names
// some of them.
//
// y = the rows of x that `rows` names, [.., n, ..].
Tensor take_rows(const Op& op, const Tensor& x, int d, const Tensor& rows);
// x with src [.., n, ..] added to these rows, or written over them; when writing, the last of equal
// entries of `rows` counts, and only it gets a gradient. src may be a broadcast view.
Tensor put_rows(const Op& op, const Tensor& x, int d, const Tensor& rows, const Tensor& src,
                bool accumulate);

// The entries of index (along d, each below `bound`) that no later entry with the same target
// overwrites.
Tensor last_writers(const Op& op, const Tensor& index, int64_t bound, int d);

// `rows` as an index of these sizes along dimension d.
Tensor index_of_rows(const Tensor& rows, const Dims& sizes, int d);

}  // namespace binade::detail
