// MemoryTracker: shows which modules hold memory. While one exists it records for every block above
// 1 KiB, of the host and of devices, the module and the step that allocated it.
//
//   MemoryTracker tracker;
//   for (...) {
//     step();
//     tracker.end_step();
//   }
//   tracker.by_label();        // live bytes by module, largest first
//   tracker.leaks();           // the modules whose memory grows from step to step
//
// It does not know older blocks. The Trainer has one in every run, so that an OutOfMemory lists the
// memory of each module. It costs about 0.1 us per block; a step has hundreds of blocks.
#pragma once
#include <binade/core/device/device_stats.h>
#include <binade/core/device/memory_listener.h>
#include <binade/core/owned.h>

#include <optional>
#include <string>
#include <vector>

namespace binade {

// Blocks that outlive their steps and whose bytes grow with every step.
struct MemoryLeak {
  std::string label;  // the module path; empty: outside of modules
  int64_t bytes = 0;  // held now, of blocks that are older than two steps
  int64_t blocks = 0;
  int64_t bytes_per_step = 0;  // the growth over the last steps
  int64_t first_step = 0;      // the step of the oldest of these blocks
};

// A request that an allocator could not serve, and the modules that held the memory at that time.
struct MemoryRefusal {
  Device device;
  int64_t asked = 0;  // bytes
  std::string label;  // the module that asked
  int64_t step = 0;
  std::vector<LabelMemory> holders;  // on that device, largest first
};

class MemoryTracker final : public MemoryListener {
 public:
  MemoryTracker();
  ~MemoryTracker() override;
  MemoryTracker(const MemoryTracker&) = delete;
  MemoryTracker& operator=(const MemoryTracker&) = delete;

  // Live bytes by module over all devices, largest first.
  std::vector<LabelMemory> by_label() const;
  // The same at the moment when most bytes were live since the last call (within 2%).
  std::vector<LabelMemory> take_peak();
  // The last request that was refused; empty if there was none.
  std::optional<MemoryRefusal> refusal() const;

  // Call it after each step.
  void end_step();
  int64_t steps() const;
  // The labels whose memory grew in each of the last kLeakSteps steps. A loss kept with its graph
  // shows as the modules whose results the graph holds.
  static constexpr int64_t kLeakSteps = 8;
  std::vector<MemoryLeak> leaks() const;

  void allocated(Device device, const void* block, size_t asked, size_t bytes) noexcept override;
  void released(Device device, const void* block) noexcept override;
  void refused(Device device, size_t asked) noexcept override;

 private:
  struct State;
  Owned<State> state_;
};

// "conv1 12.3 MB, conv2 4.1 MB, 3 more 1.2 MB".
std::string memory_words(const std::vector<LabelMemory>& holders, size_t most = 6);
std::string to_string(const MemoryLeak& leak);

}  // namespace binade
