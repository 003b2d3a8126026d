// The arithmetic of kernels/formats/formats.h on single elements, blocks and sums, for every
// backend.
#pragma once
#include <binade/kernels/formats/formats.h>

namespace binade::kernels {

// The source of random bits.
struct FormatRandom {
  uint64_t seed, offset;
  const int64_t* advance;  // or null

  BINADE_HD uint32_t at(Rounding rounding, uint64_t index) const {
    if (rounding != Rounding::stochastic) {
      return 0;
    }
    return random_number(seed, first() + index);
  }
  BINADE_HD uint64_t first() const {
    return offset + (advance ? static_cast<uint64_t>(*advance) : 0);
  }
};

BINADE_HD inline double scale_or_one(const float* scale) {
  return scale ? static_cast<double>(*scale) : 1.0;
}

// s round(x / s). An s of 0, of a block of zeros, gives zeros.
BINADE_HD inline double round_scaled(double x, double scale, const FormatGrid& grid,
                                     Rounding rounding, uint32_t random) {
  if (scale == 0) {
    return x - x;
  }
  return scale * round_to_grid(x / scale, grid, rounding, random);
}

// A block of a RoundBlocks.
struct FormatBlock {
  FormatGrid grid, scales;
  BlockScale rule;
  Rounding rounding;
  FormatRandom random;

  // The scale of a block whose largest magnitude is amax; NaN if that is not finite.
  BINADE_HD double scale_of(double amax, double second) const {
    if (!(amax <= std::numeric_limits<double>::max())) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    if (rule == BlockScale::nearest) {
      const double wanted = second == 0 ? 0 : amax / grid.max / second;
      return round_to_grid(wanted, scales, Rounding::nearest_even, 0) * second;
    }
    const int least = scales.min_exponent;
    const int exponent = amax == 0 ? least : exponent_of(amax) - exponent_of(grid.max);
    const int most = exponent_of(scales.max);
    return power_of_two(exponent < least ? least : exponent > most ? most : exponent) * second;
  }

  // Elements first, first + inner, ... of x. T: storage.
  template <class T>
  BINADE_HD void run(const T* x, T* y, int64_t first, int64_t count, int64_t inner,
                     double second) const {
    double amax = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(x[first + i * inner]);
      const double a = value < 0 ? -value : value;
      amax = a > amax || a != a ? a : amax;
      if (amax != amax) {
        break;
      }
    }
    const double scale = scale_of(amax, second);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = first + i * inner;
      y[at] = static_cast<T>(round_scaled(static_cast<double>(x[at]), scale, grid, rounding,
                                          random.at(rounding, static_cast<uint64_t>(at))));
    }
  }

 private:
  BINADE_HD static int exponent_of(double a) {
    return static_cast<int>(std::bit_cast<uint64_t>(a) >> 52) - 1023;
  }
};

// One sum of an AccumulateMatmul.
struct FormatSum {
  FormatGrid grid;
  Rounding rounding;
  SumOrder order;
  int64_t chunk;
  FormatRandom random;

  // The sum of product(0), ..., product(k - 1); `element` numbers the sums.
  template <class Product>
  BINADE_HD double run(int64_t element, int64_t k, Product&& product) const {
    uint64_t number = static_cast<uint64_t>(element) * 8 * static_cast<uint64_t>(k);
    const auto rounded = [&](double x) {
      return round_to_grid(x, grid, rounding, random.at(rounding, number++));
    };
    switch (order) {
      case SumOrder::kahan: {
        double sum = 0, lost = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double term = rounded(product(i) - lost), next = rounded(sum + term);
          lost = rounded(rounded(next - sum) - term);
          sum = next;
        }
        return sum;
      }
      case SumOrder::pairwise: return pairwise(k, product, rounded);
      default: {
        const int64_t part = order == SumOrder::chunks ? chunk : k;
        double total = 0;
        for (int64_t from = 0; from < k; from += part) {
          double sum = 0;
          for (int64_t i = from; i < k && i < from + part; ++i) {
            sum = rounded(sum + product(i));
          }
          total = part < k ? rounded(total + sum) : sum;
        }
        return total;
      }
    }
  }

 private:
  // Sums of 2^j products wait for the next sum of the same size, like the digits of a counter.
  template <class Product, class Rounded>
  BINADE_HD static double pairwise(int64_t k, Product&& product, Rounded&& rounded) {
    constexpr int kLevels = 40;
    double waiting[kLevels];
    for (int64_t i = 0; i < k; ++i) {
      double sum = rounded(product(i));
      int level = 0;
      for (; (i >> level & 1) != 0; ++level) {
        sum = rounded(waiting[level] + sum);
      }
      waiting[level] = sum;
    }
    double total = 0;
    bool any = false;
    for (int level = 0; level < kLevels; ++level) {
      if ((k >> level & 1) != 0) {
        total = any ? rounded(waiting[level] + total) : waiting[level];
        any = true;
      }
    }
    return total;
  }
};

}  // namespace binade::kernels
