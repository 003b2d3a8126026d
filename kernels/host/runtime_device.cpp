// Devices, errors and injected faults of the fake runtime.
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/host/runtime_state.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace binade::kernels::host {
namespace {

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
#define BINADE_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    BINADE_ERROR(cudaSuccess, "no error"),
    BINADE_ERROR(cudaErrorInvalidValue, "invalid argument"),
    BINADE_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    BINADE_ERROR(cudaErrorInitializationError, "initialization error"),
    BINADE_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    BINADE_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    BINADE_ERROR(cudaErrorInsufficientDriver,
                 "CUDA driver version is insufficient for CUDA runtime version"),
    BINADE_ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    BINADE_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    BINADE_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    BINADE_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    BINADE_ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    BINADE_ERROR(cudaErrorNoKernelImageForDevice,
                 "no kernel image is available for execution on the device"),
    BINADE_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    BINADE_ERROR(cudaErrorUnsupportedPtxVersion,
                 "the provided PTX was compiled with an unsupported toolchain."),
    BINADE_ERROR(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    BINADE_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    BINADE_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    BINADE_ERROR(cudaErrorNotReady, "device not ready"),
    BINADE_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    BINADE_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    BINADE_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    BINADE_ERROR(cudaErrorAssert, "device-side assert triggered"),
    BINADE_ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    BINADE_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    BINADE_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    BINADE_ERROR(cudaErrorInvalidAddressSpace,
                 "operation not supported on global/shared address space"),
    BINADE_ERROR(cudaErrorInvalidPc, "invalid program counter"),
    BINADE_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    BINADE_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    BINADE_ERROR(cudaErrorNotSupported, "operation not supported"),
    BINADE_ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    BINADE_ERROR(cudaErrorSystemDriverMismatch,
                 "system has unsupported display driver / cuda driver combination"),
    BINADE_ERROR(cudaErrorStreamCaptureUnsupported,
                 "operation not permitted when stream is capturing"),
    BINADE_ERROR(cudaErrorStreamCaptureInvalidated,
                 "operation failed due to a previous error during capture"),
    BINADE_ERROR(cudaErrorStreamCaptureMerge,
                 "operation would result in a merge of separate capture sequences"),
    BINADE_ERROR(cudaErrorStreamCaptureUnmatched,
                 "capture was not ended in the same stream as it "
                 "began"),
    BINADE_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    BINADE_ERROR(cudaErrorStreamCaptureIsolation,
                 "dependency created on uncaptured work in another stream"),
    BINADE_ERROR(cudaErrorStreamCaptureImplicit,
                 "operation would make the legacy stream depend on a capturing blocking stream"),
    BINADE_ERROR(cudaErrorCapturedEvent,
                 "operation not permitted on an event last recorded in a capturing stream"),
    BINADE_ERROR(cudaErrorStreamCaptureWrongThread,
                 "attempt to terminate a thread-local capture sequence from another thread"),
    BINADE_ERROR(cudaErrorInvalidClusterSize, "cluster misconfiguration"),
    BINADE_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef BINADE_ERROR

const ErrorText* text_of(cudaError_t error) {
  for (const ErrorText& entry : kErrors) {
    if (entry.error == error) {
      return &entry;
    }
  }
  return nullptr;
}

}  // namespace

StreamOptions& stream_options() { return runtime().options; }

Runtime& runtime() {  // never destroyed: tensors may outlive main
  static Runtime* instance = [] {
    auto* made = new Runtime;
    const char* streams = std::getenv("BINADE_HOST_STREAMS");
    made->options.deferred = streams && std::strcmp(streams, "deferred") == 0;
    made->options.seed = number_from("BINADE_HOST_STREAM_SEED", 0);
    made->options.devices = static_cast<int>(number_from("BINADE_HOST_DEVICES", 1));
    made->options.memory = number_from("BINADE_HOST_MEMORY", size_t{4} << 30);
    for (int device = 0; device < made->options.devices; ++device) {
      made->streams.push_back(std::make_unique<CUstream_st>());
      made->streams.back()->device = device;
    }
    made->used.resize(static_cast<size_t>(made->options.devices));
    return made;
  }();
  return *instance;
}

int& thread_device() {
  static thread_local int device = 0;
  return device;
}
cudaError_t& thread_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}
uint64_t thread_number() {
  static std::atomic<uint64_t> threads{0};
  static thread_local const uint64_t number = ++threads;
  return number;
}

bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

cudaError_t Runtime::fault_of(const char* what) {
  const bool meant = fault.call.empty() ? std::strcmp(what, "kernel") != 0 : fault.call == what;
  if (fault.code == 0 || !meant || --fault.k > 0) {
    return cudaSuccess;
  }
  const auto error = static_cast<cudaError_t>(fault.code);
  if (!fault.stays) {
    fault.code = 0;
  }
  return error;
}

cudaError_t Runtime::enter(const char* name) {
  ++counts.calls;
  if (options.devices == 0) {
    return cudaErrorNoDevice;
  }
  if (sticky == cudaSuccess) {
    const cudaError_t error = fault_of(name);
    if (!is_sticky(error)) {
      return error;
    }
    sticky = error;
  }
  return sticky;
}

void inject_fault(const InjectedFault& fault) {
  std::lock_guard lock(runtime().mutex);
  runtime().fault = fault;
}

void reset_faults() {
  Runtime& r = runtime();
  std::lock_guard lock(r.mutex);
  r.fault = {};
  thread_error() = cudaSuccess;
  if (r.sticky != cudaSuccess) {
    for (auto& stream : r.streams) {
      for (Work& work : stream->queue) {
        if (work.ticket && work.kind == Work::record) {
          work.ticket->done = true;
        }
      }
      stream->queue.clear();
      stream->capture = nullptr;
      stream->tail.clear();
    }
    r.captures.clear();
  }
  r.sticky = cudaSuccess;
  forget_first_fault();
}

RuntimeCounts runtime_counts() {
  std::lock_guard lock(runtime().mutex);
  return runtime().counts;
}

}  // namespace binade::kernels::host

using namespace binade::kernels::host;  // NOLINT: the calls below are global

const char* cudaGetErrorName(cudaError_t error) {
  const auto* entry = text_of(error);
  return entry ? entry->name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  const auto* entry = text_of(error);
  return entry ? entry->text : "unrecognized error code";
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  thread_error() = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  std::lock_guard lock(runtime().mutex);
  return runtime().sticky != cudaSuccess ? runtime().sticky : thread_error();
}

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](Runtime& r) {
    *count = r.options.devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}
cudaError_t cudaGetDevice(int* device) {
  *device = thread_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](Runtime& r) {
    if (device < 0 || device >= r.options.devices) {
      return cudaErrorInvalidDevice;
    }
    thread_device() = device;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&](Runtime& r) {
    ++r.counts.queries;
    if (device < 0 || device >= r.options.devices) {
      return cudaErrorInvalidDevice;
    }
    switch (attribute) {  // a Hopper card, except for its size
      case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
      case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 * 1024; break;
      case cudaDevAttrWarpSize: *value = 32; break;
      case cudaDevAttrMultiProcessorCount: *value = 4; break;
      case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
      case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
      case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
      case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
      case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 * 1024; break;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 * 1024; break;
      default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&](Runtime& r) {
    ++r.counts.queries;
    if (device < 0 || device >= r.options.devices) {
      return cudaErrorInvalidDevice;
    }
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "emulated device");
    properties->totalGlobalMem = r.options.memory;
    properties->major = 9;
    properties->multiProcessorCount = 4;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
