// grad() without its checks, for core. An input without a gradient gets an undefined tensor.
#pragma once
#include <binade/core/autograd/autograd.h>

namespace binade::detail {

// The search stops at the tensors of `boundary`: they count as independent variables.
std::vector<Tensor> grad_of(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                            const GradOptions& options, std::span<const Tensor> boundary);

}  // namespace binade::detail
