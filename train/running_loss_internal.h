// A sum of losses that does not make a device wait: on a GPU the sum is kept there in f64 until it
// is asked for.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade::train {

class RunningLoss {
 public:
  explicit RunningLoss(double total = 0) : on_host_(total) {}
  // total += weight * loss; loss has one element.
  void add(const Tensor& loss, double weight);
  double total() const;  // waits for the device

 private:
  double on_host_;
  Tensor on_device_;  // f64, undefined on the CPU
};

}  // namespace binade::train
