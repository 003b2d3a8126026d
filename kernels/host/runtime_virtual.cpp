// Virtual memory of the fake driver: reserved address ranges, and memory mapped into them.
#include <binade/kernels/host/cuda_driver.h>
#include <binade/kernels/host/runtime_state.h>

#include <cstring>

#include <sys/mman.h>

namespace binade::kernels::host {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;

struct Allocation {
  size_t bytes = 0;
  int device = 0;
  bool released = false, mapped = false;
};
std::map<CUmemGenericAllocationHandle, Allocation>& allocations() {
  static auto* instance = new std::map<CUmemGenericAllocationHandle, Allocation>;
  return *instance;
}
std::map<CUdeviceptr, CUmemGenericAllocationHandle>& mappings() {
  static auto* instance = new std::map<CUdeviceptr, CUmemGenericAllocationHandle>;
  return *instance;
}

std::byte* at(CUdeviceptr address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Frees the memory of a handle that is released and no longer mapped.
void drop_if_unused(Runtime& r, CUmemGenericAllocationHandle handle) {
  const Allocation allocation = allocations()[handle];
  if (allocation.released && !allocation.mapped) {
    r.used[static_cast<size_t>(allocation.device)] -= allocation.bytes;
    r.counts.device_bytes -= allocation.bytes;
    ++r.counts.device_frees;
    allocations().erase(handle);
  }
}

CUresult driver_call(const char* name, const std::function<CUresult(Runtime&)>& body) {
  Runtime& r = runtime();
  std::lock_guard lock(r.mutex);
  const cudaError_t error = r.enter(name);
  return error == cudaSuccess ? body(r) : static_cast<CUresult>(error);  // the numbers agree
}

}  // namespace
}  // namespace binade::kernels::host

using namespace binade::kernels::host;  // NOLINT: the calls below are global

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  return driver_call("cuMemAddressReserve", [&](Runtime&) {
    void* range =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = reinterpret_cast<CUdeviceptr>(range);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return driver_call("cuMemAddressFree", [&](Runtime&) {
    return munmap(at(address), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long) {
  return driver_call("cuMemCreate", [&](Runtime& r) {
    const int device = properties->location.id;
    if (bytes == 0 || bytes % kGranularity != 0 || device < 0 || device >= r.options.devices) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    size_t& used = r.used[static_cast<size_t>(device)];
    if (used + bytes > r.options.memory) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    used += bytes;
    r.counts.device_bytes += bytes;
    ++r.counts.device_allocations;
    static CUmemGenericAllocationHandle handles = 0;
    *handle = ++handles;
    allocations()[*handle] = {.bytes = bytes, .device = device};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return driver_call("cuMemRelease", [&](Runtime& r) {
    allocations().at(handle).released = true;
    drop_if_unused(r, handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  return driver_call("cuMemMap", [&](Runtime&) {
    Allocation& allocation = allocations().at(handle);
    if (offset != 0 || bytes != allocation.bytes || mappings().contains(address)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    allocation.mapped = true;
    mappings()[address] = handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t) {
  return driver_call("cuMemSetAccess", [&](Runtime& r) {
    const auto found = mappings().find(address);
    if (found == mappings().end() || allocations().at(found->second).bytes != bytes ||
        mprotect(at(address), bytes, PROT_READ | PROT_WRITE) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::memset(at(address), 0xFF, bytes);
    r.device_memory[at(address)] = {bytes, allocations().at(found->second).device};
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return driver_call("cuMemUnmap", [&](Runtime& r) {
    const auto found = mappings().find(address);
    if (found == mappings().end() || allocations().at(found->second).bytes != bytes) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUmemGenericAllocationHandle handle = found->second;
    // Returns the pages to the system, so that a late access faults at once.
    mmap(at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    r.device_memory.erase(at(address));
    mappings().erase(found);
    allocations().at(handle).mapped = false;
    drop_if_unused(r, handle);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  struct Entry {
    const char* name;
    void* function;
  };
#define BINADE_ENTRY(name) \
  { #name, reinterpret_cast < void*>(&name) }
  const Entry entries[] = {BINADE_ENTRY(cuMemGetAllocationGranularity),
                           BINADE_ENTRY(cuMemAddressReserve),
                           BINADE_ENTRY(cuMemAddressFree),
                           BINADE_ENTRY(cuMemCreate),
                           BINADE_ENTRY(cuMemRelease),
                           BINADE_ENTRY(cuMemMap),
                           BINADE_ENTRY(cuMemUnmap),
                           BINADE_ENTRY(cuMemSetAccess)};
#undef BINADE_ENTRY
  *function = nullptr;
  if (result) {
    *result = cudaDriverEntryPointSymbolNotFound;
  }
  if (!stream_options().virtual_memory) {
    return cudaErrorSymbolNotFound;
  }
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.name, symbol) == 0) {
      *function = entry.function;
      if (result) {
        *result = cudaDriverEntryPointSuccess;
      }
      return cudaSuccess;
    }
  }
  return cudaErrorSymbolNotFound;
}
