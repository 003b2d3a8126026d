// Matrix product: y = activation(a b + bias), batched or not, operands of any strides.
// f16 and bf16 are converted while packing, accumulated in float and rounded once on store; mode
// fast may multiply bf16 as it is (kernels/base/math_mode.h). The order of the additions of an
// output element depends on the shape only, never on the threads.
#pragma once
#include <binade/kernels/base/kernel.h>

#include <cstdint>

namespace binade::kernels {

// Applied to the sum before it is rounded to the output's dtype. relu keeps NaN; gelu_tanh is the
// tanh approximation.
enum class Activation : uint8_t { none, relu, gelu_tanh };

// All views have one floating dtype. Throws Error on a mismatch of shapes or dtypes.
struct Gemm {
  const View& a;  // [m, k] or [batch, m, k]; a transpose is swapped strides
  const View& b;  // [k, n] or [batch, k, n]; batch stride 0 broadcasts
  const View& y;  // [m, n] or [batch, m, n]; elements must not overlap each other, a or b
  const View& bias = kNoView;  // [n]
  Activation activation = Activation::none;
  bool accumulate = false;  // y = activation(y + a b + bias), with y's old value read once
};
BINADE_KERNEL(gemm, Gemm, y)

// gemm of matrices (no batch) that also sums the rows of a into sums [m], of the dtype of y: with
// dw = dy^T x that is the gradient of a bias, for which dy is then not read again. On the CPU
// alone.
namespace cpu {
void gemm_with_row_sums(const Gemm& g, const View& sums);
}

// The products around a gelu in f32, on the CPU alone: blocks of y are finished while they are
// near. y and `other` are of one size, with adjacent columns; g has neither an activation nor a
// batch. Errors: other views.
enum class Finish : uint8_t {
  none,
  gelu,   // y = gelu(sum), and the slope of gelu at the sum to `other`
  times,  // y = sum * other
};
namespace cpu {
void gemm_finished(const Gemm& g, Finish finish, const View& other);
}

}  // namespace binade::kernels
