// split and chunk: parts of a tensor along one dimension, as views.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <vector>

namespace binade {

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int dim = 0);
std::vector<Tensor> split(const Tensor& x, int64_t size, int dim = 0);  // the last may be smaller
// At most `chunks` pieces of equal size but the last.
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int dim = 0);

}  // namespace binade
