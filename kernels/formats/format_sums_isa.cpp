// Sums that are rounded to a format after every addition, one in each lane. A value a is rounded by
// (a + shifter) - shifter, where the unit in the last place of the shifter, as a double, is the
// unit of the format in a's binade. Contraction to fused multiply-add is off
// (cmake/BinadeLibrary.cmake), so that every instruction set gives the same bits.
#include <binade/kernels/formats/format_sums_isa_internal.h>
#include <binade/kernels/random/philox_lanes_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

using Lanes = Vector<double>;
using Words = Bits<double>;

constexpr int kParts = kFormatLanes / kLanes<double>;  // vectors of a row
constexpr int kVectors = 4;                            // at a time, because each waits for itself
constexpr int kRows = kVectors / kParts;
static_assert(kRows * kParts == kVectors);

constexpr int kFraction = 52;  // bits of a double
constexpr uint64_t kSign = uint64_t(1) << 63;

BINADE_INLINE Words field(int exponent) {
  return Words{} + (static_cast<uint64_t>(exponent) << kFraction);
}

// round_to_grid() for a vector.
template <Rounding kRounding>
class LaneRounding {
 public:
  explicit LaneRounding(const FormatGrid& g)
      : max_(broadcast(g.max)),
        over_(broadcast(kRounding == Rounding::toward_zero ? g.max : g.beyond)),
        infinite_(broadcast(g.infinite)),
        least_(field(1023 + g.min_exponent)),
        least_shifter_(
            field(1023 + kFraction + g.min_exponent - (g.subnormals ? g.mantissa_bits : 0))),
        to_shifter_(field(kFraction - g.mantissa_bits)),
        zero_has_sign_(g.negative_zero ? ~Words{} : Words{}) {}

  // `random`: 32 bits in the lower half of each lane.
  BINADE_INLINE Lanes operator()(Lanes x, Words random) const {
    const Words sign = bits_as<Words>(x) & kSign;
    const Lanes all = bits_as<Lanes>(bits_as<Words>(x) ^ sign);
    const Lanes a = all > 2 * max_ ? 4 * max_ : all;
    const Words exponent = bits_as<Words>(a) & (uint64_t(0x7ff) << kFraction);
    const Words shifter = exponent < least_ ? least_shifter_ : exponent + to_shifter_;
    Lanes y = (a + bits_as<Lanes>(shifter)) - bits_as<Lanes>(shifter);
    if constexpr (kRounding != Rounding::nearest_even) {
      const Lanes unit = bits_as<Lanes>(shifter - field(kFraction));
      y = y > a ? y - unit : y;
      if constexpr (kRounding == Rounding::stochastic) {
        y = rounds_up(a - y, shifter, random) ? y + unit : y;
      }
    }
    y = y > max_ ? (all < __builtin_inf() ? over_ : infinite_) : y;
    const Words kept = bits_as<Words>(y != 0) | zero_has_sign_;
    return bits_as<Lanes>(bits_as<Words>(y) ^ (sign & kept));
  }

 private:
  BINADE_INLINE static Mask<double> rounds_up(Lanes rest, Words shifter, Words random) {
    const Words to_32_bits = field(2 * 1023 + kFraction + 32) - shifter;  // 2^32 / unit
    const Lanes chance = (rest * bits_as<Lanes>(to_32_bits) + 0x1p52) - 0x1p52;
    const Words number = (random & 0xffffffffu) | bits_as<Words>(broadcast(0x1p52));
    return chance + (bits_as<Lanes>(number) - 0x1p52) >= 0x1p32;
  }

  Lanes max_, over_, infinite_;
  Words least_, least_shifter_, to_shifter_, zero_has_sign_;
};

// The random numbers of kVectors vectors of sums. All sums are at the same place in their block of
// four numbers, because each has a multiple of 8 of them.
class LaneNumbers {
 public:
  LaneNumbers(const FormatSums& a, int64_t row) : seed_(a.seed), next_(a.first) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t first = a.element + (row + v / kParts) * a.row_step;
      const Mask<double> column = lane_numbers<double>() + v % kParts * kLanes<double>;
      blocks_[v] = bits_as<Words>((first + column * a.column_step) * (2 * a.k));
    }
  }

  // One number of each sum.
  BINADE_INLINE const Words* next() {
    if (next_ / 4 != block_) {
      fill();
    }
    return numbers_[next_++ % 4];
  }

 private:
  void fill() {
    block_ = next_ / 4;
    Words c0[kVectors], c1[kVectors], c2[kVectors] = {}, c3[kVectors] = {};
    for (int v = 0; v < kVectors; ++v) {
      c0[v] = blocks_[v] + block_;
      c1[v] = c0[v] >> 32;
    }
    philox_rounds(seed_, c0, c1, c2, c3);
    for (int v = 0; v < kVectors; ++v) {
      numbers_[0][v] = c0[v];
      numbers_[1][v] = c1[v];
      numbers_[2][v] = c2[v];
      numbers_[3][v] = c3[v];
    }
  }

  uint64_t seed_, next_, block_ = ~uint64_t(0);
  Words blocks_[kVectors], numbers_[4][kVectors];
};

