// gemm by cuBLASLt, the second provider beside our kernels (kernels/gemm/gemm_provider.h). The
// library is loaded at run time. In host execution BINADE_CUBLASLT_LIBRARY may name a stand-in;
// else the CPU backend computes the call, and the call is counted.
#pragma once
#include <binade/kernels/gemm/gemm.h>

#include <string>

namespace binade::kernels {

// Runs the checked, non-empty problem. Returns false and does nothing if the library was not loaded
// or does not support the problem: strides in both dimensions of a matrix, a bias along the
// columns of a column-major y, k = 0, no algorithm for the dtype and epilogue, or a refusal when it
// is executed (then also of every later call of the problem).
bool library_gemm(const Gemm& g);

// Throws an Error that lists the places that were searched if the library was not loaded.
void require_gemm_library();

// For the provider "auto": why the library cannot be used, or "". Notes once if it is missing.
std::string gemm_library_absence();

int64_t library_gemm_calls();  // number of calls that returned true, in this process
int64_t library_gemm_plans();  // problems whose algorithm is kept

}  // namespace binade::kernels
