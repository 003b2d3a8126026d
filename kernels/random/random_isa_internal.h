// The vectorised loops of kernels/random/random.h: blocks of consecutive positions of the Philox
// sequence. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

inline constexpr int64_t kRandomBlock = 1024;  // maximum number of elements of one call

enum class Distribution : uint8_t { uniform, normal };

// y[0 .. n) contiguous. uniform: low + (high - low) u; normal: low + high z.
BINADE_ISA_KERNEL(random_block, Distribution distribution, double low, double high, uint64_t seed,
                  uint64_t position, DType dtype, void* y, int64_t n)

// y[i] = x[i] / (1 - p) if the number at position + i is at least p, else 0. Contiguous; y may be
// x.
BINADE_ISA_KERNEL(dropout_block, double p, uint64_t seed, uint64_t position, DType dtype,
                  const void* x, void* y, int64_t n)

}  // namespace binade::kernels
