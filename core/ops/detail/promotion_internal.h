// Type promotion: the one rule by which ops of several operands choose a dtype (docs/dtypes.md).
// Internal to core.
//
// Two tensors:
//   equal dtypes                        that dtype
//   integers or bool                    the wider one: bool, u8, i32, i64 from narrow to wide
//   floating and integer or bool        the floating dtype
//   two floating dtypes                 an error: a silent choice would round one of them or widen
//                                       the result. A precision policy may join them.
// A tensor and a number:
//   floating                            its dtype
//   integers or bool, and a whole       its dtype, which must hold the number (bool: 0 and 1, else
//   number                              i64)
//   integers or bool, and another       f32
//   number
// Ops that divide (div, atan2) and find no floating operand compute in f32. Ops that count (sum,
// cumsum) give i64 for integers and bool. Gradients go to floating operands only.
#pragma once
#include <binade/core/ops/cast.h>
#include <binade/core/ops/detail/checks_internal.h>

namespace binade::detail {

DType promoted_dtype(const char* op, DType a, DType b);

DType promoted_with_number(const char* op, DType dtype, double value);
inline DType promoted_dtype(const char* op, DType dtype, double value) {
  return is_floating(dtype) ? dtype : promoted_with_number(op, dtype, value);
}

// A tensor and a number as operands of integer arithmetic, in one dtype; the number is a scalar
// tensor. Arithmetic on bool is in i64.
struct WithNumber {
  Tensor x, number;
};
WithNumber with_number(const char* op, const Tensor& x, double value);

}  // namespace binade::detail
