// The GPUs that bounds and occupancy are computed for.
#pragma once
#include <cstddef>
#include <cstdint>

namespace binade::lab {

struct Gpu {
  const char* name;
  const char* architecture;  // of nvcc
  // Peak rates as the vendor states them: memory in bytes a second, FP32 operations a second
  // without tensor cores.
  double bytes_per_second, flops_per_second;
  // Of one multiprocessor (CUDA C++ Programming Guide, compute capabilities): resident warps and
  // blocks, shared memory, and what of it each block needs beside its own.
  uint32_t warps, blocks;
  size_t shared_bytes, reserved_bytes;
};
inline constexpr Gpu kGpus[] = {
    {"H100 SXM", "sm_90", 3.35e12, 66.9e12, 64, 32, size_t{228} << 10, 1 << 10},
    {"A100 SXM 80 GB", "sm_80", 2.039e12, 19.5e12, 64, 32, size_t{164} << 10, 1 << 10},
    {"RTX 4090", "sm_89", 1.008e12, 82.6e12, 48, 24, size_t{100} << 10, 1 << 10},
    {"T4", "sm_75", 0.32e12, 8.1e12, 32, 16, size_t{64} << 10, 0}};

struct Residency {
  uint32_t blocks = 0, warps = 0;  // of one multiprocessor
  const char* limit = "";          // what allows no more blocks
};
// How many blocks of `threads` threads with so many registers each and so much shared memory are
// resident at once. Registers are handed out to warps by 256, from a quarter of the 65536 each;
// shared memory by 128 bytes.
Residency residency_of(const Gpu& gpu, uint32_t threads, uint32_t registers, size_t shared_bytes);

}  // namespace binade::lab
