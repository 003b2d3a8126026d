// GraphedStep: a training step that is recorded once as a CUDA graph and then launched as a whole,
// so that the host does only a few copies and one launch per step.
//
//   GraphedStep step(device, [&](std::span<const Tensor> in) -> std::vector<Tensor> {
//     Tensor loss = nn::cross_entropy(model(in[0]), in[1]);
//     scaler.scale(loss).backward();
//     (void)scaler.step(adam);                  // must not be read inside
//     return {loss.detach()};
//   });
//   for (const auto& [images, labels] : loader) { losses = step({images, labels}); }
//
// The first calls run the step without a graph: they fill caches and create state. The next call
// records it for inputs of those shapes. After that a call copies the inputs into the recorded ones
// and replays the graph. Inputs of other shapes (a last, smaller batch) and all inputs on the CPU
// run without a graph. Loss scale, step counts and learning rates are scalars on the device, and
// random numbers continue from the calling thread's generator(), so a replayed run computes the
// same values as one without a graph. Host code in the step (a counter, a schedule) runs only while
// the graph is recorded.
#pragma once
#include <binade/core/device/graph.h>
#include <binade/core/owned.h>
#include <binade/core/tensor/parameter.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace binade::train {

class GraphedStep {
 public:
  using Step = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;

  explicit GraphedStep(Device device, Step step, int plain_calls = 2);

  // The step's results. The next replay overwrites them: copy results that must stay.
  std::vector<Tensor> operator()(std::vector<Tensor> inputs);

  int64_t replays() const { return replays_; }

 private:
  bool fits(const std::vector<Tensor>& inputs) const;
  void follow_weights() const;
  void record(const std::vector<Tensor>& inputs);
  void replay();

  Device device_;
  Step step_;
  int plain_calls_;
  int64_t replays_ = 0;
  Owned<Graph> graph_;
  std::vector<Tensor> inputs_, results_;
  std::vector<std::weak_ptr<const Arena>> arenas_;  // whose masters the step's updates read
  // The generator's state at the start of the recording, how many numbers a step draws, and the
  // device scalar that says how far the generator has advanced since.
  uint64_t seed_ = 0, offset_ = 0, drawn_ = 0, next_offset_ = 0;
  Tensor advance_, drawn_word_;
};

}  // namespace binade::train
