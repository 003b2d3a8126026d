// Memory and copies of the fake runtime.
#include <binade/kernels/host/runtime_state.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace binade::kernels::host {
namespace {

constexpr size_t kAlignment = 512;
constexpr int kPoison = 0xFF;  // NaN in every floating dtype
#if defined(__SANITIZE_ADDRESS__) || defined(BINADE_HOST_ASAN)
constexpr size_t kFreedKept = 0;  // AddressSanitizer keeps freed memory itself
#else
constexpr size_t kFreedKept = size_t{64} << 20;
#endif

std::byte* take(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes) != 0) {
    return nullptr;
  }
  std::memset(block, kPoison, bytes);
  return static_cast<std::byte*>(block);
}

// The freed memory is kept for a while, so that a late read sees the poison.
void give_back(Runtime& r, std::byte* block, size_t bytes) {
  std::memset(block, kPoison, bytes);
  r.freed.emplace_back(block, bytes);
  r.freed_bytes += bytes;
  while (r.freed_bytes > kFreedKept && !r.freed.empty()) {
    r.freed_bytes -= r.freed.front().second;
    std::free(r.freed.front().first);
    r.freed.pop_front();
  }
}

cudaError_t host_alloc(Runtime& r, void** block, size_t bytes) {
  if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
    return error;
  }
  std::byte* made = take(std::max<size_t>(bytes, 1));
  if (!made) {
    return cudaErrorMemoryAllocation;
  }
  r.pinned_memory[made] = {bytes, thread_device()};
  r.counts.pinned_bytes += bytes;
  ++r.counts.pinned_allocations;
  *block = made;
  return cudaSuccess;
}

// Checks the direction of a copy, and that its device side is device memory.
bool sides_fit(const Runtime& r, const void* to, const void* from, size_t bytes,
               cudaMemcpyKind& kind) {
  const bool to_device = r.holds(r.device_memory, to, bytes);
  const bool from_device = r.holds(r.device_memory, from, bytes);
  if (kind == cudaMemcpyDefault) {
    kind = to_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                     : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
  }
  return to_device == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
         from_device == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
}

cudaError_t copy_on(Runtime& r, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                    cudaStream_t stream) {
  CUstream_st* target = r.resolve(stream);
  if (!target) {
    return cudaErrorInvalidResourceHandle;
  }
  if (bytes == 0) {
    return cudaSuccess;
  }
  if (!sides_fit(r, to, from, bytes, kind)) {
    return cudaErrorInvalidValue;
  }
  const bool pageable =
      (kind == cudaMemcpyHostToDevice && !r.holds(r.pinned_memory, from, bytes)) ||
      (kind == cudaMemcpyDeviceToHost && !r.holds(r.pinned_memory, to, bytes));
  if (target->capture) {
    if (target->capture->invalid) {
      return cudaErrorStreamCaptureInvalidated;
    }
    if (pageable) {
      target->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
  }
  r.push(*target, {Work::run, [=] { std::memmove(to, from, bytes); }, nullptr});
  return r.sticky;
}

}  // namespace

// A range of mapped memory may consist of several regions.
bool Runtime::holds(const std::map<const std::byte*, Region>& memory, const void* at,
                    size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(at);
  const std::byte* last = first + bytes;
  auto found = memory.upper_bound(first);
  if (found == memory.begin()) {
    return false;
  }
  --found;
  const std::byte* end = found->first + found->second.bytes;
  while (first < end && end < last && ++found != memory.end() && found->first == end) {
    end += found->second.bytes;
  }
  return first < end && last <= end;
}

}  // namespace binade::kernels::host

using namespace binade::kernels::host;  // NOLINT: the calls below are global

