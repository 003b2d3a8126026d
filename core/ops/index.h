// Reading, adding and writing at indices. Indices are i64 and are not negative; one that is out of
// range is an IndexError, on a device at the next synchronisation (kernels/base/fault.h).
// Gradients are deterministic: terms of one element are added in a fixed order. All but one_hot are
// differentiable any number of times.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/base/fault.h>

#include <optional>

namespace binade {

using kernels::IndexError;

// y[.., i, ..] = x[.., index[i], ..]; index [n] or a scalar.
Tensor index_select(const Tensor& x, int dim, const Tensor& index);

// y[.., i, ..] = x[.., index[.., i, ..], ..]; index has x's rank and, but in `dim`, no larger size.
Tensor gather(const Tensor& x, int dim, const Tensor& index);

// x plus src[.., i, ..] added at [.., index[.., i, ..], ..]. index has the rank of x and src and,
// but in `dim`, no larger size than x; no larger one than src at all.
Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// x with src[.., i, ..] written at [.., index[.., i, ..], ..]; sizes as in scatter_add. Of entries
// with one target the last one is written, and only it gets a gradient.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& src);

// The same with one number everywhere.
Tensor scatter(const Tensor& x, int dim, const Tensor& index, double value);

// The elements of x where mask (bool, x's sizes) is true, in row-major order. On a device this
// waits for their number.
Tensor masked_select(const Tensor& x, const Tensor& mask);

// Rows of weight [rows, columns]: index [...] -> [..., columns]. Row padding_idx (negative: from
// the end) gets no gradient.
Tensor embedding(const Tensor& weight, const Tensor& index,
                 std::optional<int64_t> padding_idx = std::nullopt);

// i64 [..., classes], 1 at the index and 0 elsewhere; no gradient. classes -1: the largest index
// plus 1, for which a device waits.
Tensor one_hot(const Tensor& index, int64_t classes = -1);

}  // namespace binade
