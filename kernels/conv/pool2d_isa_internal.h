// Row kernels of pooling: one row of output pixels (forward) or of input pixels (backward), each
// pixel `channels` adjacent elements. Pixel strides count elements.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/conv/pool2d_windows_internal.h>

namespace binade::kernels {

// One image as rows and columns of pixels.
struct PixelPlane {
  void* data;
  int64_t row_stride, col_stride;  // elements
  int64_t rows, cols;
};

// Kernel, stride, padding and dilation of one dimension.
struct PoolAxis {
  int64_t kernel, stride, padding, dilation;
};

struct MaxPoolRow {
  DType dtype;
  PixelPlane x, y;
  PixelPlane index;   // data may be null
  DType index_dtype;  // u8 or i32
  PoolAxis height, width;
  int64_t channels;
  int64_t row;  // of y
};

// A window that covers an input pixel: the addresses of its gradient and its choice, and the
// pixel's position in the window.
struct PoolCovering {
  const void* dy;
  const void* index;
  int64_t place;
};

struct MaxPoolRowBackward {
  DType dtype;
  PixelPlane dy, index, dx;
  DType index_dtype;
  PoolCovering* coverings;  // memory for all windows that may cover a pixel
  PoolAxis height, width;
  int64_t channels;
  int64_t row;  // of dx
};

struct AvgPoolRow {
  DType dtype;
  PixelPlane x, y;
  PoolSpan rows;         // of the windows of this row of y
  const PoolSpan* cols;  // one per column of y
  int64_t channels;
  int64_t row;  // of y
};

struct AvgPoolRowBackward {
  DType dtype;
  PixelPlane dy, dx;
  const PoolSpan* row_windows;  // one per row of dy
  const PoolSpan* col_windows;  // one per column of dy
  PoolSpan rows;                // rows of dy whose windows hold this row of dx
  const PoolSpan* cols;         // the same for every column of dx
  int64_t channels;
  int64_t row;  // of dx
};

BINADE_ISA_KERNEL(max_pool_row, const MaxPoolRow& a)
BINADE_ISA_KERNEL(max_pool_row_backward, const MaxPoolRowBackward& a)
BINADE_ISA_KERNEL(avg_pool_row, const AvgPoolRow& a)
BINADE_ISA_KERNEL(avg_pool_row_backward, const AvgPoolRowBackward& a)

}  // namespace binade::kernels
