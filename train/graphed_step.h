// GraphedStep: a training step that is recorded once as a CUDA graph and then launched as a whole,
// so that the host's part of a step is a few copies and one launch.
//
//   GraphedStep step(device, [&](std::span<const Tensor> in) -> std::vector<Tensor> {
//     Tensor loss = nn::cross_entropy(model(in[0]), in[1]);
//     scaler.scale(loss).backward();
//     (void)scaler.step(adam);                  // must not be read inside
//     return {loss.detach()};
//   });
//   for (const auto& [images, labels] : loader) { losses = step({images, labels}); }
//
// The first calls run the step as it is: they fill caches and create state. The next one records it
// for inputs of those shapes; from then on a call copies the inputs into the recorded ones and
// replays. Inputs of other shapes (a last, smaller batch), and everything on the CPU, run as they
// are. Loss scale, step counts and learning rates are words on the device, random numbers go on
// from the calling thread's generator(): a replayed run computes what the plain one does. What host
// code in the step does (a counter, a schedule) happens in the recording only.
#pragma once
#include <binade/core/device/graph.h>
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

  // The step's results. Those of a replay are written anew by the next one: copy what shall stay.
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
  std::unique_ptr<Graph> graph_;
  std::vector<Tensor> inputs_, results_;
  std::vector<std::weak_ptr<const Arena>> arenas_;  // whose masters the step's updates read
  // The generator's state that the recording began with, how much a step draws, and the word that
  // holds how far the generator has gone on since.
  uint64_t seed_ = 0, offset_ = 0, drawn_ = 0, next_offset_ = 0;
  Tensor advance_, drawn_word_;
};

}  // namespace binade::train
