// Conformance of memory and barriers: asynchronous copies, named barriers, atomics, large shared
// memory, grid limits.
#pragma once
#include <tests/cuda/conformance.h>

namespace binade::conformance {

using kernels::dev::shared_mem;

// Three groups of copies into three buffers, with 0 to 16 bytes read by each thread. After
// wait<kPending> all groups but the last kPending have arrived; one word per thread and group.
struct AsyncSmem {
  alignas(16) uint4 stage[3][64];
};
template <int kPending>
__global__ void async_copy_kernel(const uint4* x, uint4* y) {
  auto& smem = shared_mem<AsyncSmem>();
  const auto thread = static_cast<int>(threadIdx.x);
  for (int group = 0; group < 3; ++group) {
    smem.stage[group][thread] = make_uint4(0xeeeeeeeeu, 0xeeeeeeeeu, 0xeeeeeeeeu, 0xeeeeeeeeu);
  }
  __syncthreads();
  for (int group = 0; group < 3; ++group) {
    kernels::dev::cp_async16(&smem.stage[group][thread], x + group * 64 + thread,
                             (thread + 5 * group) % 17);
    kernels::dev::cp_async_commit();
  }
  kernels::dev::cp_async_wait<kPending>();
  __syncthreads();
  const int neighbour = (thread + 33) % 64;
  for (int group = 0; group < 3 - kPending; ++group) {
    y[group * 64 + neighbour] = smem.stage[group][neighbour];
  }
  kernels::dev::cp_async_wait<0>();
  __syncthreads();
  for (int group = 3 - kPending; group < 3; ++group) {
    y[group * 64 + neighbour] = smem.stage[group][neighbour];
  }
}

inline void async_copies(Report& report) {
  std::vector<uint32_t> x(3 * 64 * 4), want(x.size());
  std::mt19937 generator(5);
  for (uint32_t& word : x) {
    word = static_cast<uint32_t>(generator());
  }
  for (size_t i = 0; i < 3 * 64; ++i) {
    std::memcpy(&want[4 * i], &x[4 * i], (i % 64 + 5 * (i / 64)) % 17);
  }
  const OnDevice<uint32_t> dx(x);
  const auto run = [&](auto kernel, const char* name) {
    const OnDevice<uint32_t> dy(x.size());
    start({"async_copy_kernel", dim3(1), dim3(64), sizeof(AsyncSmem)}, kernel,
          reinterpret_cast<const uint4*>(dx.data()), reinterpret_cast<uint4*>(dy.data()));
    report.same(name, dy.get(), want);
  };
  run(async_copy_kernel<0>, "cp.async 0 to 16 bytes, wait_group 0");
  run(async_copy_kernel<1>, "cp.async 0 to 16 bytes, wait_group 1");
  run(async_copy_kernel<2>, "cp.async 0 to 16 bytes, wait_group 2");
}

// Each half of the block passes values around through its own barrier, then both meet.
struct RingSmem {
  int ring[2][64];
};
__global__ void named_barrier_kernel(int* y) {
  auto& smem = shared_mem<RingSmem>();
  const int half_of_block = static_cast<int>(threadIdx.x) / 64;
  const int i = static_cast<int>(threadIdx.x) % 64;
  int value = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 3 + 4 * half_of_block; ++round) {
    smem.ring[half_of_block][i] = value;
    kernels::dev::named_barrier(1 + half_of_block, 64);
    value = smem.ring[half_of_block][(i + 40) % 64] + 1;
    kernels::dev::named_barrier(1 + half_of_block, 64);
  }
  smem.ring[half_of_block][i] = value;
  kernels::dev::named_barrier(15, 128);
  y[threadIdx.x] = value + 1000 * smem.ring[1 - half_of_block][i];
}

// Lanes pass values through shared memory with __syncwarp only.
struct WarpRingSmem {
  int ring[4][32];
};
__global__ void sync_warp_kernel(int* y) {
  auto& smem = shared_mem<WarpRingSmem>();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int value = static_cast<int>(threadIdx.x);
  for (int round = 0; round < 5 + warp; ++round) {
    smem.ring[warp][lane] = value;
    __syncwarp();
    value = smem.ring[warp][(lane + 7) % 32] + 1;
    __syncwarp();
  }
  y[threadIdx.x] = value;
}

inline void barriers(Report& report) {
  const OnDevice<int> y(128);
  start({"named_barrier_kernel", dim3(1), dim3(128), sizeof(RingSmem)}, named_barrier_kernel,
        y.data());
  const auto ring = [](int half_of_block, int i) {
    const int rounds = 3 + 4 * half_of_block;
    return half_of_block * 64 + (i + 40 * rounds) % 64 + rounds;
  };
  std::vector<int> want(128);
  for (int i = 0; i < 128; ++i) {
    want[static_cast<size_t>(i)] = ring(i / 64, i % 64) + 1000 * ring(1 - i / 64, i % 64);
  }
  report.same("bar.sync of 64 and 128 threads", y.get(), want);

  start({"sync_warp_kernel", dim3(1), dim3(128), sizeof(WarpRingSmem)}, sync_warp_kernel, y.data());
  for (int i = 0; i < 128; ++i) {
    const int rounds = 5 + i / 32;
    want[static_cast<size_t>(i)] = i / 32 * 32 + (i % 32 + 7 * rounds) % 32 + rounds;
  }
  report.same("__syncwarp orders shared memory", y.get(), want);
}

