// Calls of the CUDA runtime beside kernels/host/cuda_runtime.h. In the lab every call has happened
// when it returns, and memory of cudaMalloc() has guards and the name of its line.
#pragma once
#include <binade/lab/device/launch.h>

namespace binade::lab {
cudaError_t allocate(void** block, size_t bytes, size_t element_bytes, kernels::host::Site site);
cudaError_t copy_to_symbol(void* symbol, size_t symbol_bytes, const void* from, size_t bytes,
                           size_t offset);
}  // namespace binade::lab

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
template <class T>
inline cudaError_t binade_lab_malloc(T** block, size_t bytes, BINADE_SITE) {
  constexpr size_t kElement =
      std::is_void_v<T> ? 1 : sizeof(std::conditional_t<std::is_void_v<T>, char, T>);
  return binade::lab::allocate(reinterpret_cast<void**>(block), bytes, kElement, site);
}
// The runtime's own cudaMalloc(void**) does not know the line.
#define cudaMalloc binade_lab_malloc
#define CUDART_VERSION 12000
template <class T>
inline cudaError_t cudaMallocManaged(T** block, size_t bytes, unsigned = 1, BINADE_SITE) {
  return binade_lab_malloc(block, bytes, site);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** block, size_t bytes, cudaStream_t, BINADE_SITE) {
  return binade_lab_malloc(block, bytes, site);
}
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
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset > sizeof(symbol) || bytes > sizeof(symbol) - offset) {
    return cudaErrorInvalidValue;
  }
  return cudaMemcpy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes,
                    cudaMemcpyDeviceToHost);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const volatile void*>(&symbol));
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) {
    return cudaErrorInvalidValue;
  }
  cudaError_t error = cudaSuccess;
  for (size_t row = 0; row < height && error == cudaSuccess; ++row) {
    error = cudaMemcpy(static_cast<char*>(to) + row * to_pitch,
                       static_cast<const char*>(from) + row * from_pitch, width, kind);
  }
  return error;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t = nullptr) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
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
// Blocks of 256 threads, two for each multiprocessor of the device: one choice of many.
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
