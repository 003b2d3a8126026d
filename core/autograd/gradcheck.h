// gradcheck: compares the gradients of a function with central differences, in f64.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace binade {

struct GradcheckOptions {
  double eps = 6e-6;   // step, times max(1, |x|)
  double rtol = 1e-6;  // relative to the gradient
  double atol = 1e-7;
  uint64_t seed = 0;   // of the upstream gradient and of the directions
  int directions = 0;  // 0: every element by itself; else this many random directions per input
};

// Checks the gradient of every input that requires one; the others are constants. The upstream
// gradient is random, since with ones some wrong backwards look right. Backward runs twice, on two
// graphs, and must give the same bits.
//
// Inputs that require a gradient are f64, keep their strides and must not overlap themselves
// (expand inside the function instead); the output is f64. The function must be deterministic.
// Inputs and their gradients do not change. Throws Error with the input, the element, and the
// analytic and the numeric value of the first gradient that is off by more than atol + rtol
// |gradient|.
//
// An element costs two runs of the function. A direction costs as much for the whole input: it
// moves all elements, by 0.5 to 1 times max(1, |x|) with random signs, and compares the derivative
// with sum(gradient * direction), to atol + rtol sum|gradient * direction|. It also finds a wrong
// gradient of one element but cannot name the element, and large gradients of other elements can
// hide a small error.
void gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
               const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

// The same for second derivatives: checks the gradients of the function's gradients, with respect
// to its inputs and to the upstream gradient. Every op of the function must be differentiable
// twice.
void gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                   const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace binade
