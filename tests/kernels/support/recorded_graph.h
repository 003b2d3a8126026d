// CUDA graphs of kernel calls, and device workspaces that are released only at the end of a test.
// Kernel tests have no caching allocator, and with deferred streams and graphs the work that uses a
// workspace runs after the call that allocated it.
#pragma once
#include <tests/kernels/support/strided_array.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/base/stream.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/cuda/relaxed_capture_internal.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace binade::kernels {

inline std::vector<void*>& kept_workspaces() {
  static auto& blocks = *new std::vector<void*>;
  return blocks;
}

inline void keep_workspaces() {
  set_workspace_source({[](Device, size_t bytes) {
                          const RelaxedCapture relaxed;
                          void* block = nullptr;
                          cudaMalloc(&block, std::max<size_t>(bytes, 1));
                          kept_workspaces().push_back(block);
                          return block;
                        },
                        [](Device, void*, size_t) noexcept {}});
}

// REQUIRES: nothing is queued.
inline void free_workspaces() {
  for (void* block : kept_workspaces()) {
    cudaFree(block);
  }
  kept_workspaces().clear();
}

// A graph of the work that a function queues.
class RecordedGraph {
 public:
  explicit RecordedGraph(const std::function<void()>& work) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    set_current_stream(test_device(), stream_);
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    work();
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph_), cudaSuccess);
    set_current_stream(test_device(), nullptr);
    EXPECT_EQ(cudaGraphInstantiate(&ready_, graph_, 0), cudaSuccess);
  }
  ~RecordedGraph() {
    cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
    cudaStreamDestroy(stream_);
  }
  RecordedGraph(const RecordedGraph&) = delete;
  RecordedGraph& operator=(const RecordedGraph&) = delete;

  // Also waits for other streams.
  void replay() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(ready_, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace binade::kernels
#endif
