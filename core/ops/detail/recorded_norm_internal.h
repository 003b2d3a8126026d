// The gradients of the norm layers as ops, for a backward that is itself recorded (create_graph).
// Internal to core.
#pragma once
#include <binade/core/autograd/autograd.h>

namespace binade::detail {

// y = (x - mean) rstd w + b, or without a mean (RMS norm): mean and rstd are over some dimensions
// of a view of x.
struct NormedView {
  Dims view;    // sizes of x, reshaped: the dimensions that are normalised apart, and others
  Dims dims;    // the dimensions of the view that mean and rstd are over
  Dims weight;  // the sizes of w in the view; 1 where it broadcasts
  double eps;
  bool centred = true;
};
// dx, dw and db, where they are needed. w may be undefined, and is [n] otherwise.
Grads recorded_norm_gradients(const Tensor& x, const Tensor& w, const Tensor& dy, Needs needs,
                              const NormedView& norm);

}  // namespace binade::detail
