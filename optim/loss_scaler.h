// LossScaler: keeps small gradients of f16 models from flushing to zero.
//
//   scaler.scale(loss).backward();               // gradients are scale times too large, with a tag
//   StepOutcome outcome = scaler.step(adam);     // finite check, unscale, update, clear
//
// Gradients carry their scale as a tag (core/autograd/node.h). They are never rewritten: dividing
// f16 gradients in place would flush what scaling saved.
//
// If the model is on a device, the scaler's numbers are stored there: neither backward nor step
// waits for them, but the functions below that return one do. An overflow at the floor with
// AtFloor::error stops all updates on the device; reading the outcome of a step, or
// state_scalars(), then throws the error.
#pragma once
#include <binade/optim/optimizer.h>
#include <binade/optim/scaler_state.h>

namespace binade::kernels {
struct ScalerScalars;
}

namespace binade::optim {

struct FloorError;

// The numbers of a scaler at some time.
struct ScalerReading {
  double scale = 1;
  int64_t skipped_steps = 0;
  std::string last_overflow = {};
};

// A loss times a scale. Its only use is backward().
class [[nodiscard]] ScaledLoss {
 public:
  void backward();

 private:
  friend class LossScaler;
  ScaledLoss(const Tensor& loss, double scale, double weight,
             std::shared_ptr<DeviceScaler> device = nullptr)
      : loss_(loss), scale_(scale), weight_(weight), device_(std::move(device)) {}
  Tensor loss_;
  double scale_, weight_;
  std::shared_ptr<DeviceScaler> device_;  // holds the scale of a loss on a device
};

class LossScaler {
 public:
  explicit LossScaler(const LossScalerOptions& options = {});
  LossScaler(LossScaler&&) = default;
  LossScaler& operator=(LossScaler&&) = default;
  // A constant scale. By default an overflow skips the step and changes nothing.
  static LossScaler fixed(double scale, AtFloor on_overflow = AtFloor::skip);

  // `weight` is the loss's share of the gradient, for example the share of a micro-batch in an
  // accumulation window. The loss has one element.
  ScaledLoss scale(const Tensor& loss, double weight = 1);

  // Checks all gradients, before clipping. If they are finite the optimizer's step is applied; else
  // only the scale changes, and the gradients are cleared. options().at_floor says what an overflow
  // at the floor does.
  StepResult step(Optimizer& optimizer, const StepOptions& options = {});

  // Moves the numbers to the device of the model. scale() and step() do so by themselves; call it
  // before a step is captured into a graph. Waits for the device.
  void to(Device device);

  double scale() const;
  int64_t growth_tracker() const;
  int64_t skipped_steps() const;
  // True if an overflow at the floor asked for full precision (AtFloor::fp32).
  bool needs_full_precision() const;
  // The first parameter whose gradient was not finite in the last overflow; empty if there was
  // none.
  std::string last_overflow() const;
  // On a device: a copy of the current numbers, made without waiting; undefined on the CPU. read()
  // waits for the copy. So a program can note the numbers of every step and read them later.
  Tensor device_numbers() const;
  ScalerReading read(const Tensor& numbers) const;
  // Sets what an overflow at the floor does from now on. Steps that were captured into a graph
  // before keep the old policy.
  void set_at_floor(AtFloor policy);
  const LossScalerOptions& options() const { return state_.options(); }

  // "scale", "growth_tracker", "skipped_steps", "overflows", "needs_full_precision".
  NamedScalars state_scalars() const;
  void load_state(const NamedScalars& scalars);

 private:
  StepOutcome step_on_host(Optimizer& optimizer, const StepOptions& options);
  StepOutcome overflow_at_floor(Optimizer& optimizer, const StepOptions& options);
  FloorError floor_error(const Optimizer& optimizer) const;
  // The current numbers, from the host or the device.
  kernels::ScalerScalars step_scalars() const;

  ScalerState state_;
  Tensor last_loss_;  // detached: to tell bad data from overflow in backward
  bool needs_full_precision_ = false;
  std::string last_overflow_;
  std::shared_ptr<DeviceScaler> device_;  // while the numbers are on a device
};

}  // namespace binade::optim
