// ExactSum: a sum of doubles without rounding. Internal to train.
//
// Every finite double is an integer times 2^-1074, so a fixed-point number of 2176 bits holds any
// sum of 2^60 of them: the "long accumulator" of Kulisch (Computer Arithmetic and Validity, 2008).
// The words are 32-bit digits in 64-bit integers, so that two sums are added word by word, in any
// order and with carries later.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace binade::train {

class ExactSum {
 public:
  static constexpr int kDigits = 68;
  static constexpr int kWords = kDigits + 3;  // then the numbers of NaN, of inf and of -inf

  void add(double x);
  void add_product(double a, double b);  // a b, exact unless it underflows
  // Rounded to nearest, ties to even. NaN with a NaN or with infinities of both signs.
  double value() const;

  // For sums over ranks and for files. Digits 0 .. 2^32 - 1, the last one with the sign.
  std::array<int64_t, kWords> words() const;
  // Word by word; true if the words can be those of a sum.
  static bool are_words(std::span<const int64_t> words);
  void set_words(std::span<const int64_t> words);

 private:
  void carry();

  std::array<int64_t, kWords> words_{};
  int64_t adds_ = 0;  // since the last carry
};

}  // namespace binade::train
