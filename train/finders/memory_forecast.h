// Forecasts the memory of a training step: the bytes of weights, gradients, masters and moments, of
// the values that each module saves for its backward, and the peak.
//
//   train::BatchMaker batches(first_batch);
//   const auto model = train::measure_memory({.model = net, .optimizer = adam}, batches);
//   std::puts(to_string(model.at(256)).c_str());
//   model.largest_batch(memory_room(device).bytes);
//
// Three steps on smaller batches are run and undone (StateSnapshot). All blocks of two of them are
// matched; a block's size is linear in the batch, so every allocation of a larger step is known,
// and with the rounding of the allocator also its peak. It cannot foresee that an op takes another
// algorithm, with another workspace, for a larger batch. Workspaces of other threads count as if
// they overlapped in time as in the trial steps, which is a matter of chance.
#pragma once
#include <binade/core/device/device_stats.h>
#include <binade/core/owned.h>
#include <binade/train/finders/finder_parts.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace binade::train {

// Bytes that do not depend on the batch.
struct StateBytes {
  int64_t weights = 0, gradients = 0, masters = 0, moments = 0, buffers = 0;
  int64_t total() const { return weights + gradients + masters + moments + buffers; }
};
// Counts all parameters of the model's arena, and the moments of one optimizer, null for none.
StateBytes state_bytes(nn::Module& model, const optim::Optimizer* optimizer);
std::string to_string(const StateBytes& bytes);  // "weights 1.2 MB, gradients 1.2 MB, ..."

struct MemoryForecast {
  int64_t batch = 0;  // samples of a step
  StateBytes states;
  int64_t input = 0;                              // the batch itself
  int64_t saved = 0;                              // results that backward needs, at its beginning
  std::vector<LabelMemory> saved_by_module = {};  // largest first
  int64_t workspace = 0;  // beyond all that at the peak: gradients on their way, temporaries
  int64_t other = 0;      // live before: other tensors of the process
  int64_t peak = 0;       // of the allocator (memory_stats().peak)
};
std::string to_string(const MemoryForecast& forecast);

class MemoryModel {
 public:
  ~MemoryModel();
  MemoryModel(MemoryModel&&) noexcept;
  MemoryModel& operator=(MemoryModel&&) noexcept;

  MemoryForecast at(int64_t batch) const;
  // The largest batch whose peak is at most `bytes`; 0: not even one sample.
  int64_t largest_batch(int64_t bytes) const;

 private:
  friend MemoryModel measure_memory(const FinderParts&, const BatchMaker&, int64_t);
  struct Measured;
  explicit MemoryModel(std::unique_ptr<Measured> measured);
  Owned<Measured> measured_;
};

// Runs steps of `unit`, 2 `unit` and 3 `unit` samples; a quarter of the batch in question is best
// for `unit`. Throws what the step throws.
MemoryModel measure_memory(const FinderParts& parts, const BatchMaker& batches, int64_t unit = 8);

}  // namespace binade::train
