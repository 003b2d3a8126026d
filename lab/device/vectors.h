// Vector types of CUDA that kernels/host/cuda_types.h lacks, with nvcc's alignments.
#pragma once
#include <binade/kernels/host/cuda_types.h>

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
#define BINADE_LAB_VECTOR1(T, name) \
  struct name##1 {                  \
    T x;                            \
  };                                \
  inline constexpr name##1 make_##name##1(T x) { return {x}; }
#define BINADE_LAB_VECTOR2(T, name)       \
  struct alignas(2 * sizeof(T)) name##2 { \
    T x, y;                               \
  };                                      \
  inline constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }
#define BINADE_LAB_VECTOR3(T, name) \
  struct name##3 {                  \
    T x, y, z;                      \
  };                                \
  inline constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }
#define BINADE_LAB_VECTOR4(T, name)                                 \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { \
    T x, y, z, w;                                                   \
  };                                                                \
  inline constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define BINADE_LAB_VECTORS(T, name) \
  BINADE_LAB_VECTOR1(T, name)       \
  BINADE_LAB_VECTOR2(T, name)       \
  BINADE_LAB_VECTOR3(T, name)       \
  BINADE_LAB_VECTOR4(T, name)
BINADE_LAB_VECTORS(signed char, char)
BINADE_LAB_VECTORS(unsigned char, uchar)
BINADE_LAB_VECTORS(short, short)
BINADE_LAB_VECTORS(unsigned short, ushort)
BINADE_LAB_VECTORS(long long, longlong)
BINADE_LAB_VECTORS(unsigned long long, ulonglong)
BINADE_LAB_VECTORS(double, double)
BINADE_LAB_VECTOR1(int, int)
BINADE_LAB_VECTOR3(int, int)
BINADE_LAB_VECTOR1(unsigned, uint)
BINADE_LAB_VECTOR1(float, float)
BINADE_LAB_VECTOR3(float, float)
#undef BINADE_LAB_VECTORS
#undef BINADE_LAB_VECTOR1
#undef BINADE_LAB_VECTOR2
#undef BINADE_LAB_VECTOR3
#undef BINADE_LAB_VECTOR4
inline constexpr int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
// NOLINTEND(readability-identifier-naming)
