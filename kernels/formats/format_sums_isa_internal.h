// The inner loop of cpu::accumulate_matmul().
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/formats/formats.h>

#include <cstdint>

namespace binade::kernels {

inline constexpr int kFormatLanes = 8;

// Sums of products of rows and columns, each as FormatSum::run() computes it. The columns are in
// the lanes of vectors.
struct FormatSums {
  FormatGrid grid;
  Rounding rounding;
  SumOrder order;
  int64_t chunk, k;
  const double* columns = nullptr;  // [k, kFormatLanes]
  const double* rows = nullptr;     // [row_count, k]
  int64_t row_count = 1;            // at least 1
  double* sums = nullptr;           // [row_count, kFormatLanes], set
  // For stochastic rounding. The sequence begins at random number `first` of the seed, and sum
  // (row, column) is output element `element` + row * row_step + column * column_step.
  uint64_t seed, first;
  int64_t element = 0, row_step = 1, column_step = 1;

  // True if sum_in_format() can round to the grid.
  static bool fits(const FormatGrid& grid) {
    return grid.is_signed && grid.mantissa_bits > 0 && grid.mantissa_bits <= 52 &&
           grid.min_exponent >= -900 && grid.max <= 0x1p900;
  }
};
BINADE_ISA_KERNEL(sum_in_format, const FormatSums& a)

}  // namespace binade::kernels
