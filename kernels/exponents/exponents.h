// The kernels of the exponent lens (core/observe/exponents.h): they count exactly how many elements
// of a tensor a narrower format would change.
#pragma once
#include <binade/kernels/base/kernel.h>

namespace binade::kernels {

// One count per key of kernels/exponents/exponent_keys.h, then two integers for the extremes.
inline constexpr int64_t kExponentKeys = 2048, kExponentCounters = kExponentKeys + 2;

// Adds the elements of x to result[key]. result[2048] becomes the bits of the largest finite |x| as
// f32 if that is larger, and result[2049] likewise ~bits of the smallest |x| that is not 0 (0 if
// there was none). The extremes of f64 are rounded to f32.
struct CountExponents {
  const View& x;       // floating, contiguous
  const View& result;  // i64 [kExponentCounters], contiguous
};
BINADE_KERNEL(count_exponents, CountExponents, x)

// Updates that a 16-bit weight would lose. Adds three counts to result: the elements that differ
// between before and after, and how many of these would not change in f16, that is if the exact
// difference were added to `before` rounded to f16 and the sum rounded to f16; then the same for
// bf16.
struct CountLostUpdates {
  const View& before;  // f32, contiguous
  const View& after;   // like before
  const View& result;  // i64 [3]: changed, lost in f16, lost in bf16
};
BINADE_KERNEL(count_lost_updates, CountLostUpdates, before)

}  // namespace binade::kernels
