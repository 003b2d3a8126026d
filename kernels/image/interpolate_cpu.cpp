// interpolate on the CPU. Forward and backward are the same loop: every row of the output is a
// weighted sum of rows of the input, and every element of it a weighted sum over columns. The
// backward uses the forward's weights, looked up by source.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/image/interpolate.h>
#include <binade/kernels/image/interpolate_axis_internal.h>
#include <binade/kernels/image/interpolate_isa_internal.h>

#include <vector>

namespace binade::kernels::cpu {
namespace {

// The terms of every element along one axis: element j has terms first[j] to first[j + 1] - 1.
struct Terms {
  std::vector<int64_t> first{0}, at;
  std::vector<double> weight;

  void add(int64_t place, double w) {
    if (w != 0) {
      at.push_back(place);
      weight.push_back(w);
    }
  }
  void end_element() { first.push_back(static_cast<int64_t>(at.size())); }
};

Terms forward_terms(const InterpolationAxis& axis) {
  Terms terms;
  for (int64_t i = 0; i < axis.result; ++i) {
    const auto n = axis.at<double>(i);
    terms.add(n.low, n.low == n.high ? 1 : 1 - n.weight);
    terms.add(n.high, n.low == n.high ? 0 : n.weight);
    terms.end_element();
  }
  return terms;
}

Terms backward_terms(const InterpolationAxis& axis) {
  Terms terms;
  for (int64_t h = 0; h < axis.source; ++h) {
    for (int64_t i = axis.first(h); i < axis.end(h); ++i) {
      terms.add(i, axis.part<double>(i, h));
    }
    terms.end_element();
  }
  return terms;
}

// Computes every output row of every plane (n, c), or of image n with all channels if these are
// adjacent.
void resample(const View& in, const View& out, const Terms& vertical, const Terms& horizontal) {
  if (out.numel == 0) {
    return;
  }
  const auto width = static_cast<int64_t>(size_of(in.dtype));
  const int64_t channels = out.size(1), height = out.size(2);
  const bool pixels = channels > 1 && in.strides[1] == 1 && out.strides[1] == 1;
  const int64_t planes = pixels ? 1 : channels,
                per_row = out.numel / (out.size(0) * planes * height);
  parallel_for(
      out.size(0) * planes * height, kSerialElements / (4 * per_row) + 1,
      [&](int64_t begin, int64_t end) {
        std::vector<const std::byte*> rows;
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t h = unit % height, c = unit / height % planes;
          const int64_t n = unit / (height * planes);
          const auto first = static_cast<size_t>(vertical.first[static_cast<size_t>(h)]);
          const auto last = static_cast<size_t>(vertical.first[static_cast<size_t>(h) + 1]);
          rows.clear();
          for (size_t t = first; t < last; ++t) {
            rows.push_back(
                in.data +
                (n * in.strides[0] + c * in.strides[1] + vertical.at[t] * in.strides[2]) * width);
          }
          const WeightedRow row{
              .dtype = in.dtype,
              .count = out.size(3),
              .first = horizontal.first.data(),
              .at = horizontal.at.data(),
              .weight = horizontal.weight.data(),
              .row = rows.data(),
              .row_weight = vertical.weight.data() + first,
              .rows = static_cast<int64_t>(rows.size()),
              .stride = in.strides[3],
              .y =
                  out.data + (n * out.strides[0] + c * out.strides[1] + h * out.strides[2]) * width,
              .y_stride = out.strides[3]};
          pixels ? weighted_pixels_best(WeightedPixels{row, channels}) : weighted_row_best(row);
        }
      });
}

}  // namespace

void interpolate_forward(const InterpolateForward& a) {
  check_arguments(a);
  const InterpolationAxis vertical(a.x.size(2), a.y.size(2), a.mode, a.align_corners);
  const InterpolationAxis horizontal(a.x.size(3), a.y.size(3), a.mode, a.align_corners);
  resample(a.x, a.y, forward_terms(vertical), forward_terms(horizontal));
}

void interpolate_backward(const InterpolateBackward& a) {
  check_arguments(a);
  const InterpolationAxis vertical(a.dx.size(2), a.dy.size(2), a.mode, a.align_corners);
  const InterpolationAxis horizontal(a.dx.size(3), a.dy.size(3), a.mode, a.align_corners);
  resample(a.dy, a.dx, backward_terms(vertical), backward_terms(horizontal));
}

}  // namespace binade::kernels::cpu
