#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/gemm/gemm_pairs_internal.h>

namespace binade::kernels {

bool pairs_run(DType dtype) {
  return dtype == DType::bf16 && isa() >= Isa::avx512_bf16 && math_mode() == MathMode::fast;
}

bool amx_runs(DType dtype) { return pairs_run(dtype) && isa() == Isa::amx_bf16; }

}  // namespace binade::kernels
