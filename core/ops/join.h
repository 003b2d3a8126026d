// cat and stack.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <vector>

namespace binade {

// Parts one after another along an existing dimension (cat) or a new one (stack).
Tensor cat(const std::vector<Tensor>& parts, int dim = 0);
Tensor stack(const std::vector<Tensor>& parts, int dim = 0);

}  // namespace binade
