// Helpers of kernels that take either an operand or, with `kNoView`, a number in its place.
#pragma once
#include <binade/kernels/base/view.h>

namespace binade::kernels {

// True if a number stands in for the operand. An empty tensor may have null data too.
inline bool is_absent(const View& operand) { return !operand && operand.dim() == 0; }

// The bytes of `value` in a dtype, converted as by Fill (kernels/copy/copy.h), lowest byte first.
uint64_t bits_of(DType dtype, double value);

}  // namespace binade::kernels