// Atomics of all threads on the same words; sums of integers, exact in every type.
struct Totals {
  unsigned long long u64;
  double f64;
  float f32;
  int i32;
  unsigned u32, maximum, bits, shared_sum;
};
struct AtomicSmem {
  unsigned sum;
};
__global__ void atomics_kernel(Totals* totals, unsigned* slots, int* signed_slots, unsigned* wins) {
  auto& smem = shared_mem<AtomicSmem>();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) {
    smem.sum = 0;
  }
  __syncthreads();
  atomicAdd(&totals->u64, 0x100000000ull + i);
  atomicAdd(&totals->f64, 0.5);
  atomicAdd(&totals->f32, 1.0f);
  atomicAdd(&totals->i32, static_cast<int>(i % 3) - 1);
  atomicAdd(&totals->u32, i);
  atomicMax(&totals->maximum, i * 2654435761u);
  atomicOr(&totals->bits, 1u << i % 27);
  atomicAdd(&smem.sum, threadIdx.x);
  // One of the 64 threads that want a slot gets it; a compare with the wrong key leaves it free.
  const bool first = atomicCAS(&slots[i / 64], ~0u, i) == ~0u;
  const bool second = atomicCAS(&signed_slots[i / 64], -1, static_cast<int>(i)) == -1;
  atomicCAS(&slots[i / 64], 0xabcdefu, 0u);
  if (first) {
    atomicAdd(&wins[0], 1u);
  }
  if (second) {
    atomicAdd(&wins[1], 1u);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&totals->shared_sum, smem.sum);
  }
}

// Each block publishes a sum; the last block to arrive adds all of them up.
__global__ void last_block_kernel(unsigned* partial, unsigned* arrived, unsigned* total) {
  if (threadIdx.x != 0) {
    return;
  }
  partial[blockIdx.x] = blockIdx.x + 1;
  __threadfence();
  if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
    __threadfence();
    unsigned sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) {
      sum += partial[i];
    }
    *total = sum;
  }
}

inline void atomics(Report& report) {
  constexpr unsigned kBlocks = 40, kThreads = 128, kAll = kBlocks * kThreads;
  const OnDevice<Totals> totals(std::vector<Totals>(1));
  const OnDevice<unsigned> slots(kAll / 64), wins(std::vector<unsigned>(2));
  const OnDevice<int> signed_slots(kAll / 64);
  start({"atomics_kernel", dim3(kBlocks), dim3(kThreads), sizeof(AtomicSmem)}, atomics_kernel,
        totals.data(), slots.data(), signed_slots.data(), wins.data());
  const Totals got = totals.get()[0];
  unsigned sum = 0, maximum = 0;
  int signed_sum = 0;
  for (unsigned i = 0; i < kAll; ++i) {
    sum += i;
    maximum = std::max(maximum, i * 2654435761u);
    signed_sum += static_cast<int>(i % 3) - 1;
  }
  report.result("atomicAdd u64", got.u64 == (uint64_t{kAll} << 32) + sum);
  report.result("atomicAdd double", got.f64 == 0.5 * kAll);
  report.result("atomicAdd float", got.f32 == static_cast<float>(kAll));
  report.result("atomicAdd int", got.i32 == signed_sum);
  report.result("atomicAdd unsigned", got.u32 == sum);
  report.result("atomicAdd in shared memory",
                got.shared_sum == kBlocks * (kThreads * (kThreads - 1) / 2));
  report.result("atomicMax", got.maximum == maximum);
  report.result("atomicOr", got.bits == (1u << 27) - 1);
  report.same("atomicCAS one winner each", wins.get(), {kAll / 64, kAll / 64});
  bool own = true;
  const std::vector<unsigned> owners = slots.get();
  const std::vector<int> signed_owners = signed_slots.get();
  for (size_t i = 0; i < owners.size(); ++i) {
    own = own && owners[i] / 64 == i && static_cast<size_t>(signed_owners[i]) / 64 == i;
  }
  report.result("atomicCAS winners own their slots", own);

  const OnDevice<unsigned> partial(500), arrived(std::vector<unsigned>(1)), total(1);
  start({"last_block_kernel", dim3(500), dim3(32)}, last_block_kernel, partial.data(),
        arrived.data(), total.data());
  report.same("__threadfence and the last block", total.get(), {500u * 501 / 2});
}

