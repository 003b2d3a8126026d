#include <binade/kernels/conv/conv2d_window_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>

#include <algorithm>
#include <cstring>

namespace binade::kernels {
namespace {

int64_t stride_of(const View& view, int dim) { return view.size(dim) == 1 ? 1 : view.strides[dim]; }

}  // namespace

bool window_in_place(const View& x, DType to, const Window& window) {
  return x.numel > 0 && to == x.dtype && stride_of(x, 1) == 1 && window.row0 >= 0 &&
         window.row1 <= x.size(2) && window.column0 >= 0 && window.column1 <= x.size(3);
}

WindowData read_window(const View& x, DType to, int64_t first, int64_t count, const Window& window,
                       std::byte* buffer) {
  if (!window_in_place(x, to, window)) {
    return copy_window(x, to, first, count, window, buffer);
  }
  const int64_t at =
      first * x.strides[0] + window.row0 * x.strides[2] + window.column0 * x.strides[3];
  return {x.data + at * static_cast<int64_t>(size_of(x.dtype)), x.strides[0], x.strides[2],
          x.strides[3]};
}

WindowData copy_window(const View& x, DType to, int64_t first, int64_t count, const Window& window,
                       std::byte* buffer) {
  const int64_t size = static_cast<int64_t>(size_of(x.dtype));
  const int64_t channels = x.size(1);
  const Dims& strides = x.strides;
  const int64_t to_size = static_cast<int64_t>(size_of(to));
  const WindowData result{buffer, window.rows() * window.columns() * channels,
                          window.columns() * channels, channels};
  // The part of the window that lies in the image; an empty part may be anywhere in the window.
  const int64_t row0 = std::min(std::max<int64_t>(window.row0, 0), window.row1);
  const int64_t row1 = std::max(std::min(window.row1, x.size(2)), row0);
  const int64_t column0 = std::min(std::max<int64_t>(window.column0, 0), window.column1);
  const int64_t column1 = std::max(std::min(window.column1, x.size(3)), column0);
  auto zero = [&](int64_t image, int64_t row, int64_t column, int64_t pixels) {
    const int64_t at = image * result.image_stride + row * result.row_stride + column * channels;
    if (pixels * channels > 0) {
      std::memset(buffer + at * to_size, 0, static_cast<size_t>(pixels * channels * to_size));
    }
  };
  StridedCopy copy{.from = x.dtype,
                   .to = to,
                   .source_strides = {strides[2], strides[3], strides[1]},
                   .target_strides = {result.row_stride, channels, 1},
                   .sizes = {row1 - row0, column1 - column0, channels}};
  if (x.strides[3] == channels && stride_of(x, 1) == 1) {  // pixels without gaps: one run per row
    copy.source_strides[2] = 1;
    copy.sizes[2] *= copy.sizes[1];
    copy.sizes[1] = 1;
  } else if (channels == 1) {
    copy.source_strides[2] = strides[3];
    copy.sizes[2] = copy.sizes[1];
    copy.sizes[1] = 1;
  }
  for (int64_t image = 0; image < count; ++image) {
    zero(image, 0, 0, (row0 - window.row0) * window.columns());
    zero(image, row1 - window.row0, 0, (window.row1 - row1) * window.columns());
    for (int64_t row = row0 - window.row0; row < row1 - window.row0; ++row) {
      zero(image, row, 0, column0 - window.column0);
      zero(image, row, column1 - window.column0, window.column1 - column1);
    }
    if (row0 == row1 || column0 == column1 || channels == 0) {
      continue;
    }
    copy.source =
        x.data + ((first + image) * strides[0] + row0 * strides[2] + column0 * strides[3]) * size;
    copy.target = buffer + (image * result.image_stride + (row0 - window.row0) * result.row_stride +
                            (column0 - window.column0) * channels) *
                               to_size;
    copy_strided_best(copy);
  }
  return result;
}

}  // namespace binade::kernels
