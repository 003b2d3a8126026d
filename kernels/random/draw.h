// Draws of integers: uniform ones, coin flips, and choices by weight. Views are row-major. Element
// i takes its numbers from the Philox sequence of `seed` (random.h), so that results do not depend
// on thread count or device. offset is a multiple of kRandomGroup; `advance` is as in random.h.
#pragma once
#include <binade/kernels/random/random.h>

namespace binade::kernels {

// y (i64) = low + floor(w range / 2^64), where w is made of numbers 2 i and 2 i + 1: uniform in
// [low, low + range). Range 0 means 2^64. Sums wrap around.
struct RandomIntegers {
  const View& y;
  int64_t low = 0;
  uint64_t range;
  uint64_t seed;
  uint64_t offset;
  const View& advance = kNoView;
};
BINADE_KERNEL(random_integers, RandomIntegers, y)

// y_i = 1 if number i is less than 2^32 p_i, else 0. p and y: same sizes, same floating dtype. A p
// outside [0, 1] is a ValueError (kernels/base/fault.h).
struct Bernoulli {
  const View& p;
  const View& y;
  uint64_t seed;
  uint64_t offset;
  const View& advance = kNoView;
};
BINADE_KERNEL(bernoulli, Bernoulli, y)

// y = the class whose interval of the row's sums holds at * (the row's last sum); a class of weight
// 0 is never chosen.
struct ChooseWeighted {
  const View& weights;  // f64 [rows, classes], not negative, one of each row positive
  const View& sums;     // f64 [rows, classes], weights added from the first class on
  const View& at;       // f64 [rows, n], in (0, 1)
  const View& y;        // i64 [rows, n]
};
BINADE_KERNEL(choose_weighted, ChooseWeighted, y)

}  // namespace binade::kernels
