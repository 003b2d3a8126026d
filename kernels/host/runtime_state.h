// State of the fake CUDA runtime: streams as queues of work, events, captures. One lock guards it
// all.
#pragma once
#include <binade/kernels/host/cuda_runtime.h>
#include <binade/kernels/host/queue.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace binade::kernels::host {

using Clock = std::chrono::steady_clock;

// One recording of an event. Waiting work holds it, even if the event is destroyed.
struct Ticket {
  bool done = false;
  CUstream_st* stream = nullptr;  // where it will be recorded
  Clock::time_point time;
};

struct Work {
  enum Kind : uint8_t { run, kernel, record, wait };
  Kind kind = run;
  std::function<void()> body;      // of run and kernel; may throw KernelError
  std::shared_ptr<Ticket> ticket;  // of record and wait
};

struct Node {  // of a graph
  Work work;
  std::vector<int> after;
};

struct Capture {
  uint64_t number = 0;
  std::shared_ptr<CUgraph_st> graph;  // what it captures
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  uint64_t thread = 0;
  bool invalid = false;
};

struct Region {
  size_t bytes;
  int device;
};

struct Runtime {
  std::recursive_mutex mutex;
  StreamOptions options;
  std::vector<std::unique_ptr<CUstream_st>> streams;  // the null streams of the devices first
  std::vector<std::shared_ptr<Capture>> captures;     // in progress
  std::map<const std::byte*, Region> device_memory, pinned_memory;
  std::map<const void*, KernelState> kernels;       // by function
  std::deque<std::pair<std::byte*, size_t>> freed;  // still filled with NaN, for a while
  size_t freed_bytes = 0;
  std::vector<size_t> used;  // bytes per device
  std::mt19937_64 random;
  RuntimeCounts counts;
  InjectedFault fault;
  cudaError_t sticky = cudaSuccess;

  cudaError_t enter(const char* call);        // counts, injects
  cudaError_t fault_of(const char* what);     // the injected fault that is due, else success
  CUstream_st* resolve(cudaStream_t stream);  // null for one that does not exist
  void push(CUstream_st& stream, Work work);
  void execute(const Work& work);
  void wait_for(const std::function<bool()>& done, CUstream_st* target);
  void wait_for_device(int device);
  void run_something();             // one step of a random stream
  cudaError_t unsafe_in_capture();  // for calls that a capture forbids: invalidates captures
  bool holds(const std::map<const std::byte*, Region>& memory, const void* at, size_t bytes) const;

 private:
  bool runnable(const CUstream_st& stream) const;
  CUstream_st* needed(CUstream_st* target) const;
  CUstream_st* choose(CUstream_st* target);
  void step(CUstream_st& stream);
};

Runtime& runtime();
int& thread_device();
cudaError_t& thread_error();
uint64_t thread_number();
cudaStreamCaptureMode& thread_capture_mode();
bool is_sticky(cudaError_t error);

// Wraps every call: locks, counts, injects faults and keeps the error.
template <class F>
cudaError_t call(const char* name, F&& body) {
  Runtime& r = runtime();
  std::lock_guard lock(r.mutex);
  cudaError_t error = r.enter(name);
  if (error == cudaSuccess) {
    error = body(r);
  }
  if (error != cudaSuccess && error != cudaErrorNotReady) {
    thread_error() = error;
  }
  return error;
}

}  // namespace binade::kernels::host

struct CUstream_st {
  int device = 0;
  int priority = 0;
  bool destroyed = false;  // but not yet empty
  std::deque<binade::kernels::host::Work> queue;
  std::shared_ptr<binade::kernels::host::Capture> capture;
  std::vector<int> tail;  // the next captured node comes after these
};

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<binade::kernels::host::Ticket> ticket;    // of the last recording
  std::shared_ptr<binade::kernels::host::Capture> capture;  // the capture that recorded it, if any
  std::vector<int> nodes;
};

struct CUgraph_st {
  std::vector<binade::kernels::host::Node> nodes;
  std::vector<std::shared_ptr<void>> kept;  // user objects
};
struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;
};
struct CUuserObject_st {
  std::shared_ptr<void> object;
};