cudaError_t cudaMalloc(void** block, size_t bytes) {
  return call("cudaMalloc", [&](Runtime& r) {
    *block = nullptr;
    if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
      return error;
    }
    if (bytes == 0) {
      return cudaSuccess;
    }
    size_t& used = r.used[static_cast<size_t>(thread_device())];
    std::byte* made =
        bytes <= r.options.memory - std::min(used, r.options.memory) ? take(bytes) : nullptr;
    if (!made) {
      return cudaErrorMemoryAllocation;
    }
    used += bytes;
    r.device_memory[made] = {bytes, thread_device()};
    r.counts.device_bytes += bytes;
    ++r.counts.device_allocations;
    *block = made;
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* block) {
  return call("cudaFree", [&](Runtime& r) {
    if (!block) {
      return cudaSuccess;
    }
    auto found = r.device_memory.find(static_cast<std::byte*>(block));
    if (found == r.device_memory.end()) {
      return cudaErrorInvalidValue;
    }
    if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
      return error;
    }
    const auto [bytes, device] = found->second;
    r.wait_for_device(device);
    r.used[static_cast<size_t>(device)] -= bytes;
    r.counts.device_bytes -= bytes;
    ++r.counts.device_frees;
    r.device_memory.erase(static_cast<std::byte*>(block));
    give_back(r, static_cast<std::byte*>(block), bytes);
    return r.sticky;
  });
}

cudaError_t cudaMallocHost(void** block, size_t bytes) {
  return call("cudaMallocHost", [&](Runtime& r) { return host_alloc(r, block, bytes); });
}
cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&](Runtime& r) { return host_alloc(r, block, bytes); });
}

cudaError_t cudaFreeHost(void* block) {
  return call("cudaFreeHost", [&](Runtime& r) {
    if (!block) {
      return cudaSuccess;
    }
    auto found = r.pinned_memory.find(static_cast<std::byte*>(block));
    if (found == r.pinned_memory.end()) {
      return cudaErrorInvalidValue;
    }
    if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
      return error;
    }
    const size_t bytes = found->second.bytes;
    for (int device = 0; device < r.options.devices; ++device) {
      r.wait_for_device(device);
    }
    r.counts.pinned_bytes -= bytes;
    r.pinned_memory.erase(static_cast<std::byte*>(block));
    give_back(r, static_cast<std::byte*>(block), std::max<size_t>(bytes, 1));
    return r.sticky;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call("cudaMemGetInfo", [&](Runtime& r) {
    const size_t used = r.used[static_cast<size_t>(thread_device())];
    *total = r.options.memory;
    *free = *total - std::min(used, *total);
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call("cudaPointerGetAttributes", [&](Runtime& r) {
    *attributes = {};
    attributes->hostPointer = const_cast<void*>(pointer);
    if (r.holds(r.device_memory, pointer, 1)) {
      attributes->type = cudaMemoryTypeDevice;
      attributes->devicePointer = const_cast<void*>(pointer);
    } else if (r.holds(r.pinned_memory, pointer, 1)) {
      attributes->type = cudaMemoryTypeHost;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync",
              [&](Runtime& r) { return copy_on(r, to, from, bytes, kind, stream); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", [&](Runtime& r) {
    return copy_on(r, to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&](Runtime& r) {
    cudaError_t error = r.unsafe_in_capture();
    if (error == cudaSuccess) {
      error = copy_on(r, to, from, bytes, kind, nullptr);
    }
    if (error == cudaSuccess) {
      CUstream_st* target = r.resolve(nullptr);
      ++r.counts.waits;
      r.wait_for([&] { return target->queue.empty(); }, target);
    }
    return error == cudaSuccess ? r.sticky : error;
  });
}

cudaError_t cudaMemsetAsync(void* block, int value, size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&](Runtime& r) {
    CUstream_st* target = r.resolve(stream);
    if (!target) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!r.holds(r.device_memory, block, bytes)) {
      return cudaErrorInvalidValue;
    }
    if (target->capture && target->capture->invalid) {
      return cudaErrorStreamCaptureInvalidated;
    }
    r.push(*target, {Work::run, [=] { std::memset(block, value, bytes); }, nullptr});
    return r.sticky;
  });
}

cudaError_t cudaMemset(void* block, int value, size_t bytes) {
  return cudaMemsetAsync(block, value, bytes, nullptr);
}
