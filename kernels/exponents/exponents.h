// What a narrower format would do to the elements of a tensor, counted exactly: the kernels of the
// exponent lens (core/observe/exponents.h).
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// Counts per key of kernels/exponents/exponent_keys.h, then two words for the extremes.
inline constexpr int64_t kExponentKeys = 2048, kExponentWords = kExponentKeys + 2;

// Adds the elements of x to result[key], and makes result[2048] the bits of the larger of itself
// and the largest finite |x| as f32, result[2049] the same of ~bits of the smallest |x| that is not
// 0 (0 where there was none). The extremes of f64 are rounded to f32.
struct CountExponents {
  const View& x;       // floating, contiguous
  const View& result;  // i64 [kExponentWords], contiguous
};
BINADE_KERNEL(count_exponents, CountExponents, x)

// Updates that a weight in 16 bits would not have noticed. Adds to result the number of elements
// that differ between before and after, and how many of those stay what they were when the exact
// difference is added to `before` rounded to f16, and rounded to f16 again; then the same of bf16.
struct CountLostUpdates {
  const View& before;  // f32, contiguous
  const View& after;   // like before
  const View& result;  // i64 [3]: changed, lost in f16, lost in bf16
};
BINADE_KERNEL(count_lost_updates, CountLostUpdates, before)

}  // namespace binade::kernels
