// Losses that compare input and target element by element, with their reduction: one pass over the
// operands forward, one backward. Arithmetic and sums in Compute<T>, in an order that depends on
// the shapes only.
//
// To add a loss, write one functor in kernels/loss/pointwise_loss_functors.h and one line in the
// list below.
#pragma once
#include <binade/kernels/base/kernel.h>

// X(enum name, functor). alpha: beta of smooth_l1, delta of huber.
#define BINADE_POINTWISE_LOSSES(X)  \
  X(mse, Mse)                       \
  X(l1, L1)                         \
  X(smooth_l1, SmoothL1)            \
  X(huber, Huber)                   \
  X(bce, Bce)                       \
  X(bce_with_logits, BceWithLogits) \
  X(kl_div, KlDiv)                  \
  X(kl_div_log_target, KlDivLogTarget)

namespace binade::kernels {

#define BINADE_ENUM(name, functor) name,
enum class PointwiseLoss : uint8_t { BINADE_POINTWISE_LOSSES(BINADE_ENUM) };
#undef BINADE_ENUM
#define BINADE_NAME(name, functor) #name,
inline constexpr const char* kPointwiseLossName[] = {BINADE_POINTWISE_LOSSES(BINADE_NAME)};
#undef BINADE_NAME
inline constexpr int kPointwiseLossCount = sizeof kPointwiseLossName / sizeof *kPointwiseLossName;
constexpr const char* to_string(PointwiseLoss op) {
  return kPointwiseLossName[static_cast<int>(op)];
}

// x and t: one floating dtype, equal sizes, any strides (also 0). weight multiplies each loss,
// pos_weight is for bce_with_logits; both have x's dtype, broadcast to its sizes, and may be
// kNoView. y has the compute dtype of x: one element, the sum of all losses divided by `divisor`,
// or with `each` x's sizes. bce: an x outside [0, 1] is an error that names it on the CPU and NaN
// on a GPU.
struct PointwiseLossForward {
  PointwiseLoss op;
  const View& x;
  const View& t;
  const View& weight = kNoView;
  const View& pos_weight = kNoView;
  const View& y;
  bool each = false;
  double divisor = 1;
  double alpha = 0;
};
BINADE_KERNEL(pointwise_loss_forward, PointwiseLossForward, y)

// dx = dy d loss / dx / divisor, and dt likewise; kNoView if one is not wanted. dy has the compute
// dtype of x and broadcasts to x's sizes; dx and dt have x's sizes and dtype.
struct PointwiseLossBackward {
  PointwiseLoss op;
  const View& x;
  const View& t;
  const View& weight = kNoView;
  const View& pos_weight = kNoView;
  const View& dy;
  const View& dx;
  const View& dt;
  double divisor = 1;
  double alpha = 0;
};
BINADE_KERNEL(pointwise_loss_backward, PointwiseLossBackward, x)

}  // namespace binade::kernels
