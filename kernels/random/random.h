// Random fills and dropout. Element i in row-major logical order takes its number from the Philox
// sequence of `seed` at position offset + i (two positions per Box-Muller pair), so results do not
// depend on layout, thread count or device. Floating dtypes, any strides.
//
// advance: added to `offset` when the kernel runs, so that a captured graph draws new numbers at
// every replay. i64 [1] on y's device, a multiple of kRandomGroup; kNoView means 0.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

inline constexpr int64_t kRandomGroup = 8;

// y uniform in [low, high), drawn with 24 bits; rounding to y's dtype may give high.
struct FillUniform {
  const View& y;
  double low = 0, high = 1;
  uint64_t seed;
  uint64_t offset;
  const View& advance = kNoView;
};
BINADE_KERNEL(fill_uniform, FillUniform, y)

// y normal with the given mean and deviation (Box-Muller; |z| < 5.8).
struct FillNormal {
  const View& y;
  double mean = 0, std = 1;
  uint64_t seed;
  uint64_t offset;
  const View& advance = kNoView;
};
BINADE_KERNEL(fill_normal, FillNormal, y)

// y = x / (1 - p) if kept, else 0; each element is dropped with probability p, 0 <= p <= 1 (p = 1
// drops all). No mask is stored: the same call on dy gives dx. x and y: same sizes and dtype.
struct Dropout {
  const View& x;
  const View& y;
  double p;
  uint64_t seed;
  uint64_t offset;
  const View& advance = kNoView;
};
BINADE_KERNEL(dropout, Dropout, y)

}  // namespace binade::kernels
