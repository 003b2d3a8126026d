// The CUDA runtime of kernels in the lab: one device, on which every call has happened when it
// returns. Memory of cudaMalloc() stands between guards.
#include <binade/kernels/host/named_ranges.h>
#include <binade/lab/device/runtime.h>
#include <binade/lab/runner/events_internal.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <map>
#include <memory>

namespace binade::lab {
namespace {

using kernels::host::GuardedBuffer;

std::map<void*, std::unique_ptr<GuardedBuffer>>& allocations() {
  static auto& allocations = *new std::map<void*, std::unique_ptr<GuardedBuffer>>;
  return allocations;
}

using Moment = std::chrono::steady_clock::time_point;

cudaError_t& last_error() {
  static cudaError_t error = cudaSuccess;
  return error;
}
cudaError_t done(cudaError_t error) {
  if (error != cudaSuccess) {
    last_error() = error;
  }
  return error;
}

// Bytes from a range that is wholly in one allocation, or anywhere on the host.
cudaError_t copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) {
    return cudaSuccess;
  }
  if (to == nullptr || from == nullptr) {
    return done(cudaErrorInvalidValue);
  }
  std::memmove(to, from, bytes);
  kernels::host::mark_written(to, bytes);
  return cudaSuccess;
}

}  // namespace

cudaError_t allocate(void** block, size_t bytes, size_t element_bytes, kernels::host::Site site) {
  constexpr size_t kMost = size_t{8} << 30;
  if (block == nullptr || bytes > kMost) {
    return done(block == nullptr ? cudaErrorInvalidValue : cudaErrorMemoryAllocation);
  }
  if (bytes == 0) {
    *block = nullptr;
    return cudaSuccess;
  }
  const std::string file = site.file == nullptr ? "?" : site.file;
  auto buffer = std::make_unique<GuardedBuffer>(kernels::host::GuardedOptions{
      .name = text("cudaMalloc at ", file.substr(file.rfind('/') + 1), ":", site.line),
      .bytes = bytes,
      .element_bytes = element_bytes});
  *block = buffer->data();
  allocations()[*block] = std::move(buffer);
  return cudaSuccess;
}

int free_allocations() {
  const int count = static_cast<int>(allocations().size());
  for (const auto& [address, buffer] : allocations()) {
    buffer->check_guards();
  }
  allocations().clear();
  return count;
}

cudaError_t copy_to_symbol(void* symbol, size_t symbol_bytes, const void* from, size_t bytes,
                           size_t offset) {
  if (from == nullptr || offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return done(cudaErrorInvalidValue);
  }
  std::memcpy(static_cast<char*>(symbol) + offset, from, bytes);
  return cudaSuccess;
}

}  // namespace binade::lab

using binade::lab::allocations;
using binade::lab::done;
using binade::lab::Moment;

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
cudaError_t cudaFree(void* block) {
  if (block == nullptr) {
    return cudaSuccess;
  }
  const auto found = allocations().find(block);
  if (found == allocations().end()) {
    return done(cudaErrorInvalidValue);
  }
  found->second->check_guards();
  allocations().erase(found);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return binade::lab::copy(to, from, bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  return binade::lab::copy(to, from, bytes);
}
cudaError_t cudaMemset(void* block, int value, size_t bytes) {
  if (block == nullptr && bytes > 0) {
    return done(cudaErrorInvalidValue);
  }
  std::memset(block, value, bytes);
  binade::kernels::host::mark_written(block, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* block, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(block, value, bytes);
}
cudaError_t cudaMallocHost(void** block, size_t bytes) {
  return binade::lab::allocate(block, bytes, 1, {"cudaMallocHost", 0});
}
cudaError_t cudaFreeHost(void* block) { return cudaFree(block); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = binade::lab::last_error();
  binade::lab::last_error() = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return binade::lab::last_error(); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    default: return "error of the CUDA runtime";
  }
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    default: return "cudaErrorUnknown";
  }
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : done(cudaErrorInvalidDevice);
}
// The limits of the executor, and the numbers of one H100 SXM where a kernel may size its grid.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = 132; break;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    default: return done(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Binade's host executor");
  properties->totalGlobalMem = size_t{8} << 30;
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->warpSize = 32;
  properties->regsPerBlock = 1 << 16;
  properties->l2CacheSize = 50 << 20;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  const int threads[] = {1024, 1024, 64}, blocks[] = {INT_MAX, 65535, 65535};
  std::copy_n(threads, 3, properties->maxThreadsDim);
  std::copy_n(blocks, 3, properties->maxGridSize);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{8} << 30;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned) {
  return cudaMallocHost(block, bytes);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const auto after = allocations().upper_bound(const_cast<void*>(pointer));
  const bool is_allocated =
      after != allocations().begin() &&
      static_cast<const char*>(pointer) <
          static_cast<const char*>(std::prev(after)->first) + std::prev(after)->second->bytes();
  void* const block = const_cast<void*>(pointer);
  *attributes = {is_allocated ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered, 0,
                 is_allocated ? block : nullptr, block};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || value > 227 << 10) {
      return done(cudaErrorInvalidValue);
    }
    binade::lab::allow_shared(value);
  }
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {1024, 48 << 10, -1};
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Moment);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Moment*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  *reinterpret_cast<Moment*>(event) = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto time = *reinterpret_cast<Moment*>(end) - *reinterpret_cast<Moment*>(start);
  *milliseconds = std::chrono::duration<float, std::milli>(time).count();
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)
