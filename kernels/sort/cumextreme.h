// Running maxima and minima along one dimension, and where they are.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// values_i = the largest (or smallest) of x_0 ... x_i along `dim` (0 <= dim < rank), indices_i =
// its position. Of equal elements the last one counts; a NaN counts as the extreme, and only
// another NaN follows it. values has x's sizes and dtype (any), indices (i64) its sizes; any
// strides; neither may overlap x.
struct CumulativeExtreme {
  const View& x;
  const View& values;
  const View& indices;
  int dim;
  bool smallest = false;
};
BINADE_KERNEL(cumextreme, CumulativeExtreme, values)

}  // namespace binade::kernels
