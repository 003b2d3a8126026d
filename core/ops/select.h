// Choosing elements by their values, counting them, and finding places in a sorted sequence. If the
// size of a result depends on values, the host reads it: on a device these ops wait.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// The elements of x where mask (bool, x's sizes) is true, in row-major order.
Tensor masked_select(const Tensor& x, const Tensor& mask);
// x where mask (bool, x's sizes) is false, and the elements of src where it is true, in row-major
// order of both. src may have more elements than the mask needs.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& src);

// i64 [n, x.dim()]: the indices of the elements that are not 0, in row-major order. Any dtype, no
// gradient.
Tensor nonzero(const Tensor& x);

struct UniqueResult {
  Tensor values;   // [k], ascending
  Tensor inverse;  // i64, x's sizes: x = values[inverse]
  Tensor counts;   // i64 [k], how often each value occurs
};
// The distinct values of x. Any dtype, no gradient; every NaN counts as a value of its own.
UniqueResult unique(const Tensor& x);

// How often each number occurs in x (i64 [n], at least 0), or the sum of its weights [n]: [max(x) +
// 1], or `minlength` if that is larger. i64, or the dtype of the weights, for which it is
// differentiable.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);

// i64: how many elements of a sorted sequence are less than each value, or with `right` at most
// equal to it: where the value can be inserted so that the sequence stays in order. sorted_sequence
// [n] for values of any sizes, or [..., n] for values [..., m]. Any dtype; two dtypes follow the
// rule of docs/dtypes.md. NaN is the largest, as in sort. No gradient.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool right = false);
// searchsorted(boundaries, x, right): the number of the bucket of each element; boundaries [n].
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);
// How many elements of x are in each of `bins` equal parts of [min, max], whose last part includes
// max; elements outside and NaN are not counted. If min = max it is the range of x, for which the
// host waits for a device. Floating; f16 and bf16 give f32, which holds the counts. No gradient.
Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);

// i64 [..., classes], 1 at the index and 0 elsewhere; no gradient. If classes is -1, it is the
// largest index plus 1; on a device the host waits for that value.
Tensor one_hot(const Tensor& index, int64_t classes = -1);

}  // namespace binade
