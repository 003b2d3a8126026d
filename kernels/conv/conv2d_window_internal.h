// Windows of an image, copied to padded channels-last rows in dtype `to` (the compute dtype or the
// image's own), for the CPU passes of conv2d. Internal to kernels/.
#pragma once
#include <binade/kernels/conv/conv2d_internal.h>

namespace binade::kernels {

// Rows [row0, row1) and columns [column0, column1) of an image; pixels outside the image are zero.
struct Window {
  int64_t row0, row1, column0, column1;
  int64_t rows() const { return row1 - row0; }
  int64_t columns() const { return column1 - column0; }
};

// A window in memory as [images][rows][columns][channels]; strides in elements.
struct WindowData {
  const std::byte* data = nullptr;
  int64_t image_stride = 0, row_stride = 0, column_stride = 0;
};

// True if tiles may read the window straight from x [N, C, H, W].
bool window_in_place(const View& x, DType to, const Window& window);

// Copies the window of images [first, first + count) into `buffer`, without gaps.
WindowData copy_window(const View& x, DType to, int64_t first, int64_t count, const Window& window,
                       std::byte* buffer);

// The same, but in place if window_in_place() allows it.
WindowData read_window(const View& x, DType to, int64_t first, int64_t count, const Window& window,
                       std::byte* buffer);

}  // namespace binade::kernels
