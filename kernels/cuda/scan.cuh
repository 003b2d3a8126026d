// Running sums of integers: within a block, and in place over an array.
#pragma once
#include <binade/kernels/cuda/device.cuh>

namespace binade::kernels {

inline constexpr int kScanThreads = 512, kScanWarps = kScanThreads / 32, kScanItems = 8;

namespace dev {

struct ScanMemory {
  int64_t warp[kScanWarps];
};

// The sum over the threads before this one; `total` gets the sum over all kThreads threads.
template <int kThreads>
__device__ __forceinline__ int64_t block_exclusive_sum(int64_t value, ScanMemory& memory,
                                                       int64_t& total) {
  static_assert(kThreads % 32 == 0 && kThreads <= kScanThreads);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t sum = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int64_t other = __shfl_up_sync(~0u, sum, distance);
    sum += lane >= static_cast<unsigned>(distance) ? other : 0;
  }
  if (lane == 31) {
    memory.warp[warp] = sum;
  }
  __syncthreads();
  int64_t before = 0;
  total = 0;
  for (unsigned w = 0; w < kThreads / 32; ++w) {
    before += w < warp ? memory.warp[w] : 0;
    total += memory.warp[w];
  }
  __syncthreads();  // before the memory is used again
  return before + sum - value;
}

}  // namespace dev

// values[i] = sum of values[0 .. i - 1], on the device, by one block: for arrays of counts.
void exclusive_scan(int64_t* values, int64_t count);

}  // namespace binade::kernels
