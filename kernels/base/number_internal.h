// A number in the place of an operand: what kernels that take `kNoView` and a number share.
#pragma once
#include <binade/kernels/base/view.h>

namespace binade::kernels {

// Whether a number stands for the operand; an empty tensor may have null data too.
inline bool is_absent(const View& operand) { return !operand && operand.dim() == 0; }

// The bytes of `value` in a dtype, converted as by Fill (kernels/copy/copy.h), from the lowest byte
// on.
uint64_t bits_of(DType dtype, double value);

}  // namespace binade::kernels
