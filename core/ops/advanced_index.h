// Indexing several dimensions at once, as x[i, 2:5, mask] in PyTorch:
//
//   Tensor scores = index(logits, {arange(n, DType::i64), labels});
//   index_put_(x, {kEllipsis, Slice{0, 4}, mask}, 0.0);
//
// Indices that are tensors (i64) broadcast to one shape. It replaces their dimensions in the
// result, or comes first if other dimensions are between them. A mask (bool) stands for one index
// tensor per dimension of the mask: the indices of its true elements (core/ops/select.h); on a
// device the host waits for their number. Negative numbers and indices count from the end; an index
// out of range is an IndexError (kernels/base/fault.h).
#pragma once
#include <binade/core/tensor/tensor.h>

#include <concepts>
#include <optional>
#include <utility>
#include <vector>

namespace binade {

struct Slice {  // start, start + step, ... before stop; without numbers all of the dimension
  std::optional<int64_t> start = std::nullopt, stop = std::nullopt;
  int64_t step = 1;
};
struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis kNewAxis;    // a new dimension of size 1
inline constexpr Ellipsis kEllipsis;  // all of the dimensions that other indices leave

// One index. Dimensions without one are taken whole.
class TensorIndex {
 public:
  enum class Kind : uint8_t { number, slice, new_axis, ellipsis, tensor };

  template <std::integral T>
  requires(!std::same_as<T, bool>) TensorIndex(T number)
      : number(static_cast<int64_t>(number)) {}  // NOLINT: the dimension is dropped
  TensorIndex(const Slice& slice) : kind(Kind::slice), slice(slice) {}  // NOLINT
  TensorIndex(NewAxis) : kind(Kind::new_axis) {}                        // NOLINT
  TensorIndex(Ellipsis) : kind(Kind::ellipsis) {}                       // NOLINT
  TensorIndex(Tensor indices)                                           // NOLINT
      : kind(Kind::tensor), tensor(std::move(indices)) {}

  Kind kind = Kind::number;
  int64_t number = 0;  // these three: only that of `kind` counts
  Slice slice = {};
  Tensor tensor = {};
};
using TensorIndices = std::vector<TensorIndex>;

// The indexed elements: a view if no index is a tensor, else a copy.
Tensor index(const Tensor& x, const TensorIndices& indices);

// x with values, which broadcast, written to the indexed elements or, if `accumulate`, added to
// them. If indices name an element more than once, the last value is written and only it gets a
// gradient; sums have a fixed order. accumulate: floating, i64, i32.
Tensor index_put(const Tensor& x, const TensorIndices& indices, const Tensor& values,
                 bool accumulate = false);
Tensor index_put(const Tensor& x, const TensorIndices& indices, double value);

// The same in place. Values are cast and moved as in Tensor::copy_, with the same errors.
void index_put_(const Tensor& x, const TensorIndices& indices, const Tensor& values,
                bool accumulate = false);
void index_put_(const Tensor& x, const TensorIndices& indices, double value);

}  // namespace binade