using Group = Lanes[kVectors];  // kRows rows of kFormatLanes sums

// The sums of kRows rows; a row that does not exist is the last one again.
template <Rounding kRounding>
class SumGroup {
 public:
  SumGroup(const FormatSums& a, int64_t row) : a_(a), rounding_(a.grid), numbers_(a, row) {
    for (int r = 0; r < kRows; ++r) {
      rows_[r] = a.rows + (row + r < a.row_count ? row + r : a.row_count - 1) * a.k;
    }
  }

  BINADE_INLINE void run(Group& total) {
    switch (a_.order) {
      case SumOrder::kahan: kahan(total); break;
      case SumOrder::pairwise: pairwise(total); break;
      default: in_chunks(total, a_.order == SumOrder::chunks ? a_.chunk : a_.k);
    }
  }

 private:
  BINADE_INLINE Lanes product(int64_t i, int v) const {
    return rows_[v / kParts][i] * load(a_.columns + i * kFormatLanes + v % kParts * kLanes<double>);
  }

  // Replaces sums by rounded ones; f(v) is vector v of them.
  template <class F>
  BINADE_INLINE void round(Group& sums, F&& f) {
    const Words* numbers = kRounding == Rounding::stochastic ? numbers_.next() : nullptr;
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = rounding_(f(v), numbers ? numbers[v] : Words{});
    }
  }

  BINADE_INLINE void in_chunks(Group& total, int64_t part) {
    const bool whole = part >= a_.k;
    for (int64_t from = 0; from < a_.k; from += part) {
      const int64_t end = a_.k - from < part ? a_.k : from + part;
      Group sum = {};
      for (int64_t i = from; i < end; ++i) {
        round(sum, [&](int v) { return sum[v] + product(i, v); });
      }
      if (whole) {
        __builtin_memcpy(&total, &sum, sizeof total);
      } else {
        round(total, [&](int v) { return total[v] + sum[v]; });
      }
    }
  }

  BINADE_INLINE void kahan(Group& sum) {
    Group lost = {}, term, next;
    for (int64_t i = 0; i < a_.k; ++i) {
      round(term, [&](int v) { return product(i, v) - lost[v]; });
      round(next, [&](int v) { return sum[v] + term[v]; });
      round(lost, [&](int v) { return next[v] - sum[v]; });
      round(lost, [&](int v) { return lost[v] - term[v]; });
      __builtin_memcpy(&sum, &next, sizeof sum);
    }
  }

  BINADE_INLINE void pairwise(Group& total) {
    constexpr int kLevels = 40;
    Group waiting[kLevels], sum;
    for (int64_t i = 0; i < a_.k; ++i) {
      round(sum, [&](int v) { return product(i, v); });
      int level = 0;
      for (; (i >> level & 1) != 0; ++level) {
        round(sum, [&](int v) { return waiting[level][v] + sum[v]; });
      }
      __builtin_memcpy(&waiting[level], &sum, sizeof sum);
    }
    bool any = false;
    for (int level = 0; level < kLevels; ++level) {
      if ((a_.k >> level & 1) == 0) {
        continue;
      }
      if (any) {
        round(total, [&](int v) { return waiting[level][v] + total[v]; });
      } else {
        __builtin_memcpy(&total, &waiting[level], sizeof total);
      }
      any = true;
    }
  }

  const FormatSums& a_;
  LaneRounding<kRounding> rounding_;
  LaneNumbers numbers_;
  const double* rows_[kRows];
};

template <Rounding kRounding>
void sum_rows(const FormatSums& a) {
  for (int64_t row = 0; row < a.row_count; row += kRows) {
    Group total = {};
    SumGroup<kRounding>(a, row).run(total);
    const int64_t rows = a.row_count - row < kRows ? a.row_count - row : kRows;
    __builtin_memcpy(a.sums + row * kFormatLanes, &total,
                     static_cast<size_t>(rows * kFormatLanes) * sizeof(double));
  }
}

}  // namespace

void sum_in_format(const FormatSums& a) {
  switch (a.rounding) {
    case Rounding::nearest_even: return sum_rows<Rounding::nearest_even>(a);
    case Rounding::toward_zero: return sum_rows<Rounding::toward_zero>(a);
    case Rounding::stochastic: return sum_rows<Rounding::stochastic>(a);
  }
}

}  // namespace binade::kernels::BINADE_ISA