// All of a block's shared memory, written by one half of the block and read by the other.
template <int kKilobytes>
struct LargeSmem {
  alignas(16) unsigned words[kKilobytes * 256];
};
template <int kKilobytes>
__global__ void large_shared_kernel(unsigned* sums) {
  auto& smem = shared_mem<LargeSmem<kKilobytes>>();
  constexpr unsigned kWords = kKilobytes * 256;
  for (unsigned i = threadIdx.x; i < kWords; i += blockDim.x) {
    smem.words[i] = i * (blockIdx.x + 1);
  }
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = blockDim.x - 1 - threadIdx.x; i < kWords; i += blockDim.x) {
    sum += smem.words[i] ^ i;
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int kKilobytes>
void large_shared(Report& report) {
  const std::string name = text(kKilobytes, " KiB of shared memory");
  if (attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) < kKilobytes * 1024) {
    report.skip(name, "more than the device has");
    return;
  }
  const OnDevice<unsigned> sums(3 * 256);
  start({"large_shared_kernel", dim3(3), dim3(256), sizeof(LargeSmem<kKilobytes>)},
        large_shared_kernel<kKilobytes>, sums.data());
  std::vector<unsigned> want(3 * 256);
  for (unsigned i = 0; i < kKilobytes * 256; ++i) {
    for (unsigned block = 0; block < 3; ++block) {
      want[block * 256 + 255 - i % 256] += i * (block + 1) ^ i;
    }
  }
  report.same(name, sums.get(), want);
}

inline void shared_memory(Report& report) {
  large_shared<48>(report);
  large_shared<64>(report);
  large_shared<99>(report);
  large_shared<163>(report);
  large_shared<227>(report);
}

// Counts blocks and notes the largest index.
__global__ void count_blocks_kernel(unsigned* count, unsigned* largest) {
  if (threadIdx.x == 0) {
    atomicAdd(count, 1u);
    atomicMax(largest, blockIdx.x + blockIdx.y + blockIdx.z);
  }
}

inline void refuse(Report& report, const char* name, dim3 grid, dim3 block, size_t shared_bytes) {
  const OnDevice<unsigned> count(std::vector<unsigned>(2));
  std::string error = "no error";
  try {
    start({"count_blocks_kernel", grid, block, shared_bytes}, count_blocks_kernel, count.data(),
          count.data() + 1);
  } catch (const Error& refused) {
    error.clear();
  }
  report.result(text("refused: ", name), error.empty() && count.get()[0] == 0, error);
}

inline void grids(Report& report) {
  // Large in x only if kernels run in parallel.
  const unsigned wide = kHardware ? 1u << 24 : 70000u;
  for (const dim3 grid : {dim3(wide), dim3(1, 65535), dim3(1, 1, 65535), dim3(7, 5, 3)}) {
    const OnDevice<unsigned> count(std::vector<unsigned>(2));
    start({"count_blocks_kernel", grid, dim3(1)}, count_blocks_kernel, count.data(),
          count.data() + 1);
    report.same(text("grid ", grid.x, " x ", grid.y, " x ", grid.z), count.get(),
                {grid.x * grid.y * grid.z, grid.x + grid.y + grid.z - 3});
  }
  const OnDevice<unsigned> count(std::vector<unsigned>(2));
  start({"count_blocks_kernel", dim3(2), dim3(1024)}, count_blocks_kernel, count.data(),
        count.data() + 1);
  report.same("block of 1024 threads", count.get(), {2u, 1u});
  refuse(report, "grid y of 65536", dim3(1, 65536), dim3(1), 0);
  refuse(report, "grid z of 65536", dim3(1, 1, 65536), dim3(1), 0);
  refuse(report, "an empty grid", dim3(0), dim3(1), 0);
  refuse(report, "a block of 1025 threads", dim3(1), dim3(1025), 0);
  refuse(report, "1 MiB of shared memory", dim3(1), dim3(1), size_t{1} << 20);
}

// Arguments by value, as large as the kernels' descriptions of layouts, and wide memory accesses.
struct LargeArgument {
  int64_t sizes[60];
};
__global__ void argument_kernel(LargeArgument argument, const uint4* x, uint4* y, int64_t* sum) {
  const uint4 value = x[threadIdx.x];
  y[threadIdx.x] = make_uint4(value.w, value.z, value.y, value.x);
  if (threadIdx.x == 0) {
    int64_t total = 0;
    for (const int64_t size : argument.sizes) {
      total += size;
    }
    *sum = total;
  }
}

inline void arguments(Report& report) {
  LargeArgument argument{};
  int64_t total = 0;
  for (int64_t i = 0; i < 60; ++i) {
    argument.sizes[i] = i << 33;
    total += i << 33;
  }
  std::vector<uint32_t> x(256), want(256);
  for (uint32_t i = 0; i < 256; ++i) {
    x[i] = i * 2654435761u;
    want[i ^ 3u] = x[i];
  }
  const OnDevice<uint32_t> dx(x), dy(256);
  const OnDevice<int64_t> sum(1);
  start({"argument_kernel", dim3(1), dim3(64)}, argument_kernel, argument,
        reinterpret_cast<const uint4*>(dx.data()), reinterpret_cast<uint4*>(dy.data()), sum.data());
  report.same("16-byte loads and stores", dy.get(), want);
  report.same("480 bytes of arguments", sum.get(), {total});
}

}  // namespace binade::conformance
