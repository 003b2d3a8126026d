// Rows of interpolate: every mode; larger, smaller and equal sizes.
#include <tests/op_table/move_row.h>

#include <binade/core/ops/image.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {
namespace {

double position(int64_t i, int64_t source, int64_t result, const InterpolateOptions& options) {
  const double n = double(source), m = double(result);
  if (options.mode == Interpolation::nearest) {
    return std::floor(double(i) * n / m + 1e-9);
  }
  if (options.align_corners) {
    return result > 1 ? double(i) * ((n - 1) / (m - 1)) : 0;
  }
  return std::clamp((double(i) + 0.5) * (n / m) - 0.5, 0.0, n - 1);
}

Array resampled(const Array& x, int64_t height, int64_t width, const InterpolateOptions& options) {
  const int64_t h = x.sizes[2], w = x.sizes[3];
  return generate({x.sizes[0], x.sizes[1], height, width}, [&](const Dims& y) {
    const double row = position(y[2], h, height, options), col = position(y[3], w, width, options);
    double sum = 0;
    for (int64_t i = 0; i < h; ++i) {
      for (int64_t j = 0; j < w; ++j) {
        const double part = std::max(0.0, 1 - std::fabs(row - double(i))) *
                            std::max(0.0, 1 - std::fabs(col - double(j)));
        sum += part * x.at({y[0], y[1], i, j});
      }
    }
    return sum;
  });
}

OpRow interpolate_row(const char* name, int64_t height, int64_t width,
                      const InterpolateOptions& options) {
  OpRow row = move_row(
      "interpolate", text(name, " to ", height, " x ", width),
      {{{2, 3, 4, 5}}, {{1, 2, 7, 9}}, {{1, 1, 1, 1}}, {{2, 2, 1, 6}}, {{0, 2, 3, 3}}},
      [=](const Tensor& x) { return interpolate(x, height, width, options); },
      [=](const Array& x) { return resampled(x, height, width, options); });
  row.any_dtype = false;
  row.timed = {{64, 64, 16, 16}};
  row.accuracy = options.mode == Interpolation::nearest ? Accuracy::exact : Accuracy::sums;
  add_errors(row, {fails("three dims",
                         [=] {
                           interpolate(ones({1, 2, 5}), 4, 4, options);
                         }),
                   fails("empty result",
                         [=] {
                           interpolate(ones({1, 2, 5, 5}), 4, 0, options);
                         }),
                   fails("empty input",
                         [=] {
                           interpolate(ones({1, 2, 0, 5}), 4, 4, options);
                         }),
                   fails("corners with nearest", [] {
                     interpolate(ones({1, 2, 5, 5}), 4, 4, {.align_corners = true});
                   })});
  return row;
}

}  // namespace

std::vector<OpRow> interpolate_rows() {
  std::vector<OpRow> rows;
  for (const auto& [height, width] : {std::pair(8, 10), std::pair(3, 4), std::pair(1, 13)}) {
    rows.push_back(interpolate_row("nearest", height, width, {}));
    rows.push_back(interpolate_row("bilinear", height, width, {.mode = Interpolation::bilinear}));
    rows.push_back(interpolate_row("corners", height, width,
                                   {.mode = Interpolation::bilinear, .align_corners = true}));
  }
  return rows;
}

}  // namespace binade::op_table
