// Matrix product y = epilogue(a b), batched or not, operands of any strides.
// f16 and bf16 are converted while packing, accumulated in float and rounded once on store; mode
// fast may multiply bf16 as it is (kernels/base/math_mode.h). The order of the additions of an
// output element depends on the shape only, never on the threads. On the CPU it depends on k alone,
// without AMX: a row has the same bits in a product of any number of rows.
#pragma once
#include <binade/kernels/base/provided_kernel.h>
#include <binade/kernels/base/weight_packing.h>
#include <binade/kernels/gemm/epilogue.h>

namespace binade::kernels {

// All views have one floating dtype. Views that do not fit are an error, and so is an epilogue that
// the device does not support (a GPU has bias, accumulate, relu and gelu_tanh).
struct Gemm {
  const View& a;  // [m, k] or [batch, m, k]; a transpose is swapped strides
  const View& b;  // [k, n] or [batch, k, n]; batch stride 0 broadcasts
  const View& y;  // [m, n] or [batch, m, n]; elements must not overlap each other, a or b
  Epilogue epilogue = {};
  WeightPacking* packing = nullptr;  // of b, a matrix; used on the CPU
};
BINADE_PROVIDED_KERNEL(gemm, Gemm, y)

// gemm of matrices (no batch) that also sums the rows of a into sums [m], of the dtype of y. For dw
// = dy^T x these sums are the gradient of the bias, and dy is read once for both. CPU only.
namespace cpu {
void gemm_with_row_sums(const Gemm& g, const View& sums);
}

}  // namespace binade::kernels
