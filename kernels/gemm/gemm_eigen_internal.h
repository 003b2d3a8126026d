// The CPU product of the provider "eigen" (kernels/gemm/gemm_provider.h).
#pragma once
#include <binade/kernels/gemm/gemm.h>

namespace binade::kernels {

// Returns false and does nothing if Eigen does not compute this product. REQUIRES: checked
// arguments, y is not empty.
bool eigen_gemm(const Gemm& g);

}  // namespace binade::kernels
