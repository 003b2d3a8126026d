#include <binade/core/device/cuda/segment_internal.h>
#include <binade/kernels/cuda/driver_api_internal.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

namespace binade {
namespace {

// The driver's functions for virtual memory, looked up once; `complete` is true if all exist.
struct Driver {
  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&::cuMemAddressReserve) reserve = nullptr;
  decltype(&::cuMemAddressFree) free_range = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  bool complete = true;

  template <class F>
  void find(F& function, const char* name) {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if defined(CUDART_VERSION) && CUDART_VERSION < 12050  // the other function is newer
    const cudaError_t error = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &result);
#else
    constexpr unsigned kVersion = 12000;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &result);
#endif
    if (error != cudaSuccess) {
      cudaGetLastError();
    }
    complete &= error == cudaSuccess && result == cudaDriverEntryPointSuccess && address;
    function = reinterpret_cast<F>(address);
  }

  Driver() {
    find(granularity, "cuMemGetAllocationGranularity");
    find(reserve, "cuMemAddressReserve");
    find(free_range, "cuMemAddressFree");
    find(create, "cuMemCreate");
    find(release, "cuMemRelease");
    find(map, "cuMemMap");
    find(unmap, "cuMemUnmap");
    find(set_access, "cuMemSetAccess");
  }
};

const Driver& driver() {
  static const Driver instance;
  return instance;
}

CUmemAllocationProp memory_of(Device device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.index;
  return properties;
}

CUdeviceptr address_of(const std::byte* data) { return reinterpret_cast<CUdeviceptr>(data); }

}  // namespace

bool Segment::can_grow(Device device) {
  if (!driver().complete) {
    return false;
  }
  const CUmemAllocationProp properties = memory_of(device);
  size_t granularity = 0;
  if (driver().granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
          CUDA_SUCCESS ||
      granularity == 0 || kGranularity % granularity != 0) {
    return false;
  }
  int error = 0;
  const auto probe = make(device, true, 0, error);
  return probe && probe->grow(kGranularity) == cudaSuccess;
}

std::unique_ptr<Segment> Segment::make(Device device, bool growable, size_t bytes, int& error) {
  std::unique_ptr<Segment> segment(new Segment(device));
  kernels::select_device(device);
  if (growable) {
    size_t free = 0, total = 0;
    error = cudaMemGetInfo(&free, &total);  // also creates the context that the driver calls need
    const size_t range = (total + kGranularity - 1) / kGranularity * kGranularity;
    CUdeviceptr address = 0;
    if (error == cudaSuccess) {
      error = driver().reserve(&address, range, kGranularity, 0, 0);
    }
    segment->reserved_ = error == cudaSuccess ? range : 0;
    segment->data_ = reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  } else {
    void* block = nullptr;
    error = cudaMalloc(&block, bytes);
    segment->data_ = static_cast<std::byte*>(block);
    segment->size_ = bytes;
    segment->allocations_ = 1;
  }
  if (error != cudaSuccess) {
    cudaGetLastError();
    segment->data_ = nullptr;
    return nullptr;
  }
  return segment;
}

int Segment::grow(size_t bytes) {
  if (size_ + bytes > reserved_) {
    return cudaErrorMemoryAllocation;
  }
  if (stale_ > 0) {
    if (const CUresult error = driver().unmap(address_of(data_) + size_, stale_)) {
      return error;
    }
    stale_ = 0;
  }
  const CUmemAllocationProp properties = memory_of(device_);
  CUmemGenericAllocationHandle handle = 0;
  if (const CUresult error = driver().create(&handle, bytes, &properties, 0)) {
    return error;
  }
  const CUdeviceptr end = address_of(data_) + size_;
  CUresult error = driver().map(end, bytes, 0, handle, 0);
  const CUresult released = driver().release(handle);  // mapped memory stays
  if (error == CUDA_SUCCESS) {
    error = released;
    if (error == CUDA_SUCCESS) {
      const CUmemAccessDesc access = {.location = properties.location,
                                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      error = driver().set_access(end, bytes, &access, 1);
    }
    if (error != CUDA_SUCCESS && driver().unmap(end, bytes) != CUDA_SUCCESS) {
      stale_ = bytes;
    }
  }
  if (error != CUDA_SUCCESS) {
    return error;
  }
  ++allocations_;
  size_ += bytes;
  pieces_.push_back(bytes);
  return cudaSuccess;
}

void Segment::shrink(size_t keep) {
  while (!pieces_.empty() && size_ - pieces_.back() >= keep) {
    if (driver().unmap(address_of(data_) + size_ - pieces_.back(), pieces_.back()) !=
        CUDA_SUCCESS) {
      return;
    }
    size_ -= pieces_.back();
    pieces_.pop_back();
    ++frees_;
  }
}

Segment::~Segment() {
  if (!data_) {
    return;
  }
  if (growable()) {
    shrink(0);
    if (size_ == 0 && stale_ == 0) {  // else the device is lost, and the mapped memory with it
      driver().free_range(address_of(data_), reserved_);
    }
  } else if (cudaFree(data_) != cudaSuccess) {
    cudaGetLastError();
  }
}

}  // namespace binade
