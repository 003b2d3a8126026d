// LossScaler: keeps small gradients of f16 models from flushing to zero.
//
//   scaler.scale(loss).backward();               // gradients are scale times too large, and say so
//   StepOutcome outcome = scaler.step(adam);     // finite check, unscale, update, clear
//
// Gradients carry their scale as a tag (core/node.h). They are never rewritten: dividing f16
// gradients in place would flush what scaling saved.
#pragma once
#include <binade/optim/optimizer.h>
#include <binade/optim/scaler_state.h>

namespace binade::optim {

// A loss times a scale: all that can be done with it is backward.
class [[nodiscard]] ScaledLoss {
 public:
  void backward();

 private:
  friend class LossScaler;
  ScaledLoss(const Tensor& loss, double scale, double weight)
      : loss_(loss), scale_(scale), weight_(weight) {}
  Tensor loss_;
  double scale_, weight_;
};

class LossScaler {
 public:
  explicit LossScaler(const ScalerOptions& options = {});
  // A constant scale. By default an overflow skips the step and changes nothing.
  static LossScaler fixed(double scale, AtFloor on_overflow = AtFloor::skip);

  // `weight` is the loss's share in the gradient, e.g. of a micro-batch in an accumulation window.
  // The loss has one element.
  ScaledLoss scale(const Tensor& loss, double weight = 1);

  // Checks all gradients, before clipping. If they are finite the optimizer's step is applied; else
  // nothing changes but the scale, and the gradients are cleared. At the floor an overflow does
  // what options().at_floor says.
  StepOutcome step(Optimizer& optimizer, const StepOptions& options = {});

  double scale() const { return state_.scale(); }
  int64_t growth_tracker() const { return state_.growth_tracker(); }
  int64_t skipped_steps() const { return state_.skipped_steps(); }
  bool needs_full_precision() const { return needs_full_precision_; }
  const ScalerOptions& options() const { return state_.options(); }

  // "scale", "growth_tracker", "skipped_steps".
  NamedScalars state_scalars() const;
  void load_state(const NamedScalars& scalars);

 private:
  StepOutcome overflow_at_floor(Optimizer& optimizer, const StepOptions& options);
  std::string explain(const Optimizer& optimizer) const;

  ScalerState state_;
  Tensor last_loss_;  // detached: to tell bad data from overflow in backward
  bool needs_full_precision_ = false;
};

}  // namespace binade::optim
