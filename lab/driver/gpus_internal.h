// The GPUs for which bounds and occupancy are computed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace binade::lab {

struct Gpu {
  const char* name;
  const char* architecture;  // nvcc's name
  // Peak rates from the vendor: memory bytes per second, FP32 operations per second without tensor
  // cores.
  double bytes_per_second, flops_per_second;
  // Limits of one multiprocessor (CUDA C++ Programming Guide, compute capabilities): resident warps
  // and blocks, shared memory, and the shared memory that the system reserves in each block.
  uint32_t warps, blocks;
  size_t shared_bytes, reserved_bytes;
};
inline constexpr Gpu kGpus[] = {
    {"H100 SXM", "sm_90", 3.35e12, 66.9e12, 64, 32, size_t{228} << 10, 1 << 10},
    {"A100 SXM 80 GB", "sm_80", 2.039e12, 19.5e12, 64, 32, size_t{164} << 10, 1 << 10},
    {"RTX 4090", "sm_89", 1.008e12, 82.6e12, 48, 24, size_t{100} << 10, 1 << 10},
    {"T4", "sm_75", 0.32e12, 8.1e12, 32, 16, size_t{64} << 10, 0}};

struct Residency {
  uint32_t blocks = 0, warps = 0;  // resident on one multiprocessor
  const char* limit = "";          // the resource that runs out first
};
// How many such blocks are resident on one multiprocessor at once. A warp gets registers in units
// of 256, from one of four files of 16384; a block gets shared memory in units of 128 bytes.
Residency residency_of(const Gpu& gpu, uint32_t threads, uint32_t registers, size_t shared_bytes);

}  // namespace binade::lab
