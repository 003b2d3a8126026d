// WorkerTuner: chooses how many threads load the data while a run trains; `train_classifier
// --workers auto`.
//
//   auto pool = std::make_shared<data::WorkerPool>();   // min(cores, 8) threads
//   data::Loader loader(photos, {.batch = 64, .pool = pool});
//   train::WorkerTuner tuner(pool);
//   train::Trainer trainer({.model = net, .optimizer = adam}, {.callbacks = {tuner.callbacks()}});
//
// In the second epoch, when decoded images that fit into memory are there, 20 steps are recorded.
// If the stall adviser (train/profile/stalls.h) predicts a gain from more workers, the pool has so
// many in the third epoch, and the fourth keeps them only if the third was faster by at least half
// of that. Batches, and so the weights, do not depend on it. Nothing happens in epochs of fewer
// steps, if every core has a worker already, if another Profiler is at work, or in a run of several
// ranks, which share the cores.
#pragma once
#include <binade/data/workers/worker_pool.h>
#include <binade/train/loop/callbacks.h>

#include <functional>
#include <memory>
#include <string>

namespace binade::train {

class WorkerTuner {
 public:
  // `say` gets a line for each decision; null: standard output.
  explicit WorkerTuner(std::shared_ptr<data::WorkerPool> pool,
                       std::function<void(const std::string& line)> say = nullptr);
  // For TrainerOptions::callbacks. They keep what they need alive.
  Callbacks callbacks() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace binade::train
