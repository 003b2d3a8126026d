// cat and stack join tensors; split and chunk cut one into views.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <vector>

namespace binade {

// Joins parts along an existing dimension (cat) or a new one (stack).
Tensor cat(const std::vector<Tensor>& parts, int dim = 0);
Tensor stack(const std::vector<Tensor>& parts, int dim = 0);

// Views of consecutive parts along a dimension.
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim = 0);
std::vector<Tensor> split(const Tensor& x, int64_t size, int dim = 0);  // the last may be smaller
// At most `chunks` pieces of equal size; the last piece may be smaller.
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int dim = 0);

}  // namespace binade
