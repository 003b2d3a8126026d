// Copies of the elements in another order, repeated, with borders or in part. Differentiable any
// number of times, in every dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <vector>

namespace binade {

// The elements in reverse order along each of `dims`.
Tensor flip(const Tensor& x, const Dims& dims);

// Shifts the elements along dims[i] by shifts[i], around the end. Without dims: one shift, of the
// elements in row-major order.
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {});

enum class PadMode : uint8_t { constant, reflect };
struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // of the new elements, with PadMode::constant
};
// Adds elements around x. `pads` is (before, after) of the last dimension, then of the one before
// it, and so on. With PadMode::constant negative pads cut off; with PadMode::reflect a pad mirrors
// the elements beside the border one, and must be smaller than the size.
Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, const PadOptions& options = {});

// x as often as `repeats` says in each dimension; leading repeats make new dimensions.
Tensor repeat(const Tensor& x, const Dims& repeats);
// The same where there may be fewer repeats than dimensions: they count from the last.
Tensor tile(const Tensor& x, const Dims& repeats);

// x [..., rows, cols] with zeros above (tril) or below (triu) the diagonal j - i = diagonal.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);

}  // namespace binade
