#include <binade/core/autograd/autograd.h>
#include <binade/core/observe/exponents.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/exponents/exponent_keys.h>
#include <binade/kernels/exponents/exponents.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace binade {
namespace {

constexpr int kClasses = 8, kBias = 127, kSpecial = 255;
// The classes of exponent_keys.h.
constexpr int kPowerOfTwo = 0, kInexact = 2, kNearSubnormal = 3, kNearHalf = 4;

Tensor flat_values(const Tensor& x) {
  NoGradGuard guard;
  const Tensor dense = is_dense(x.sizes(), x.strides()) ? x.detach() : x.detach().contiguous();
  return make_view(dense, {x.numel()}, {1});
}

double magnitude(int64_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
}

int exponent_of(const char* what, double power) {
  int exponent = 0;
  check(std::isfinite(power) && std::frexp(power, &exponent) == 0.5, what, ": got a scale of ",
        power, ", expected a power of two; divide the tensor by the scale first");
  return exponent - 1;
}

}  // namespace

void count_exponents(const Tensor& x, const Tensor& counts) {
  check(x.defined() && is_floating(x.dtype()), "count_exponents: got ",
        x.defined() ? text(x.dtype(), " ", x.sizes()) : "an undefined tensor",
        ", expected a floating dtype");
  kernels::count_exponents({.x = flat_values(x), .result = counts});
}

Tensor count_exponents(const Tensor& x) {
  check(x.defined(), "count_exponents: got an undefined tensor, expected a floating dtype");
  Tensor counts = zeros({kernels::kExponentCounters}, DType::i64, x.device());
  count_exponents(x, counts);
  return counts;
}

ExponentCounts::ExponentCounts() : keys_(kernels::kExponentKeys) {}

ExponentCounts::ExponentCounts(const Tensor& counts, double scale) : ExponentCounts() {
  const int power = exponent_of("ExponentCounts", scale);
  const Tensor host = counts.to(Device{});
  check(host.dtype() == DType::i64 && host.numel() == kernels::kExponentCounters,
        "ExponentCounts: got ", host.dtype(), " ", host.sizes(),
        ", expected what count_exponents returns");
  const auto* numbers = host.data<int64_t>();
  for (int key = 0; key < static_cast<int>(kernels::kExponentKeys); ++key) {
    const int biased = key / kClasses, moved = biased - power;
    int to = key;
    if (power != 0 && key != 0 && biased != kSpecial) {
      to = biased == 0 || moved <= 0 ? kInexact
           : moved >= kSpecial       ? (kSpecial - 1) * kClasses + kNearHalf
                                     : moved * kClasses + key % kClasses;
    }
    keys_[static_cast<size_t>(to)] += numbers[key];
  }
  largest_ = magnitude(numbers[kernels::kExponentKeys]) / scale;
  const int64_t least = numbers[kernels::kExponentKeys + 1];
  smallest_ = least == 0 ? 0 : magnitude(~least & 0xffffffff) / scale;
}

void ExponentCounts::add(const ExponentCounts& other) {
  for (size_t key = 0; key < keys_.size(); ++key) {
    keys_[key] += other.keys_[key];
  }
  largest_ = std::max(largest_, other.largest_);
  smallest_ = smallest_ == 0         ? other.smallest_
              : other.smallest_ == 0 ? smallest_
                                     : std::min(smallest_, other.smallest_);
}

int64_t ExponentCounts::numel() const {
  int64_t sum = 0;
  for (int64_t count : keys_) {
    sum += count;
  }
  return sum;
}

int64_t ExponentCounts::nans() const {
  int64_t sum = 0;
  for (int kind = 1; kind < kClasses; ++kind) {
    sum += at_key(kSpecial * kClasses + kind);
  }
  return sum;
}

int64_t ExponentCounts::at(int exponent) const {
  check(exponent >= kLeast - 1 && exponent <= kMost, "ExponentCounts: got exponent ", exponent,
        ", expected one from ", kLeast - 1, " to ", kMost);
  int64_t sum = 0;
  for (int kind = exponent < kLeast ? 1 : 0; kind < kClasses; ++kind) {
    sum += at_key((exponent + kBias) * kClasses + kind);
  }
  return sum;
}

HalfCounts ExponentCounts::in_f16(int power) const {
  check(std::abs(power) <= 96, "ExponentCounts: got a power of ", power,
        ", expected one from -96 to 96");
  // Keys increase with the magnitude, so each count is a sum over a range of keys.
  const auto key_of = [power](int exponent, int kind) {
    return std::clamp((exponent - power + kBias) * kClasses + kind, 1, kSpecial * kClasses);
  };
  const auto sum = [this](int first, int end) {
    return std::accumulate(keys_.begin() + first, keys_.begin() + end, int64_t{0});
  };
  const int normal = key_of(-15, kNearSubnormal), not_zero = key_of(-25, kPowerOfTwo + 1);
  return {.overflow = sum(key_of(15, kNearHalf), kSpecial * kClasses),
          .subnormal = sum(not_zero, normal),
          .flushed = sum(1, not_zero)};
}

int64_t ExponentCounts::changed_in_bf16() const {
  int64_t sum = 0;
  for (int key = 0; key < kSpecial * kClasses; ++key) {
    sum += key % kClasses >= kInexact ? at_key(key) : 0;
  }
  return sum;
}

double static_scale(double largest) {
  check(std::isfinite(largest) && largest >= 0, "static_scale: got ", largest,
        ", expected the largest finite magnitude of the gradients");
  double scale = 0x1p24;
  while (scale > 0x1p-24 && !(largest * scale < 65504)) {
    scale /= 2;
  }
  return scale;
}

std::vector<ScaleEffects> scale_table(const ExponentCounts& counts,
                                      std::span<const double> scales) {
  std::vector<ScaleEffects> table;
  for (double scale : scales) {
    table.push_back({scale, counts.in_f16(exponent_of("scale_table", scale))});
  }
  return table;
}

Tensor count_lost_updates(const Tensor& before, const Tensor& after) {
  check(before.defined() && after.defined() && before.sizes() == after.sizes() &&
            before.strides() == after.strides(),
        "count_lost_updates: expected two tensors of the same sizes and strides");
  Tensor result = zeros({3}, DType::i64, before.device());
  kernels::count_lost_updates(
      {.before = flat_values(before), .after = flat_values(after), .result = result});
  return result;
}

LostUpdates lost_updates(const Tensor& counts) {
  const Tensor host = counts.to(Device{});
  const auto* numbers = host.data<int64_t>();
  return {.changed = numbers[0], .in_f16 = numbers[1], .in_bf16 = numbers[2]};
}

}  // namespace binade
