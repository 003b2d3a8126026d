// The exponent lens: the distribution of a tensor's elements over exponents, and exactly what f16
// and bf16 would do to them.
//
//   ExponentCounts counts(count_exponents(x));
//   counts.in_f16().flushed;                        // elements that a cast to f16 makes 0
//   static_scale(counts.largest());                 // the factor for gradients
//
// The counts equal those after a cast of each element to f16 or bf16 (round to nearest, ties to
// even). The cost is one read of the tensor.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <span>
#include <vector>

namespace binade {

// Counts the elements of x, a tensor of a floating dtype and any strides, into i64
// [kernels::kExponentCounters] on its device. Does not wait.
Tensor count_exponents(const Tensor& x);
// The same, added to an earlier result.
void count_exponents(const Tensor& x, const Tensor& counts);

// How many elements, other than 0, inf and NaN, change in these ways.
struct HalfCounts {
  int64_t overflow = 0;   // becomes inf: |x| >= 65520
  int64_t subnormal = 0;  // becomes a subnormal, with fewer than 11 bits
  int64_t flushed = 0;    // becomes 0: |x| <= 2^-25
};

class ExponentCounts {
 public:
  // f32 exponents of normal numbers; everything below kLeast counts as kLeast - 1.
  static constexpr int kLeast = -126, kMost = 127;

  ExponentCounts();
  // Counts true values: the counted tensor holds `scale` times them, where scale is a power of two.
  // `counts` comes from count_exponents(); on a device this waits. Exact for true values from
  // 2^-126 on.
  explicit ExponentCounts(const Tensor& counts, double scale = 1);
  void add(const ExponentCounts& other);

  int64_t numel() const;
  int64_t zeros() const { return at_key(0); }
  int64_t nans() const;
  int64_t infinities() const { return at_key(8 * 255); }
  // The largest finite magnitude; 0 if all are 0. f64 is rounded to f32.
  double largest() const { return largest_; }
  double smallest() const { return smallest_; }  // nonzero magnitude; 0 if there is none
  // Elements with 2^exponent <= |x| < 2^(exponent + 1); exponent from kLeast - 1 to kMost.
  int64_t at(int exponent) const;
  // Counts of the elements times 2^power in f16, |power| <= 96.
  HalfCounts in_f16(int power = 0) const;
  int64_t changed_in_bf16() const;  // finite elements that change in bf16

 private:
  int64_t at_key(int key) const { return keys_[static_cast<size_t>(key)]; }
  std::vector<int64_t> keys_;
  double largest_ = 0, smallest_ = 0;
};

// The largest power of two S in [2^-24, 2^24] with largest * S < 65504: the static loss scale for
// gradients of this size. 2^24 if all are 0.
double static_scale(double largest);

// The effects of static scales on gradients; `counts` must be of their true values.
struct ScaleEffects {
  double scale;
  HalfCounts fates;
};
std::vector<ScaleEffects> scale_table(const ExponentCounts& counts, std::span<const double> scales);

// Updates from `before` to `after` (both f32, the same shape) that a 16-bit weight without a master
// would lose: the weight would not change when the update is added.
struct LostUpdates {
  int64_t changed = 0;  // elements with an update
  int64_t in_f16 = 0, in_bf16 = 0;
};
Tensor count_lost_updates(const Tensor& before, const Tensor& after);  // i64 [3]; does not wait
LostUpdates lost_updates(const Tensor& counts);                        // waits

}  // namespace binade
