// gemm by cuBLASLt, the second provider beside our kernels (kernels/gemm/gemm_provider.h). In host
// execution there is no such library: the CPU backend does its work, and it is counted.
#pragma once
#include <binade/kernels/gemm/gemm.h>

namespace binade::kernels {

// Runs the checked, non-empty problem; false, with nothing done, where the library is not built in
// or does not do it: strides in both dimensions of a matrix, a bias along the columns of a
// column-major y, k = 0, or no algorithm for the dtype and epilogue.
bool library_gemm(const Gemm& g);

int64_t library_gemm_calls();  // that returned true, in this process

}  // namespace binade::kernels
