// The CUDA runtime for kernels in the lab: one device, with synchronous calls. Memory from
// cudaMalloc() lies between guards.
#include <binade/kernels/base/error.h>
#include <binade/kernels/host/named_ranges.h>
#include <binade/lab/device/runtime.h>
#include <binade/lab/runner/events_internal.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace binade::lab {
namespace host = kernels::host;

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

// Memory that was freed in this run. It keeps its name, so that a later use is a finding.
std::vector<std::unique_ptr<GuardedBuffer>>& freed() {
  static auto& freed = *new std::vector<std::unique_ptr<GuardedBuffer>>;
  return freed;
}

// Returns "partials", the last word of the first argument, for "(void**)&partials, n * 4".
std::string name_in(std::string_view words) {
  int depth = 0;
  size_t end = 0;
  for (; end < words.size() && (depth > 0 || words[end] != ','); ++end) {
    depth += words[end] == '(' || words[end] == '[' ? 1 : 0;
    depth -= words[end] == ')' || words[end] == ']' ? 1 : 0;
  }
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  while (end > 0 && !is_word(words[end - 1])) {
    --end;
  }
  size_t begin = end;
  while (begin > 0 && is_word(words[begin - 1])) {
    --begin;
  }
  return std::string(words.substr(begin, end - begin));
}

struct HostCall {
  const char* name;
  const void* begin;
  size_t bytes;
  bool writes;
};
// True if the bytes of a call lie within the array in which they begin.
bool fits(const HostCall& call, host::Site site) {
  const host::FoundElement element = host::element_at(call.begin);
  if (element.space != host::MemorySpace::global || element.array.empty()) {
    return true;  // host memory
  }
  const auto size = static_cast<int64_t>(std::max<size_t>(element.element_bytes, 1));
  const int64_t left = (element.count - element.index) * size;
  if (element.index >= 0 && static_cast<int64_t>(call.bytes) <= left) {
    return true;
  }
  host::Finding finding;
  finding.kind = host::FindingKind::out_of_bounds;
  finding.severity = severity_of(finding.kind);
  finding.first.act = call.writes ? host::Act::write : host::Act::read;
  finding.first.line = {site.file == nullptr ? "" : site.file, site.line, "", 0};
  finding.element = element;
  if (element.index >= 0) {
    finding.element.index = element.count;  // the first element out of bounds
  }
  finding.message = text(call.name, " of ", call.bytes, " bytes ", call.writes ? "writes" : "reads",
                         " beyond ", element.array, ", which has ", element.count * size, " bytes");
  host::add_finding(finding);
  return false;
}

}  // namespace

cudaError_t copy(const char* call, void* to, const void* from, size_t bytes, host::Site site) {
  if (bytes == 0) {
    return cudaSuccess;
  }
  if (to == nullptr || from == nullptr || !fits({call, from, bytes, false}, site) ||
      !fits({call, to, bytes, true}, site)) {
    return done(cudaErrorInvalidValue);
  }
  std::memmove(to, from, bytes);
  host::mark_written(to, bytes);
  return cudaSuccess;
}

cudaError_t fill(const char* call, void* block, int value, size_t bytes, host::Site site) {
  if (bytes == 0) {
    return cudaSuccess;
  }
  if (block == nullptr || !fits({call, block, bytes, true}, site)) {
    return done(cudaErrorInvalidValue);
  }
  std::memset(block, value, bytes);
  host::mark_written(block, bytes);
  return cudaSuccess;
}

cudaError_t allocate(void** block, const Allocation& wanted, host::Site site) {
  constexpr size_t kMost = size_t{8} << 30;
  if (block == nullptr || wanted.bytes > kMost) {
    return done(block == nullptr ? cudaErrorInvalidValue : cudaErrorMemoryAllocation);
  }
  if (wanted.bytes == 0) {
    *block = nullptr;
    return cudaSuccess;
  }
  std::string name = name_in(wanted.words);
  if (name.empty()) {
    name = text("the memory of line ", site.line);
  }
  auto buffer =
      std::make_unique<GuardedBuffer>(host::GuardedOptions{.name = std::move(name),
                                                           .bytes = wanted.bytes,
                                                           .element_bytes = wanted.element_bytes,
                                                           .host_visible = wanted.host_visible});
  *block = buffer->data();
  allocations()[*block] = std::move(buffer);
  return cudaSuccess;
}

void set_last_error(cudaError_t error) { last_error() = error; }

cudaError_t release(void* block) {
  if (block == nullptr) {
    return cudaSuccess;
  }
  const auto found = allocations().find(block);
  if (found == allocations().end()) {
    return done(cudaErrorInvalidValue);
  }
  found->second->check_guards();
  constexpr size_t kMostFreed = size_t{64} << 20;
  size_t bytes = found->second->bytes();
  for (const auto& buffer : freed()) {
    bytes += buffer->bytes();
  }
  if (bytes <= kMostFreed) {
    found->second->retire();
    freed().push_back(std::move(found->second));
  }
  allocations().erase(found);
  return cudaSuccess;
}

int free_allocations() {
  const int count = static_cast<int>(allocations().size());
  for (const auto& [address, buffer] : allocations()) {
    buffer->check_guards();
  }
  allocations().clear();
  freed().clear();
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
cudaError_t cudaFree(void* block) { return binade::lab::release(block); }
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
// Returns the executor's limits and, for attributes that size a grid, the values of an H100 SXM.
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
