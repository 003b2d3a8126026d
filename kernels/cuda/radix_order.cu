// Each pass counts the digits of every block's keys, computes running sums of the counts (digit by
// digit, block by block), and moves each key to the position after all smaller and earlier equal
// digits. Within a block, warp w has the kPerWarp keys after those of warp w - 1, and takes 32 at a
// time.
#include <binade/kernels/cuda/radix_order_internal.h>
#include <binade/kernels/cuda/device.cuh>
#include <binade/kernels/cuda/scan.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;
constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kRounds = 8, kPerWarp = 32 * kRounds, kPerBlock = kWarps * kPerWarp;

struct RadixMemory {
  uint32_t count[kWarps][kDigits];
};

struct Pass {
  const int64_t *keys, *order;  // order is null in the first pass: positions
  int64_t count, blocks;
  int shift;
  int64_t* offsets;  // [kDigits, blocks]
  int64_t *to_keys, *to_order;
};

// Counts the digits of this warp's keys. rank[r] is the number of keys of the warp with the same
// digit before the key of round r.
__device__ __forceinline__ void rank_keys(const Pass& p, RadixMemory& memory,
                                          uint32_t (&rank)[kRounds]) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (unsigned d = threadIdx.x; d < kWarps * kDigits; d += kThreads) {
    memory.count[d / kDigits][d % kDigits] = 0;
  }
  __syncthreads();
  const int64_t first = int64_t{blockIdx.x} * kPerBlock + warp * kPerWarp + lane;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int64_t at = first + r * 32;
    const bool valid = at < p.count;
    const auto digit = valid ? static_cast<unsigned>(p.keys[at] >> p.shift) % kDigits : 0u;
    unsigned equal = __ballot_sync(~0u, valid);
#pragma unroll
    for (int bit = 0; bit < kDigitBits; ++bit) {
      const bool set = digit >> bit & 1u;
      const unsigned with = __ballot_sync(~0u, set);
      equal &= set ? with : ~with;
    }
    const unsigned before = __popc(equal & ((1u << lane) - 1));
    rank[r] = memory.count[warp][digit] + before;
    __syncwarp();
    if (valid && before == 0) {
      memory.count[warp][digit] += __popc(equal);
    }
    __syncwarp();
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) radix_count_kernel(Pass p) {
  auto& memory = dev::shared_mem<RadixMemory>();
  uint32_t rank[kRounds];
  rank_keys(p, memory, rank);
  uint32_t total = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    total += memory.count[warp][threadIdx.x];
  }
  p.offsets[threadIdx.x * p.blocks + blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads) radix_move_kernel(Pass p) {
  auto& memory = dev::shared_mem<RadixMemory>();
  uint32_t rank[kRounds];
  rank_keys(p, memory, rank);
  uint32_t before = 0;
  for (int warp = 0; warp < kWarps; ++warp) {  // thread d: digit d
    const uint32_t here = memory.count[warp][threadIdx.x];
    memory.count[warp][threadIdx.x] = before;
    before += here;
  }
  __syncthreads();
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first = int64_t{blockIdx.x} * kPerBlock + warp * kPerWarp + lane;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int64_t at = first + r * 32;
    if (at < p.count) {
      const int64_t key = p.keys[at];
      const auto digit = static_cast<unsigned>(key >> p.shift) % kDigits;
      const int64_t to =
          p.offsets[digit * p.blocks + blockIdx.x] + memory.count[warp][digit] + rank[r];
      p.to_keys[to] = key;
      p.to_order[to] = p.order ? p.order[at] : at;
    }
  }
}

}  // namespace

RadixOrder::RadixOrder(Device device, int64_t count, int bits)
    : count_(count),
      bits_(bits),
      pairs_(static_cast<size_t>(count) * 4 * sizeof(int64_t), device),
      offsets_(static_cast<size_t>(ceil_div(count, kPerBlock) * kDigits) * sizeof(int64_t),
               device) {}

void RadixOrder::sort() {
  int64_t* keys[] = {pairs_.as<int64_t>(), pairs_.as<int64_t>() + count_};
  int64_t* order[] = {pairs_.as<int64_t>() + 2 * count_, pairs_.as<int64_t>() + 3 * count_};
  const int64_t blocks = ceil_div(count_, kPerBlock);
  int from = 0;
  for (int shift = 0; shift == 0 || shift < bits_; shift += kDigitBits) {
    const Pass pass{.keys = keys[from],
                    .order = shift == 0 ? nullptr : order[from],
                    .count = count_,
                    .blocks = blocks,
                    .shift = shift,
                    .offsets = offsets_.as<int64_t>(),
                    .to_keys = keys[1 - from],
                    .to_order = order[1 - from]};
    const Launch count = {"radix_count_kernel", static_cast<unsigned>(blocks), kThreads,
                          sizeof(RadixMemory)};
    launch(count, radix_count_kernel, pass);
    exclusive_scan(offsets_.as<int64_t>(), kDigits * blocks);
    launch({"radix_move_kernel", count.grid, kThreads, sizeof(RadixMemory)}, radix_move_kernel,
           pass);
    from = 1 - from;
  }
  keys_ = keys[from];
  order_ = order[from];
}

}  // namespace binade::kernels
