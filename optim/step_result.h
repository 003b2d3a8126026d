// StepResult: what step() returns. On the CPU the outcome of a step is known at once. On a device
// it is a number in device memory, which value() waits for: a training loop that does not look at
// it never waits for the device.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/base/error.h>

#include <cstdint>
#include <memory>
#include <string>

namespace binade::optim {

enum class [[nodiscard]] StepOutcome : uint8_t{
    applied,       // parameters were updated
    overflow,      // a gradient was not finite: nothing was updated
    accumulating,  // the window is not full: gradients are kept
};
const char* to_string(StepOutcome outcome);

struct DeviceScaler;

// An overflow at the floor of the loss scale, under AtFloor::error.
class OverflowAtFloor : public Error {
 public:
  OverflowAtFloor(const std::string& text, int64_t steps_since)
      : Error(text), steps_since_(steps_since) {}
  // The number of steps after the one that overflowed; none of them was applied. On a device the
  // error comes only when the program reads the outcome. 0 on the CPU.
  int64_t steps_since() const { return steps_since_; }

 private:
  int64_t steps_since_;
};

class [[nodiscard]] StepResult {
 public:
  StepResult(StepOutcome outcome) : outcome_(outcome) {}  // NOLINT
  // device_outcome: f64 [1], how the step ended (kernels/optimizer/step_rule.h).
  StepResult(Tensor device_outcome, std::shared_ptr<DeviceScaler> scaler)
      : device_outcome_(std::move(device_outcome)), scaler_(std::move(scaler)) {}

  // Synchronises if the outcome is on a device and was not read before; this is an error while a
  // graph is captured. Throws the loss scaler's error if the step ended at the floor of the scale.
  StepOutcome value() const;
  bool known() const { return !device_outcome_.defined(); }
  // f64 [1] on the device while the host does not know the outcome, else undefined.
  const Tensor& device_outcome() const { return device_outcome_; }
  operator StepOutcome() const { return value(); }  // NOLINT
  // The host always knows whether a step accumulates.
  friend bool operator==(const StepResult& result, StepOutcome outcome) {
    return outcome == StepOutcome::accumulating && !result.known() ? false
                                                                   : result.value() == outcome;
  }

 private:
  mutable StepOutcome outcome_ = StepOutcome::accumulating;
  mutable Tensor device_outcome_;  // undefined once the outcome is known
  std::shared_ptr<DeviceScaler> scaler_;
};

}  // namespace binade::optim

namespace binade {
using optim::StepOutcome;
}
