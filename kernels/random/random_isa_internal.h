// The vectorised loops of kernels/random/random.h: blocks of consecutive positions of the Philox
// sequence. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

inline constexpr int64_t kRandomBlock = 1024;  // maximum number of elements of one call

enum class Distribution : uint8_t { uniform, normal };

// y[0 .. n) contiguous. uniform: low + (high - low) u; normal: low + high z.
struct RandomBlock {
  Distribution distribution;
  double low, high;
  uint64_t seed, position;
  DType dtype;
  void* y;
  int64_t n;
};
BINADE_ISA_KERNEL(random_block, const RandomBlock& a)

// y[i] = x[i] / (1 - p) if the number at position + i is at least p, else 0. Contiguous; y may be
// x.
struct DropoutBlock {
  double p;
  uint64_t seed, position;
  DType dtype;
  const void* x;
  void* y;
  int64_t n;
};
BINADE_ISA_KERNEL(dropout_block, const DropoutBlock& a)

}  // namespace binade::kernels
