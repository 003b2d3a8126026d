// Copies of a training's state. Internal to train.
#pragma once
#include <binade/core/device/pinned.h>
#include <binade/core/io/named_tensors.h>
#include <binade/kernels/base/fork.h>
#include <binade/train/checkpoint_store.h>

#include <string>
#include <vector>

namespace binade::train {

// Copies on the same device, and on the CPU.
NamedTensors copies(const NamedTensors& tensors);
NamedTensors host_copies(const NamedTensors& tensors);

// A file of a checkpoint and the tensors in it.
struct StatePart {
  std::string file;
  NamedTensors tensors;
};
using StateParts = std::vector<StatePart>;
// A file of this name ending holds what delayed scales remember (nn::format_histories()).
inline constexpr const char* kScalesFile = "scales.safetensors";
// The files that a store writes. REQUIRES: the parts outlive them.
std::vector<CheckpointFile> checkpoint_files(const StateParts& parts);

// A copy of a state in host memory, which is used again for the next one.
class HostSnapshot {
 public:
  HostSnapshot() = default;
  // Waits. In a child of fork() it does nothing: the copies are the parent's.
  ~HostSnapshot();
  HostSnapshot(const HostSnapshot&) = delete;
  HostSnapshot& operator=(const HostSnapshot&) = delete;

  // Copies, after all work on the current streams so far and before all later work. Tensors of a
  // device are copied to pinned memory; the host does not wait for these copies. If the system has
  // no more pinned memory, there is one warning, and the host waits for the other copies.
  // REQUIRES: nobody reads the copy before.
  void take(const StateParts& parts);
  // Waits for the copy and returns it. Throws the faults that kernels have reported since. Any
  // thread may call it, but not while another calls take().
  const StateParts& parts() const;

 private:
  void take_part(const NamedTensors& from, NamedTensors& to, std::vector<PinnedBuffer>& memory);
  void take_tensor(const Tensor& source, Tensor& to, PinnedBuffer& memory);
  Tensor host_tensor_like(const Tensor& source, PinnedBuffer& memory);
  void arrive() const;

  uint32_t forks_ = fork_count();
  std::vector<std::vector<PinnedBuffer>> memory_;  // of the parts' tensors; empty: not pinned
  StateParts parts_;                               // after memory_, to end before it
  std::vector<binade::Event> queued_;              // the end of the copies, one for each device
  bool has_pinned_memory_ = true;
};

}  // namespace binade::train
