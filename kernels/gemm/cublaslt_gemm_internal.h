// gemm by cuBLASLt, the second provider beside our kernels (kernels/gemm/gemm_provider.h). In host
// execution there is no such library: the CPU backend computes the call, and the call is counted.
#pragma once
#include <binade/kernels/gemm/gemm.h>

namespace binade::kernels {

// Runs the checked, non-empty problem. Returns false and does nothing if the library is not built
// in or does not support the problem: strides in both dimensions of a matrix, a bias along the
// columns of a column-major y, k = 0, or no algorithm for the dtype and epilogue.
bool library_gemm(const Gemm& g);

int64_t library_gemm_calls();  // number of calls that returned true, in this process

}  // namespace binade::kernels
