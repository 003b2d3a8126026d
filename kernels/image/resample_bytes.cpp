// Weights in double, as Pillow computes them, and the order of the passes.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/image/resample_bytes.h>
#include <binade/kernels/image/resample_bytes_isa_internal.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace binade::kernels {
namespace {

constexpr int kParts = 2 * kResampleGroup;

double support_of(ResampleFilter filter) { return filter == ResampleFilter::bicubic ? 2 : 1; }

double weight_of(ResampleFilter filter, double x) {
  x = std::abs(x);
  if (filter == ResampleFilter::bilinear) {
    return x < 1 ? 1 - x : 0;
  }
  constexpr double kA = -0.5;  // of Keys' cubic
  if (x < 1) {
    return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  }
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

// The filter of an axis around its outputs.
struct AxisFilter {
  double begin, scale, stretch, support;
  int in;

  AxisFilter(const ResampleAxis& axis, ResampleFilter filter)
      : begin(axis.begin),
        scale(axis.length / axis.out),
        stretch(std::max(scale, 1.0)),
        support(support_of(filter) * stretch),
        in(axis.in) {}
  double center(int output) const { return begin + (output + 0.5) * scale; }
  // The range is not empty, because the center lies within the picture.
  ResampleRange inputs(int output) const {
    const double middle = center(output);
    return {std::max(static_cast<int>(middle - support + 0.5), 0),
            std::min(static_cast<int>(middle + support + 0.5), in)};
  }
};

int32_t fixed_point(double weight) {
  return static_cast<int32_t>(weight * (1 << kResampleBits) + (weight < 0 ? -0.5 : 0.5));
}

}  // namespace

bool ResampleAxis::is_copy() const { return length == out && begin == std::floor(begin); }

ResampleRange inputs_of(const ResampleAxis& axis, ResampleFilter filter) {
  if (axis.is_copy()) {
    const int begin = static_cast<int>(axis.begin) + axis.first;
    return {begin, begin + axis.count};
  }
  const AxisFilter taps(axis, filter);
  return {taps.inputs(axis.first).first, taps.inputs(axis.first + axis.count - 1).last};
}

void Resampler::weigh(const ResampleAxis& axis, ResampleFilter filter, Weights& out) {
  const AxisFilter taps(axis, filter);
  out.first.clear();
  out.groups.assign(1, 0);
  out.weights.clear();
  for (int i = axis.first; i < axis.first + axis.count; ++i) {
    const auto [first, last] = taps.inputs(i);
    const double offset = first - taps.center(i) + 0.5, shrink = 1 / taps.stretch;
    taps_.clear();
    double sum = 0;
    for (int k = 0; k < last - first; ++k) {
      taps_.push_back(weight_of(filter, (k + offset) * shrink));
      sum += taps_.back();
    }
    const auto count = std::ssize(taps_);
    const auto groups = ceil_div(count, int64_t{kResampleGroup});
    const size_t at = out.weights.size();
    out.weights.resize(at + static_cast<size_t>(groups * kParts));  // zeros
    for (int64_t k = 0; k < count; ++k) {
      const int32_t weight = fixed_point(sum == 0 ? 0 : taps_[static_cast<size_t>(k)] / sum);
      int16_t* group = &out.weights[at + static_cast<size_t>(k / kResampleGroup * kParts)];
      group[k % kResampleGroup] = static_cast<int16_t>(weight >> kResampleLowBits);
      group[k % kResampleGroup + kResampleGroup] =
          static_cast<int16_t>(weight & ((1 << kResampleLowBits) - 1));
    }
    out.first.push_back(first);
    out.groups.push_back(out.groups.back() + static_cast<int32_t>(groups));
  }
}

// Fills middle_ with the given rows, resampled. The loops read bytes after the last pixel of a row:
// the last rows of x are read from a copy that has them.
void Resampler::resample_columns(const ResampleBytes& a, ResampleRange rows) {
  constexpr int64_t kLine = 64;
  const ptrdiff_t stride =
      kLine * ceil_div(int64_t{a.columns.count} * a.channels + kResampleSlack, kLine);
  const int count = rows.last - rows.first;
  middle_.resize(static_cast<size_t>(stride) * static_cast<size_t>(count));
  const int at_end = static_cast<int>(
      std::min<ptrdiff_t>(count, 1 + kResampleSlack / std::max<ptrdiff_t>(a.x_stride, 1)));
  ResampleColumns columns{.x = a.x + rows.first * a.x_stride,
                          .x_stride = a.x_stride,
                          .rows = count - at_end,
                          .channels = a.channels,
                          .first = columns_.first.data(),
                          .groups = columns_.groups.data(),
                          .weight = columns_.weights.data(),
                          .count = a.columns.count,
                          .y = middle_.data(),
                          .y_stride = stride};
  if (columns.rows > 0) {
    resample_columns_best(columns);
  }
  // A row needs to hold only the inputs of the columns.
  const ResampleRange inputs = inputs_of(a.columns, a.filter);
  const ptrdiff_t begin = ptrdiff_t{inputs.first} * a.channels,
                  end = ptrdiff_t{inputs.last} * a.channels;
  const auto padded = static_cast<size_t>(end) + kResampleSlack;
  tail_.resize(padded * static_cast<size_t>(at_end));
  for (int r = 0; r < at_end; ++r) {
    const uint8_t* row = a.x + (rows.last - at_end + r) * a.x_stride;
    std::copy(row + begin, row + end, tail_.begin() + r * static_cast<ptrdiff_t>(padded) + begin);
  }
  columns.y += columns.rows * stride;
  columns.x = tail_.data();
  columns.x_stride = static_cast<ptrdiff_t>(padded);
  columns.rows = at_end;
  resample_columns_best(columns);
}

// Row `first_row` of the picture is the first one at x.
void Resampler::resample_rows(const ResampleBytes& a, const uint8_t* x, ptrdiff_t stride,
                              int first_row) {
  const int64_t bytes = int64_t{a.columns.count} * a.channels;
  if (a.rows.is_copy()) {
    for (int i = 0; i < a.rows.count; ++i) {
      const int row = static_cast<int>(a.rows.begin) + a.rows.first + i - first_row;
      std::memcpy(a.y + i * bytes, x + row * stride, static_cast<size_t>(bytes));
    }
    return;
  }
  weigh(a.rows, a.filter, rows_);
  const int last_row = inputs_of(a.rows, a.filter).last - 1;
  for (int i = 0; i < a.rows.count; ++i) {
    const auto at = static_cast<size_t>(i);
    const int32_t begin = rows_.groups[at], end = rows_.groups[at + 1];
    row_of_tap_.clear();
    for (int32_t t = 0; t < (end - begin) * kResampleGroup; ++t) {
      row_of_tap_.push_back(x + (std::min(rows_.first[at] + t, last_row) - first_row) * stride);
    }
    resample_row_best(ResampleRow{.row = row_of_tap_.data(),
                                  .weight = rows_.weights.data() + int64_t{begin} * kParts,
                                  .groups = end - begin,
                                  .bytes = bytes,
                                  .y = a.y + i * bytes});
  }
}

void Resampler::operator()(const ResampleBytes& a) {
  if (a.columns.is_copy()) {
    const int64_t skipped = (static_cast<int64_t>(a.columns.begin) + a.columns.first) * a.channels;
    resample_rows(a, a.x + skipped, a.x_stride, 0);
    return;
  }
  const ResampleRange rows = inputs_of(a.rows, a.filter);
  weigh(a.columns, a.filter, columns_);
  resample_columns(a, rows);
  const ptrdiff_t stride = static_cast<ptrdiff_t>(middle_.size()) / (rows.last - rows.first);
  resample_rows(a, middle_.data(), stride, rows.first);
  release_if_large();
}

// Frees large buffers, so that one huge picture does not hold memory for ever.
void Resampler::release_if_large() {
  constexpr size_t kKept = size_t{64} << 20;
  if (middle_.capacity() > kKept) {
    middle_ = {};
  }
  if (columns_.weights.capacity() + rows_.weights.capacity() > kKept / sizeof(int16_t)) {
    columns_ = rows_ = {};
  }
}

}  // namespace binade::kernels
