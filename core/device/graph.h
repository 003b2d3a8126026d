// Graph: device work recorded once and replayed as one launch.
//
//   Graph step(device);
//   step.capture([&] { loss = train_step(static_inputs); });
//   for (...) { static_inputs.copy_(batch); step.replay(); }
//
// capture() empties the cache and runs nothing on the device. Memory that the function allocates
// belongs to the graph, at addresses that every replay reuses: write inputs into the tensors that
// it read, and read results from those that it returned; keep both alive. Inside, reading device
// memory on the host is an error that names the operation, and so is waiting for the device.
#pragma once
#include <binade/core/device/stream.h>

#include <cstdint>
#include <functional>

namespace binade {

class Graph {
 public:
  explicit Graph(Device device);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Records the device work that `work` queues. During the capture the device's current stream is a
  // stream of the graph; another stream takes part if it waits for that stream, which must wait
  // for it in turn before the capture ends. A second call replaces the recorded graph.
  void capture(const std::function<void()>& work);
  // Runs on the calling thread's current stream.
  void replay() const;
  bool captured() const { return exec_ != nullptr; }

 private:
  void reset() noexcept;

  Device device_;
  Stream stream_;
  uint64_t id_ = 0;
  void* exec_ = nullptr;
};

// True if the calling thread captures a graph on `device`.
bool is_capturing(Device device);

}  // namespace binade
