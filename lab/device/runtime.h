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
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T, int threads,
                                                                 size_t) {
  *blocks = threads > 0 ? 2048 / threads : 0;
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)
