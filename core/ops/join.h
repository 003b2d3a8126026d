// cat, stack, hstack and vstack join tensors; split, chunk and unbind cut one into views; meshgrid
// is views.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string_view>
#include <vector>

namespace binade {

// Joins parts along an existing dimension (cat) or a new one (stack).
Tensor cat(const std::vector<Tensor>& parts, int dim = 0);
Tensor stack(const std::vector<Tensor>& parts, int dim = 0);
// cat along the second dimension, or the first one of vectors; scalars count as vectors.
Tensor hstack(const std::vector<Tensor>& parts);
// cat along the first dimension; scalars and vectors count as rows.
Tensor vstack(const std::vector<Tensor>& parts);

// Views of consecutive parts along a dimension.
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim = 0);
std::vector<Tensor> split(const Tensor& x, int64_t size, int dim = 0);  // the last may be smaller
// At most `chunks` pieces of equal size; the last piece may be smaller.
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int dim = 0);
// Views of all indices of a dimension, without it.
std::vector<Tensor> unbind(const Tensor& x, int dim = 0);

// Vectors (or scalars) as views of one shape, tensor i along dimension i. With "xy" the first two
// dimensions change places.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, std::string_view indexing = "ij");

}  // namespace binade
