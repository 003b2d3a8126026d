// Activations that the kernel of another op applies to its result. Internal to core.
#pragma once
#include <binade/core/ops/linear.h>

namespace binade {

// True if the kernel may apply the activation to a result of this dtype. While an observer is
// registered, or if a precision policy has rules or would cast, the activation is a separate op.
bool kernel_applies(Activation activation, DType result);

// activation(y) for the result y of an op. If kernel_applies(), the kernel has applied it already.
Tensor activated(Tensor y, Activation activation);

}  // namespace binade
