// Inner loops of interpolate on the CPU: weighted sums of strided rows.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

#include <cstddef>

namespace binade::kernels {

// y[j * y_stride] = the sum over the terms t of element j, from first[j] to first[j + 1] - 1, of
// weight[t] * (sum over r of row_weight[r] * row[r][at[t] * stride]). Weights are f64.
struct WeightedRow {
  DType dtype;
  int64_t count;  // elements of y
  const int64_t* first;
  const int64_t* at;
  const double* weight;
  const std::byte* const* row;
  const double* row_weight;
  int64_t rows, stride;
  std::byte* y;
  int64_t y_stride;
};
BINADE_ISA_KERNEL(weighted_row, const WeightedRow& a)

// The same for `channels` adjacent elements at each place: row[r] + at[t] * stride, y + j y_stride.
struct WeightedPixels {
  WeightedRow row;
  int64_t channels;
};
BINADE_ISA_KERNEL(weighted_pixels, const WeightedPixels& a)

}  // namespace binade::kernels
