// The CUDA language on the host compiler: keywords and built-in vector types, with the layout that
// nvcc gives them.
#pragma once
#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
// Written into the code of the kernel, where launch_bound() (host/queue.h) reads it: one
// instruction without effect per 32 threads (cmake/drop_patch_entries.sh).
#define BINADE_LAUNCH_BOUND(threads, ...) \
  __attribute__((patchable_function_entry(((threads) + 31) / 32, 0)))
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define __launch_bounds__(...) BINADE_LAUNCH_BOUND(__VA_ARGS__, )
#else
#define __launch_bounds__(...)
#endif
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}  // NOLINT
};

inline constexpr int2 make_int2(int x, int y) { return {x, y}; }
inline constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline constexpr float2 make_float2(float x, float y) { return {x, y}; }
inline constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
