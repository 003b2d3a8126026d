// Functions of the CUDA runtime that kernels/host/cuda_runtime.h lacks. In the lab every call is
// synchronous; memory of cudaMalloc() has guards and is named after its pointer.
#pragma once
#include <binade/lab/device/launch.h>

namespace binade::lab {
// Memory from cudaMalloc() and similar calls. `words` is the text of the arguments; findings name
// the memory after the first one.
struct Allocation {
  const char* words;
  size_t bytes, element_bytes;
  bool host_visible;
};
cudaError_t allocate(void** block, const Allocation& wanted, kernels::host::Site site);
cudaError_t copy(const char* call, void* to, const void* from, size_t bytes,
                 kernels::host::Site site);
cudaError_t fill(const char* call, void* block, int value, size_t bytes, kernels::host::Site site);
cudaError_t copy_to_symbol(void* symbol, size_t symbol_bytes, const void* from, size_t bytes,
                           size_t offset);
}  // namespace binade::lab

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
#define CUDART_VERSION 12000
// These overloads pass on the line and the name of the pointer, which the runtime cannot know.
template <class T>
inline cudaError_t binade_lab_malloc(bool host_visible, const char* words, T** block, size_t bytes,
                                     unsigned = 0, BINADE_SITE) {
  constexpr size_t kElement =
      std::is_void_v<T> ? 1 : sizeof(std::conditional_t<std::is_void_v<T>, char, T>);
  return binade::lab::allocate(reinterpret_cast<void**>(block),
                               {words, bytes, kElement, host_visible}, site);
}
template <class T>
inline cudaError_t binade_lab_malloc_async(const char* words, T** block, size_t bytes, cudaStream_t,
                                           BINADE_SITE) {
  return binade_lab_malloc(false, words, block, bytes, 0, site);
}
template <class T>
inline cudaError_t binade_lab_malloc_pitch(const char* words, T** block, size_t* pitch,
                                           size_t width, size_t height, BINADE_SITE) {
  constexpr size_t kPitch = 512;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return binade_lab_malloc(false, words, block, *pitch * height, 0, site);
}
#define cudaMallocPitch(...) binade_lab_malloc_pitch(#__VA_ARGS__, __VA_ARGS__)
#define cudaMalloc(...) binade_lab_malloc(false, #__VA_ARGS__, __VA_ARGS__)
#define cudaMallocAsync(...) binade_lab_malloc_async(#__VA_ARGS__, __VA_ARGS__)
#define cudaMallocManaged(...) binade_lab_malloc(true, #__VA_ARGS__, __VA_ARGS__)
#define cudaMallocHost(...) binade_lab_malloc(true, #__VA_ARGS__, __VA_ARGS__)
#define cudaHostAlloc(...) binade_lab_malloc(true, #__VA_ARGS__, __VA_ARGS__)
inline cudaError_t binade_lab_copy(const char* call, void* to, const void* from, size_t bytes,
                                   cudaMemcpyKind, cudaStream_t = nullptr, BINADE_SITE) {
  return binade::lab::copy(call, to, from, bytes, site);
}
inline cudaError_t binade_lab_fill(const char* call, void* block, int value, size_t bytes,
                                   cudaStream_t = nullptr, BINADE_SITE) {
  return binade::lab::fill(call, block, value, bytes, site);
}
#define cudaMemcpy(...) binade_lab_copy("cudaMemcpy", __VA_ARGS__)
#define cudaMemcpyAsync(...) binade_lab_copy("cudaMemcpyAsync", __VA_ARGS__)
#define cudaMemset(...) binade_lab_fill("cudaMemset", __VA_ARGS__)
#define cudaMemsetAsync(...) binade_lab_fill("cudaMemsetAsync", __VA_ARGS__)
inline cudaError_t cudaFreeAsync(void* block, cudaStream_t) { return cudaFree(block); }
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}
template <class T>
inline cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* kernel) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class T>
inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
  return binade::lab::copy_to_symbol(&symbol, sizeof(symbol), from, bytes, offset);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t bytes, size_t offset,
                                           cudaMemcpyKind, cudaStream_t = nullptr) {
  return binade::lab::copy_to_symbol(&symbol, sizeof(symbol), from, bytes, offset);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost, BINADE_SITE) {
  if (offset > sizeof(symbol) || bytes > sizeof(symbol) - offset) {
    return cudaErrorInvalidValue;
  }
  return binade::lab::copy("cudaMemcpyFromSymbol", to,
                           reinterpret_cast<const char*>(&symbol) + offset, bytes, site);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const volatile void*>(&symbol));
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                size_t width, size_t height, cudaMemcpyKind, BINADE_SITE) {
  if (width > to_pitch || width > from_pitch) {
    return cudaErrorInvalidValue;
  }
  cudaError_t error = cudaSuccess;
  for (size_t row = 0; row < height && error == cudaSuccess; ++row) {
    error = binade::lab::copy("cudaMemcpy2D", static_cast<char*>(to) + row * to_pitch,
                              static_cast<const char*>(from) + row * from_pitch, width, site);
  }
  return error;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t = nullptr, BINADE_SITE) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind, site);
}
enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual,
};
template <class T>
inline cudaError_t cudaFuncSetCacheConfig(T, cudaFuncCache) {
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
// Suggests 256 threads a block and two blocks for each multiprocessor, one choice of many.
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* blocks, int* threads, T, size_t = 0,
                                                      int limit = 0) {
  *threads = limit > 0 && limit < 256 ? limit : 256;
  *blocks = 264;
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T, int threads,
                                                                 size_t) {
  *blocks = threads > 0 ? 2048 / threads : 0;
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)
