// case: gemm

// A product with 8 x 8 results a thread, from tiles in one-dimensional shared arrays.
#include <cuda_runtime.h>
#include <cassert>
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    sgemm2DBlocktiling(int M, int N, int K, float alpha, const float* A, const float* B, float beta,
                       float* C) {
  const uint cRow = blockIdx.y;
  const uint cCol = blockIdx.x;
  const uint numThreadsBlocktile = BM * BN / (TM * TN);
  assert(numThreadsBlocktile == blockDim.x);
  const int threadCol = threadIdx.x % (BN / TN);
  const int threadRow = threadIdx.x / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  const uint innerRowA = threadIdx.x / BK, innerColA = threadIdx.x % BK;
  const uint strideA = numThreadsBlocktile / BK;
  const uint innerRowB = threadIdx.x / BN, innerColB = threadIdx.x % BN;
  const uint strideB = numThreadsBlocktile / BN;
  float threadResults[TM * TN] = {0.0};
  float regM[TM] = {0.0};
  float regN[TN] = {0.0};
  for (uint bkIdx = 0; bkIdx < K; bkIdx += BK) {
    for (uint loadOffset = 0; loadOffset < BM; loadOffset += strideA) {
      uint r = cRow * BM + innerRowA + loadOffset, c = bkIdx + innerColA;
      As[(innerRowA + loadOffset) * BK + innerColA] = (r < M && c < K) ? A[r * K + c] : 0.f;
    }
    for (uint loadOffset = 0; loadOffset < BK; loadOffset += strideB) {
      uint r = bkIdx + innerRowB + loadOffset, c = cCol * BN + innerColB;
      Bs[(innerRowB + loadOffset) * BN + innerColB] = (r < K && c < N) ? B[r * N + c] : 0.f;
    }
    __syncthreads();
    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      for (uint i = 0; i < TM; ++i)
        regM[i] = As[(threadRow * TM + i) * BK + dotIdx];
      for (uint i = 0; i < TN; ++i)
        regN[i] = Bs[dotIdx * BN + threadCol * TN + i];
      for (uint resIdxM = 0; resIdxM < TM; ++resIdxM)
        for (uint resIdxN = 0; resIdxN < TN; ++resIdxN)
          threadResults[resIdxM * TN + resIdxN] += regM[resIdxM] * regN[resIdxN];
    }
    __syncthreads();
  }
  for (uint i = 0; i < TM; ++i)
    for (uint j = 0; j < TN; ++j) {
      uint r = cRow * BM + threadRow * TM + i, c = cCol * BN + threadCol * TN + j;
      if (r < M && c < N)
        C[r * N + c] = alpha * threadResults[i * TN + j];
    }
}
extern "C" void solve(const float* a, const float* b, float* y, int m, int n, int k) {
  const uint BK = 8, TM = 8, TN = 8, BM = 64, BN = 64;
  dim3 gridDim(CEIL_DIV(n, BN), CEIL_DIV(m, BM));
  dim3 blockDim((BM * BN) / (TM * TN));
  sgemm2DBlocktiling<BM, BN, BK, TM, TN><<<gridDim, blockDim>>>(m, n, k, 1.0f, a, b, 0.0f, y);
}
