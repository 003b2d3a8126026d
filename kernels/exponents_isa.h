// The counting loop of kernels/exponents_cpu.cpp.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/exponents.h>

namespace binade::kernels {

// Several tables, because an increment waits for the one before to the same address.
inline constexpr int kExponentTables = 4;

struct ExponentRange {
  DType dtype;
  const void* x;
  int64_t count;                       // < 2^32
  uint32_t (*tables)[kExponentKeys];   // kExponentTables of them, added to
  uint32_t largest = 0, smallest = 0;  // as in CountExponents
};
BINADE_ISA_KERNEL(count_exponents_range, ExponentRange& a)

}  // namespace binade::kernels
