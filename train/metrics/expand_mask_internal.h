// Masks of whole samples or positions. Internal to train.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string>

namespace binade::train {

// A mask (bool) of these sizes, or of the first of them, as a view of these sizes: [N] or [N, T]
// for [N, T, D]. Throws an Error that begins with `metric` if it does not fit.
Tensor expand_mask(const std::string& metric, const Tensor& mask, const Dims& sizes);

}  // namespace binade::train
