// case: reduce

// Template parameters, dynamic shared memory as bytes, errors checked by a macro.
#include <cuda_runtime.h>
#include <cstdio>
#define CUDA_CHECK(x)                                                   \
  do {                                                                  \
    cudaError_t e = (x);                                                \
    if (e != cudaSuccess) {                                             \
      printf("CUDA error %s at %d\n", cudaGetErrorString(e), __LINE__); \
      return;                                                           \
    }                                                                   \
  } while (0)
template <typename T, unsigned int blockSize, bool nIsPow2>
__global__ void reduce6(const T* g_idata, T* g_odata, unsigned int n) {
  extern __shared__ __align__(sizeof(T)) unsigned char my_smem[];
  T* sdata = reinterpret_cast<T*>(my_smem);
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
  unsigned int gridSize = blockSize * 2 * gridDim.x;
  T mySum = 0;
  while (i < n) {
    mySum += g_idata[i];
    if (nIsPow2 || i + blockSize < n)
      mySum += g_idata[i + blockSize];
    i += gridSize;
  }
  sdata[tid] = mySum;
  __syncthreads();
  if (blockSize >= 512) {
    if (tid < 256) {
      sdata[tid] = mySum = mySum + sdata[tid + 256];
    }
    __syncthreads();
  }
  if (blockSize >= 256) {
    if (tid < 128) {
      sdata[tid] = mySum = mySum + sdata[tid + 128];
    }
    __syncthreads();
  }
  if (blockSize >= 128) {
    if (tid < 64) {
      sdata[tid] = mySum = mySum + sdata[tid + 64];
    }
    __syncthreads();
  }
  if (tid < 32) {
    if (blockSize >= 64)
      mySum += sdata[tid + 32];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
      mySum += __shfl_down_sync(0xffffffff, mySum, offset);
  }
  if (tid == 0)
    g_odata[blockIdx.x] = mySum;
}
template <class T>
void launch(const T* in, T* out, int n, int blocks, int threads) {
  size_t smem = threads * sizeof(T);
  switch (threads) {
    case 256: reduce6<T, 256, false><<<blocks, threads, smem>>>(in, out, n); break;
    case 128:
      reduce6<T, 128, false><<<dim3(blocks), dim3(threads, 1, 1), smem>>>(in, out, n);
      break;
  }
}
extern "C" void solve(const float* x, float* y, int n) {
  float* d_partial = nullptr;
  const int blocks = 13;
  CUDA_CHECK(cudaMalloc((void**)&d_partial, blocks * sizeof(float)));
  launch<float>(x, d_partial, n, blocks, 256);
  launch<float>(d_partial, y, blocks, 1, 128);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(d_partial));
}
