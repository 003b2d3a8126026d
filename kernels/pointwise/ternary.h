// Pointwise kernels of three operands: selection by a condition and linear interpolation.
//
// Views may have any strides and broadcast to y's sizes, aligned at the last dimension; y must not
// overlap itself. y may be the same memory as an operand of the same layout and dtype. Errors:
// dtypes or sizes that do not fit.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// y = condition ? a : b. condition boolean; a, b and y of one dtype (any). If a or b is kNoView,
// `value` takes its place, converted as by Fill.
struct WhereForward {
  const View& condition;
  const View& a;
  const View& b;
  const View& y;
  double value = 0;
};
BINADE_KERNEL(where_forward, WhereForward, y)

// y = a + weight (b - a), exactly a at weight 0 and b at weight 1; one floating dtype. If weight is
// kNoView, `number` takes its place.
struct LerpForward {
  const View& a;
  const View& b;
  const View& weight;
  const View& y;
  double number = 0;
};
BINADE_KERNEL(lerp_forward, LerpForward, y)

}  // namespace binade::kernels
