// Reading, adding and writing at indices. Indices are i64 and are not negative; an index out of
// range is an IndexError, which a device reports at the next synchronisation
// (kernels/base/fault.h). Gradients are deterministic: terms of one element are added in a fixed
// order. All ops except one_hot are differentiable any number of times.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/base/fault.h>

#include <optional>

namespace binade {

using kernels::IndexError;

// y[.., i, ..] = x[.., index[i], ..]; index [n] or a scalar.
Tensor index_select(const Tensor& x, int dim, const Tensor& index);

// y[.., i, ..] = x[.., index[.., i, ..], ..]; index has x's rank; its sizes are at most those of x,
// except in `dim`.
Tensor gather(const Tensor& x, int dim, const Tensor& index);

// x plus src[.., i, ..] added at [.., index[.., i, ..], ..]. index has the rank of x and src. Its
// sizes are at most those of src and, except in `dim`, those of x.
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// x with src[.., i, ..] written at [.., index[.., i, ..], ..]; sizes as in scatter_add. If several
// entries have the same target, the last one is written and only it gets a gradient.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// The same with one number in place of src.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, double value);

// The elements of x where mask (bool, x's sizes) is true, in row-major order. On a device it waits
// for the number of elements.
Tensor masked_select(const Tensor& x, const Tensor& mask);

// Rows of weight [rows, columns]: index [...] -> [..., columns]. Row padding_idx gets no gradient;
// a negative one counts from the end.
Tensor embedding(const Tensor& weight, const Tensor& index,
                 std::optional<int64_t> padding_idx = std::nullopt);

// i64 [..., classes], 1 at the index and 0 elsewhere; no gradient. If classes is -1, it is the
// largest index plus 1, which on a device waits for the value.
Tensor one_hot(const Tensor& index, int64_t classes = -1);

}  // namespace binade
