// AccumulationWindow: gives several micro-batches the gradient of one batch.
//
// Each mean loss over `samples` samples enters backward with weight samples / nominal_batch, and
// the step divides by the sum of the weights: in exact arithmetic this is the gradient of the mean
// over all samples of the window, also if the last micro-batch is smaller. Weights of full
// micro-batches are 1, so a window does not lower the scale of f16 gradients.
//
//   double weight = window.add(samples);
//   scaler.scale(loss, weight).backward();
//   outcome = scaler.step(adam, {.divisor = window.divisor(), .accumulating = !window.full()});
//   if (outcome != StepOutcome::accumulating) window.reset();
#pragma once
#include <cstdint>

namespace binade::optim {

class AccumulationWindow {
 public:
  // micro_batches per step, of nominal_batch samples each.
  AccumulationWindow(int64_t micro_batches, int64_t nominal_batch);

  // Counts a micro-batch and returns the weight of its mean loss. Throws if the window is full.
  double add(int64_t samples);
  // Declares the window full early, for example at the end of an epoch.
  void close() { closed_ = true; }
  bool full() const { return closed_ || count_ == micro_batches_; }
  double divisor() const;  // sum of the weights
  int64_t samples() const { return samples_; }
  int64_t nominal_batch() const { return nominal_batch_; }
  void reset();

 private:
  int64_t micro_batches_, nominal_batch_;
  int64_t count_ = 0, samples_ = 0;
  bool closed_ = false;
};

}  // namespace binade::optim
