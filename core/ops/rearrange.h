// Copies of the elements in another order, repeated, padded or in part. Differentiable any number
// of times, in every dtype.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <optional>
#include <vector>

namespace binade {

// The elements in reverse order along each of `dims`.
Tensor flip(const Tensor& x, const Dims& dims);

// Shifts the elements along dims[i] by shifts[i]; elements beyond the end come back at the start.
// Without dims there is one shift, of the elements in row-major order.
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {});

enum class PadMode : uint8_t { constant, reflect };
struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // of the new elements, with PadMode::constant
};
// Adds elements around x. `pads` is (before, after) of the last dimension, then of the one before
// it, and so on. With PadMode::constant a negative pad removes elements. With PadMode::reflect a
// pad mirrors the elements next to the border element and must be smaller than the size.
Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, const PadOptions& options = {});

// Repeats x `repeats[i]` times along each dimension; leading repeats make new dimensions.
Tensor repeat(const Tensor& x, const Dims& repeats);
// The same, but there may be fewer repeats than dimensions: they then apply to the last dimensions.
Tensor tile(const Tensor& x, const Dims& repeats);

// Repeats each index of dim, `repeats` times or repeats[i] times (i64, one for each index; on a
// device the host waits for the result's size). Without dim: repeats the elements, as a vector.
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int> dim = std::nullopt);
Tensor repeat_interleave(const Tensor& x, const Tensor& repeats,
                         std::optional<int> dim = std::nullopt);

// x [..., rows, cols] with zeros above (tril) or below (triu) the diagonal j - i = diagonal.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);

}  // namespace binade
