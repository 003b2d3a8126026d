// Work of a device that uses an object of the host, such as a plan of a library: it may still run,
// and a graph may run it again. Who destroys the object waits for the former, and leaves it to the
// graph in the latter case.
#pragma once
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <vector>

namespace binade::kernels {

// The last work on each stream, outside of graphs. Work on the null stream, which lives as long as
// the device, costs no call of the runtime until somebody waits. After work on another stream an
// event is recorded, because its owner may have destroyed the stream by then.
class DeviceUses {
 public:
  DeviceUses() = default;
  ~DeviceUses();
  DeviceUses(const DeviceUses&) = delete;
  DeviceUses& operator=(const DeviceUses&) = delete;

  // Work of the current device was queued on the stream, which captures nothing.
  void note(cudaStream_t stream);
  // Until all of it is done. REQUIRES: its device is the current one.
  void wait() const;

 private:
  struct Use {
    cudaStream_t stream;
    cudaEvent_t done;
  };
  void forget_done();

  bool on_null_stream_ = false;
  std::vector<Use> last_;
};

// The graph that the stream's work goes to; null if none is being captured.
cudaGraph_t graph_of_capture(cudaStream_t stream);

// Calls release(object) when the graph and all executable graphs made from it are gone, on any
// thread; it must not call CUDA. If this function throws, it has called it.
void keep_with_graph(cudaGraph_t graph, void* object, void (*release)(void* object));

}  // namespace binade::kernels
