// Stream capture and graphs of the fake runtime. A captured stream queues nothing: its work becomes
// nodes, ordered only by the streams and the events between them.
#include <binade/kernels/host/runtime_state.h>

#include <algorithm>

namespace binade::kernels::host {
namespace {

void leave(Runtime& r, const std::shared_ptr<Capture>& capture) {
  for (auto& stream : r.streams) {
    if (stream->capture == capture) {
      stream->capture = nullptr;
      stream->tail.clear();
    }
  }
  std::erase(r.captures, capture);
}

// True if all work of forked streams comes before the last work of the origin.
bool joined(const Runtime& r, const Capture& capture) {
  const std::vector<Node>& nodes = capture.graph->nodes;
  std::vector<bool> before(nodes.size());
  std::vector<int> todo = capture.origin->tail;
  while (!todo.empty()) {
    const auto node = static_cast<size_t>(todo.back());
    todo.pop_back();
    if (!before[node]) {
      before[node] = true;
      todo.insert(todo.end(), nodes[node].after.begin(), nodes[node].after.end());
    }
  }
  for (const auto& stream : r.streams) {
    if (stream->capture.get() == &capture) {
      for (int node : stream->tail) {
        if (!before[static_cast<size_t>(node)]) {
          return false;
        }
      }
    }
  }
  return true;
}

// Runs all nodes in an order that respects their predecessors and otherwise depends on the seed.
void replay(Runtime& r, const std::vector<Node>& nodes) {
  std::vector<int> missing(nodes.size());
  std::vector<std::vector<int>> next(nodes.size());
  std::vector<int> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<int> after = nodes[i].after;
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    missing[i] = static_cast<int>(after.size());
    for (int before : after) {
      next[static_cast<size_t>(before)].push_back(static_cast<int>(i));
    }
    if (after.empty()) {
      ready.push_back(static_cast<int>(i));
    }
  }
  while (!ready.empty()) {
    const uint64_t seed = r.options.seed;
    const size_t pick = seed == 0 ? 0 : seed == 1 ? ready.size() - 1 : r.random() % ready.size();
    const auto node = static_cast<size_t>(ready[pick]);
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    r.execute(nodes[node].work);
    for (int follower : next[node]) {
      if (--missing[static_cast<size_t>(follower)] == 0) {
        ready.push_back(follower);
      }
    }
  }
}

}  // namespace

cudaStreamCaptureMode& thread_capture_mode() {
  static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

cudaError_t Runtime::unsafe_in_capture() {
  if (thread_capture_mode() == cudaStreamCaptureModeRelaxed) {
    return cudaSuccess;
  }
  bool forbidden = false;
  for (auto& capture : captures) {
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread == thread_number())) {
      capture->invalid = true;
      forbidden = true;
    }
  }
  return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace binade::kernels::host

using namespace binade::kernels::host;  // NOLINT: the calls below are global

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_capture_mode());
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](Runtime& r) {
    CUstream_st* origin = r.resolve(stream);
    if (!origin) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!stream || origin->capture) {  // the null stream cannot be captured
      return cudaErrorStreamCaptureUnsupported;
    }
    static uint64_t captures = 0;
    auto capture = std::make_shared<Capture>();
    capture->number = ++captures;
    capture->graph = std::make_shared<CUgraph_st>();
    capture->origin = origin;
    capture->mode = mode;
    capture->thread = thread_number();
    origin->capture = capture;
    origin->tail.clear();
    r.captures.push_back(capture);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&](Runtime& r) {
    *graph = nullptr;
    CUstream_st* origin = r.resolve(stream);
    if (!origin || !origin->capture) {
      return cudaErrorInvalidValue;
    }
    const std::shared_ptr<Capture> capture = origin->capture;
    if (capture->origin != origin) {
      return cudaErrorStreamCaptureUnmatched;
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != thread_number()) {
      return cudaErrorStreamCaptureWrongThread;
    }
    const bool complete = joined(r, *capture);
    leave(r, capture);
    if (capture->invalid) {
      return cudaErrorStreamCaptureInvalidated;
    }
    if (!complete) {
      return cudaErrorStreamCaptureUnjoined;
    }
    *graph = new CUgraph_st(std::move(*capture->graph));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](Runtime& r) {
    CUstream_st* target = r.resolve(stream);
    if (!target) {
      return cudaErrorInvalidResourceHandle;
    }
    *status = !target->capture           ? cudaStreamCaptureStatusNone
              : target->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph) {
  const cudaError_t error = cudaStreamIsCapturing(stream, status);
  if (error != cudaSuccess || *status != cudaStreamCaptureStatusActive) {
    return error;
  }
  return call("cudaStreamGetCaptureInfo", [&](Runtime& r) {
    const Capture& capture = *r.resolve(stream)->capture;
    if (id) {
      *id = capture.number;
    }
    if (graph) {
      *graph = capture.graph.get();
    }
    return cudaSuccess;
  });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* owner, void* object, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
  return call("cudaUserObjectCreate", [&](Runtime&) {
    if (!destroy || references != 1 || flags != cudaUserObjectNoDestructorSync) {
      return cudaErrorInvalidValue;
    }
    *owner = new CUuserObject_st{std::shared_ptr<void>(object, destroy)};
    return cudaSuccess;
  });
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t owner, unsigned count) {
  return call("cudaUserObjectRelease", [&](Runtime&) {
    if (count != 1) {
      return cudaErrorInvalidValue;
    }
    delete owner;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t owner, unsigned count,
                                      unsigned flags) {
  return call("cudaGraphRetainUserObject", [&](Runtime&) {
    if (count != 1 || flags != cudaGraphUserObjectMove) {
      return cudaErrorInvalidValue;
    }
    graph->kept.push_back(std::move(owner->object));
    delete owner;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [&](Runtime&) {
    *exec = new CUgraphExec_st{std::make_shared<const CUgraph_st>(*graph)};
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&](Runtime& r) {
    CUstream_st* target = r.resolve(stream);
    if (!target) {
      return cudaErrorInvalidResourceHandle;
    }
    if (target->capture) {
      target->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;  // CUDA would make a child graph of it
    }
    r.push(*target, {Work::run, [&r, graph = exec->graph] { replay(r, graph->nodes); }, nullptr});
    return r.sticky;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {  // frees the object, whatever it returns
  std::lock_guard lock(runtime().mutex);
  delete exec;
  return call("cudaGraphExecDestroy", [](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {  // frees the object, whatever it returns
  std::lock_guard lock(runtime().mutex);
  delete graph;
  return call("cudaGraphDestroy", [](Runtime&) { return cudaSuccess; });
}
