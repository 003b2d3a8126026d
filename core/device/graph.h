// Graph: device work recorded once and replayed as one launch.
//
//   Graph step(device);
//   step.capture([&] { loss = train_step(static_inputs); });
//   for (...) { static_inputs.copy_(batch); step.replay(); }
//
// capture() runs nothing on the device. What the function allocates comes from memory that belongs
// to the graph, at addresses that every replay uses again: results are read from the tensors it
// left, inputs are written into the tensors it read, which must stay alive. Reading device memory
// on the host inside is an error that names the operation; so is waiting for the device.
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

  // Records what `work` queues on the current stream of the device, which is a stream of the graph
  // meanwhile; other streams take part if they wait for it and it waits for them. Captures again
  // if it already has.
  void capture(const std::function<void()>& work);
  // On the calling thread's current stream.
  void replay() const;
  bool captured() const { return exec_ != nullptr; }

 private:
  void reset() noexcept;

  Device device_;
  Stream stream_;
  uint64_t id_ = 0;
  void* exec_ = nullptr;
};

// Whether the calling thread captures a graph on `device`.
bool is_capturing(Device device);

}  // namespace binade
