#include <binade/kernels/cuda/fault.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <array>
#include <atomic>
#include <mutex>

namespace binade::kernels {
namespace {

constexpr size_t kMaxDevices = 64;
std::array<std::atomic<FaultReport*>, kMaxDevices> reports;  // never freed: graphs keep addresses
std::mutex mutex;

// The allocation must not become part of a graph that is being captured.
FaultReport* allocate_report() {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check_cuda(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  void* block = nullptr;
  const cudaError_t error = cudaHostAlloc(&block, sizeof(FaultReport), cudaHostAllocDefault);
  cudaThreadExchangeStreamCaptureMode(&mode);
  check_cuda(error, "cudaHostAlloc");
  return new (block) FaultReport{};
}

}  // namespace

FaultSite fault_site(Device device, const char* op, const char* what) {
  auto& slot = reports[static_cast<size_t>(device.index)];
  FaultReport* report = slot.load(std::memory_order_acquire);
  if (!report) [[unlikely]] {
    std::lock_guard lock(mutex);
    report = slot.load(std::memory_order_acquire);
    if (!report) {
      select_device(device);
      report = allocate_report();
      slot.store(report, std::memory_order_release);
    }
  }
  return {report, op, what};
}

void throw_reported_fault(Device device) {
  FaultReport* report = reports[static_cast<size_t>(device.index)].load(std::memory_order_acquire);
  if (!report) {
    return;
  }
  std::atomic_ref<unsigned> state(report->state);
  if (state.load(std::memory_order_acquire) != 2) [[likely]] {
    return;
  }
  const FaultReport found = *report;
  state.store(0, std::memory_order_release);
  const std::string tail = text("; found by a kernel on ", device,
                                ", which works asynchronously: results since then are not valid");
  const std::string got = text(found.op, ": got ", found.what, " ");
  if (found.real) {
    throw ValueError(text(got, found.number, ", expected 0 to ", found.bound, tail), found.op,
                     found.number);
  }
  throw IndexError(text(got, found.value, ", expected 0 to ", found.bound - 1, tail), found.op,
                   found.value);
}

}  // namespace binade::kernels
