// The vectorised loops of kernels/loss/pointwise_loss.h. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/dims.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/loss/pointwise_loss.h>

namespace binade::kernels {

// Part of a loop nest over the operands: `rows` rows from first_row on, and of each row the
// elements [from, from + n) of dimension 0. Strides are in bytes; a null operand is absent.
struct LossTask {
  enum Operand : int { kOut, kX, kT, kWeight, kPosWeight, kUpstream, kOperands };
  PointwiseLoss op;
  DType dtype;
  double alpha, factor;  // factor multiplies dy
  int dims;
  int64_t size[kMaxDims];
  int64_t stride[kOperands][kMaxDims];
  std::byte* data[kOperands];
  int64_t first_row, rows, from, n;
};

// The sum of the losses; with `store` each of them goes to kOut too.
BINADE_ISA_KERNEL(pointwise_loss_forward_rows, const LossTask& task, bool store, double* sum)
// Writes gradients of x, or of t, to kOut.
BINADE_ISA_KERNEL(pointwise_loss_backward_rows, const LossTask& task, bool of_target)

}  // namespace binade::kernels
