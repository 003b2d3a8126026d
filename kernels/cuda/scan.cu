#include <binade/kernels/cuda/scan.cuh>

namespace binade::kernels {
namespace {

__global__ void __launch_bounds__(kScanThreads)
    exclusive_scan_kernel(int64_t* values, int64_t count) {
  auto& memory = dev::shared_mem<dev::ScanMemory>();
  int64_t before = 0;
  for (int64_t base = 0; base < count; base += kScanThreads * kScanItems) {
    const int64_t first = base + int64_t{threadIdx.x} * kScanItems;
    int64_t value[kScanItems], sum = 0;
#pragma unroll
    for (int i = 0; i < kScanItems; ++i) {
      value[i] = first + i < count ? values[first + i] : 0;
      sum += value[i];
    }
    int64_t total;
    int64_t running = before + dev::block_exclusive_sum<kScanThreads>(sum, memory, total);
#pragma unroll
    for (int i = 0; i < kScanItems; ++i) {
      if (first + i < count) {
        values[first + i] = running;
      }
      running += value[i];
    }
    before += total;
  }
}

}  // namespace

void exclusive_scan(int64_t* values, int64_t count) {
  launch({"exclusive_scan_kernel", 1, kScanThreads, sizeof(dev::ScanMemory)}, exclusive_scan_kernel,
         values, count);
}

}  // namespace binade::kernels
