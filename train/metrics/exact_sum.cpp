#include <binade/train/metrics/exact_sum_internal.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace binade::train {
namespace {

constexpr int kNan = ExactSum::kDigits, kInf = kNan + 1, kMinusInf = kNan + 2;
constexpr int64_t kBase = int64_t{1} << 32;
// Each add() changes a digit by less than 2^32.
constexpr int64_t kAddsPerCarry = int64_t{1} << 30;
constexpr int kLowest = -1074;  // the exponent of the last digit's unit

}  // namespace

void ExactSum::add(double x) {
  constexpr int kMantissa = 52, kSpecial = 0x7ff;
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> kMantissa & kSpecial);
  const bool negative = bits >> 63 != 0;
  if (exponent == kSpecial) {
    ++words_[static_cast<size_t>(std::isnan(x) ? kNan : negative ? kMinusInf : kInf)];
    return;
  }
  const uint64_t hidden = exponent != 0 ? uint64_t{1} << kMantissa : 0;
  const uint64_t mantissa = (bits & ((uint64_t{1} << kMantissa) - 1)) | hidden;
  const int shift = std::max(exponent - 1, 0);
  const auto digits = static_cast<unsigned __int128>(mantissa) << shift % 32;  // at most 84 bits
  int64_t* const at = &words_[static_cast<size_t>(shift / 32)];
  const int64_t sign = negative ? -1 : 1;
  at[0] += sign * static_cast<int64_t>(digits & (kBase - 1));
  at[1] += sign * static_cast<int64_t>(digits >> 32 & (kBase - 1));
  at[2] += sign * static_cast<int64_t>(digits >> 64);
  if (++adds_ == kAddsPerCarry) {
    carry();
  }
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  add(product);
  if (std::isfinite(product)) {
    add(std::fma(a, b, -product));
  }
}

void ExactSum::carry() {
  for (int i = 0; i + 1 < kDigits; ++i) {
    int64_t& digit = words_[static_cast<size_t>(i)];
    const int64_t over = digit >> 32;  // rounds down, so the digit becomes positive
    digit &= kBase - 1;
    words_[static_cast<size_t>(i) + 1] += over;
  }
  adds_ = 0;
}

double ExactSum::value() const {
  const auto has = [this](int kind) { return words_[static_cast<size_t>(kind)] != 0; };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (has(kNan) || (has(kInf) && has(kMinusInf))) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (has(kInf) || has(kMinusInf)) {
    return has(kInf) ? kInfinity : -kInfinity;
  }
  ExactSum magnitude = *this;
  magnitude.carry();
  const bool negative = magnitude.words_[kDigits - 1] < 0;
  if (negative) {
    std::for_each_n(magnitude.words_.begin(), kDigits, [](int64_t& digit) { digit = -digit; });
    magnitude.carry();
  }
  const auto digit = [&](int i) {
    return static_cast<unsigned __int128>(magnitude.words_[static_cast<size_t>(i)]);
  };
  int top = kDigits - 1;
  while (top > 2 && digit(top) == 0) {
    --top;
  }
  // At least 65 bits if anything is below them: one more bit for that makes the rounding right.
  unsigned __int128 leading = digit(top) << 64 | digit(top - 1) << 32 | digit(top - 2);
  const bool rest = std::any_of(magnitude.words_.begin(), magnitude.words_.begin() + (top - 2),
                                [](int64_t below) { return below != 0; });
  leading |= static_cast<unsigned __int128>(rest);
  const double value = std::ldexp(static_cast<double>(leading), 32 * (top - 2) + kLowest);
  return negative ? -value : value;
}

std::array<int64_t, ExactSum::kWords> ExactSum::words() const {
  ExactSum carried = *this;
  carried.carry();
  return carried.words_;
}

bool ExactSum::are_words(std::span<const int64_t> words) {
  constexpr int64_t kMost = int64_t{1} << 62;
  return words.size() == kWords &&
         std::all_of(words.begin(), words.begin() + kDigits - 1,
                     [](int64_t digit) { return digit >= 0 && digit < kBase; }) &&
         words[kDigits - 1] > -kMost && words[kDigits - 1] < kMost &&
         std::all_of(words.begin() + kDigits, words.end(),
                     [](int64_t count) { return count >= 0 && count < kMost; });
}

// The digits may be sums over many ranks.
void ExactSum::set_words(std::span<const int64_t> words) {
  std::copy(words.begin(), words.end(), words_.begin());
  carry();
}

}  // namespace binade::train
