#include <binade/kernels/cuda/call_count_internal.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/kernel_times.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <mutex>
#if !defined(BINADE_HOST_EXECUTION) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define BINADE_WITH_NVTX
#endif

namespace binade::kernels {
namespace {

constexpr unsigned kRecentCalls = 16;

struct CallState {
  const KernelCall* current = nullptr;
  int selected = 0;  // the device of this thread; 0 is the runtime's initial one
  unsigned calls = 0;
  const char* recent[kRecentCalls] = {};
  void* timed = nullptr;  // the begin of the call that is timed
};
constinit thread_local CallState calls;

// Errors after which the runtime refuses every call: the first one is the cause of all others.
struct FirstFault {
  std::mutex mutex;
  std::string text;
};
FirstFault& first_fault() {
  static FirstFault instance;
  return instance;
}

bool ends_the_context(int code) {
  return code == cudaErrorECCUncorrectable || code == cudaErrorLaunchTimeout ||
         (code >= cudaErrorAssert && code <= cudaErrorLaunchFailure) ||
         code == cudaErrorIllegalAddress;
}

const char* advice(int code) {
  if (ends_the_context(code)) {
    return "the device accepts no more work from this process: restart it; kernels run "
           "asynchronously, so an earlier operation may be the cause: BINADE_SYNC=1 names it";
  }
  if (code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread) {
    return "a graph is being captured: keep host reads, synchronisation and work of other streams "
           "out of it";
  }
  switch (code) {
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
      return "install an NVIDIA driver that is as new as the CUDA toolkit of this build";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorUnsupportedPtxVersion:
      return "this build has no code for this card: set CMAKE_CUDA_ARCHITECTURES";
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidValue:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidClusterSize:
      return "this is a defect of the engine: please report it with this text";
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
      return "another process may hold the device, or its services are not up: see nvidia-smi";
    default: return "see nvidia-smi and the driver's log for the state of the device";
  }
}

std::string recent_calls() {
  std::string names;
  for (unsigned i = 0; i < kRecentCalls && i < calls.calls; ++i) {
    names.append(i ? ", " : "").append(calls.recent[(calls.calls - 1 - i) % kRecentCalls]);
  }
  return names;
}

Device device_of_call() {
  if (calls.current) {
    return calls.current->device();
  }
#ifdef BINADE_HOST_EXECUTION
  return {Device::kEmulated, static_cast<int8_t>(calls.selected)};
#else
  return {Device::kCuda, static_cast<int8_t>(calls.selected)};
#endif
}

std::string error_text(int code, const char* what, const std::string& details) {
  const auto error = static_cast<cudaError_t>(code);
  std::string message = calls.current ? text(calls.current->name(), ": ") : std::string();
  message += text(what, " failed on ", device_of_call(), " with ", cudaGetErrorName(error), " (",
                  code, "), ", cudaGetErrorString(error));
  if (calls.current) {
    const View& operand = calls.current->decisive();
    message += text("; operand ", operand.dtype, " ", operand.sizes,
                    operand.contiguous ? std::string() : text(" strides ", operand.strides));
  }
  if (!details.empty()) {
    message += text("; ", details);
  }
  message += text("; ", advice(code));
  if (calls.calls > 0) {
    message += text("; operations started last: ", recent_calls());
  }
  return message;
}

}  // namespace

KernelCall::KernelCall(const char* name, const View& decisive)
    : name_(name), decisive_(&decisive), outer_(calls.current) {
  calls.current = this;
  calls.recent[calls.calls++ % kRecentCalls] = name;
  if (calls.selected != decisive.device.index) {
    calls.current = outer_;
    select_device(decisive.device);
    calls.current = this;
  }
  if (times_kernels() && !outer_) [[unlikely]] {
    calls.timed = begin_kernel_time(decisive.device);
  }
#ifdef BINADE_WITH_NVTX
  nvtxRangePushA(name);
#endif
}

KernelCall::~KernelCall() {
#ifdef BINADE_WITH_NVTX
  nvtxRangePop();
#endif
  if (calls.timed && !outer_) [[unlikely]] {
    end_kernel_time(name_, decisive_->device, calls.timed);
    calls.timed = nullptr;
  }
  calls.current = outer_;
}

const KernelCall* KernelCall::current() { return calls.current; }

unsigned started_calls() { return calls.calls; }

void select_device(Device device) {
  if (calls.selected != device.index) [[unlikely]] {
    check_cuda(cudaSetDevice(device.index), "cudaSetDevice");
    calls.selected = device.index;
  }
}

int selected_device() { return calls.selected; }

void throw_cuda_error(int code, const char* what, const std::string& details) {
  std::string message = error_text(code, what, details);
  cudaGetLastError();  // clears the error, so that no later call reports it
  if (ends_the_context(code)) {
    FirstFault& first = first_fault();
    std::lock_guard lock(first.mutex);
    if (first.text.empty()) {
      first.text = message;
    } else {
      message += text("; the first failure was: ", first.text);
    }
  }
  if (code == cudaErrorMemoryAllocation) {
    throw OutOfMemory(message);
  }
  throw CudaError(message, code);
}

void forget_first_fault() {
  std::lock_guard lock(first_fault().mutex);
  first_fault().text.clear();
}

const DeviceCount& cuda_devices() {
  static const DeviceCount devices = [] {
    DeviceCount found;
    const cudaError_t error = cudaGetDeviceCount(&found.count);
    if (error != cudaSuccess) {
      int driver = 0;
      cudaDriverGetVersion(&driver);
      found.count = 0;
      const auto version = [](int number) { return text(number / 1000, ".", number % 1000 / 10); };
      int runtime = 0;
      cudaRuntimeGetVersion(&runtime);
      if (driver == 0) {
        found.reason = "no NVIDIA driver is installed";
      } else if (error == cudaErrorInsufficientDriver) {
        found.reason = text("the NVIDIA driver is too old: it supports CUDA ", version(driver),
                            ", this build needs ", version(runtime));
      } else if (error == cudaErrorNoDevice) {
        found.reason = "the machine has no GPU, or CUDA_VISIBLE_DEVICES hides it";
      } else {
        found.reason = text("the NVIDIA driver reports ", cudaGetErrorName(error), " (",
                            static_cast<int>(error), "), ", cudaGetErrorString(error));
      }
      cudaGetLastError();
    } else if (found.count == 0) {
      found.reason = "the machine has no GPU, or CUDA_VISIBLE_DEVICES hides it";
    }
    return found;
  }();
  return devices;
}

}  // namespace binade::kernels
