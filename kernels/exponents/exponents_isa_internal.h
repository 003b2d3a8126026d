// The counting loops of kernels/exponents/exponents_cpu.cpp.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/exponents/exponents.h>

namespace binade::kernels {

// There are several tables, because an increment waits for the previous increment of the same
// address. Equal keys of two tables must not be a multiple of 4096 bytes apart either: processors
// first compare only the low bits of addresses and would treat these as equal.
inline constexpr int kExponentTables = 8;
using ExponentTable = uint32_t[kExponentKeys + 144];

struct ExponentRange {
  DType dtype;
  const void* x;
  int64_t count;                       // < 2^32
  ExponentTable* tables;               // kExponentTables of them, added to
  uint32_t largest = 0, smallest = 0;  // as in CountExponents
};
BINADE_ISA_KERNEL(count_exponents_range, ExponentRange& a)

struct LostUpdates {
  const float *before, *after;
  int64_t count;
  int64_t changed = 0, in_half = 0, in_bfloat16 = 0;  // set, as in CountLostUpdates
};
BINADE_ISA_KERNEL(count_lost_updates_range, LostUpdates& a)

}  // namespace binade::kernels
