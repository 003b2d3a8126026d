// One hop of a reduction between ranks: combines the received values with this rank's own values.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

enum class CombineOp : uint8_t { sum, max, min };

// y = (received op x / before) / after, or y = (x / before) / after if received is kNoView.
// Contiguous, the same number of elements. x is f64, f32, f16, bf16, i64 or i32; received and y
// have x's dtype, or f32 if x is f16 or bf16. Floating values are computed in Compute<T> and
// rounded once; integers wrap, and their division by `after` truncates toward zero. `before` is 1
// for integers. y may be received or x if the dtype is the same. max and min of a NaN are NaN.
struct Combine {
  CombineOp op;
  const View& received;
  const View& x;
  const View& y;
  double before = 1, after = 1;
};
BINADE_KERNEL(combine, Combine, x)

}  // namespace binade::kernels
