// Pooling on the CPU: rows of pixels are independent and split over threads; tensors that are not
// channels-last are packed first. Average and adaptive pooling share one kernel, driven by tables
// of windows per row and column.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/conv/pool2d_internal.h>
#include <binade/kernels/conv/pool2d_isa_internal.h>
#include <binade/kernels/copy/packed_rows_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 8192;

PoolAxis axis(const Pool2dGeometry& g, int i) {
  return {g.kernel[i], g.stride[i], g.padding[i], g.dilation[i]};
}

// Image n of a packed tensor [N, C, H, W]; `view` has its sizes and dtype.
PixelPlane image(const PackedRows& packed, const View& view, int64_t n) {
  const int64_t rows = view.size(2), cols = view.size(3);
  return {.data = view ? packed.row(n * rows * cols) : nullptr,
          .row_stride = cols * packed.stride(),
          .col_stride = packed.stride(),
          .rows = rows,
          .cols = cols};
}

// Calls body(n, row) for every row of pixels of `view`; `work` is the cost of one element.
template <class F>
void for_rows(const View& view, int64_t work, F&& body) {
  const int64_t rows = view.size(2),
                cost = view.size(3) * view.size(1) * std::clamp<int64_t>(work, 1, kElementsPerTask);
  parallel_for(view.size(0) * rows, std::max<int64_t>(1, kElementsPerTask / cost),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   body(i / rows, i % rows);
                 }
               });
}

// The windows of one dimension and, for the backward, which windows hold each input position.
class WindowTable {
 public:
  explicit WindowTable(const PoolWindows& all)
      : outputs_(all.outputs),
        workspace_(static_cast<size_t>(all.inputs + all.outputs) * sizeof(PoolSpan)) {
    for (int64_t o = 0; o < all.outputs; ++o) {
      windows()[o] = all.window(o);
    }
    for (int64_t i = 0; i < all.inputs; ++i) {
      cover()[i] = all.cover(i);
    }
  }

  PoolSpan* windows() const { return workspace_.as<PoolSpan>(); }
  PoolSpan* cover() const { return windows() + outputs_; }

 private:
  int64_t outputs_;
  Workspace workspace_;
};

void average_forward(const View& x_view, const View& y_view, const WindowTable& height,
                     const WindowTable& width) {
  const PackedRows x(x_view, 1, Access::read), y(y_view, 1, Access::write);
  const PoolSpan first = height.windows()[0], side = width.windows()[0];
  for_rows(y_view, first.count * side.count, [&](int64_t n, int64_t row) {
    avg_pool_row_best(AvgPoolRow{.dtype = x_view.dtype,
                                 .x = image(x, x_view, n),
                                 .y = image(y, y_view, n),
                                 .rows = height.windows()[row],
                                 .cols = width.windows(),
                                 .channels = x_view.size(1),
                                 .row = row});
  });
  y.unpack();
}

void average_backward(const View& dy_view, const View& dx_view, const WindowTable& height,
                      const WindowTable& width) {
  const PackedRows dy(dy_view, 1, Access::read), dx(dx_view, 1, Access::write);
  for_rows(dx_view, 1, [&](int64_t n, int64_t row) {
    avg_pool_row_backward_best(AvgPoolRowBackward{.dtype = dx_view.dtype,
                                                  .dy = image(dy, dy_view, n),
                                                  .dx = image(dx, dx_view, n),
                                                  .row_windows = height.windows(),
                                                  .col_windows = width.windows(),
                                                  .rows = height.cover()[row],
                                                  .cols = width.cover(),
                                                  .channels = dx_view.size(1),
                                                  .row = row});
  });
  dx.unpack();
}

// Tables for x of [.., H, W] and y of [.., P, Q].
struct Tables {
  WindowTable height, width;
};
Tables average_tables(const View& x, const View& y, const Pool2dGeometry& g) {
  return {WindowTable(pool_windows(x, y, g, 0)), WindowTable(pool_windows(x, y, g, 1))};
}

Tables adaptive_tables(const View& x, const View& y) {
  return {WindowTable(adaptive_pool_windows(x, y, 0)), WindowTable(adaptive_pool_windows(x, y, 1))};
}

}  // namespace

void cpu::max_pool2d_forward(const MaxPool2dForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const PackedRows x(a.x, 1, Access::read), y(a.y, 1, Access::write);
  const PackedRows index(a.index, 1, Access::write);
  for_rows(a.y, a.geometry.kernel[0] * a.geometry.kernel[1], [&](int64_t n, int64_t row) {
    max_pool_row_best(MaxPoolRow{.dtype = a.x.dtype,
                                 .x = image(x, a.x, n),
                                 .y = image(y, a.y, n),
                                 .index = a.index ? image(index, a.index, n) : PixelPlane{},
                                 .index_dtype = pool2d_index_dtype(a.geometry),
                                 .height = axis(a.geometry, 0),
                                 .width = axis(a.geometry, 1),
                                 .channels = a.x.size(1),
                                 .row = row});
  });
  y.unpack();
  index.unpack();
}

void cpu::max_pool2d_backward(const MaxPool2dBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  const PackedRows dy(a.dy, 1, Access::read), index(a.index, 1, Access::read);
  const PackedRows dx(a.dx, 1, Access::write);
  constexpr int64_t kFew = 64;
  const int64_t most =
      std::min(a.geometry.kernel[0], a.dy.size(2)) * std::min(a.geometry.kernel[1], a.dy.size(3));
  for_rows(a.dx, 1, [&](int64_t n, int64_t row) {
    PoolCovering few[kFew];
    const Workspace many(most > kFew ? static_cast<size_t>(most) * sizeof(PoolCovering) : 0);
    max_pool_row_backward_best(
        MaxPoolRowBackward{.dtype = a.dx.dtype,
                           .dy = image(dy, a.dy, n),
                           .index = image(index, a.index, n),
                           .dx = image(dx, a.dx, n),
                           .index_dtype = pool2d_index_dtype(a.geometry),
                           .coverings = most > kFew ? many.as<PoolCovering>() : few,
                           .height = axis(a.geometry, 0),
                           .width = axis(a.geometry, 1),
                           .channels = a.dx.size(1),
                           .row = row});
  });
  dx.unpack();
}

void cpu::avg_pool2d_forward(const AvgPool2dForward& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    const Tables tables = average_tables(a.x, a.y, a.geometry);
    average_forward(a.x, a.y, tables.height, tables.width);
  }
}

void cpu::avg_pool2d_backward(const AvgPool2dBackward& a) {
  check_arguments(a);
  if (a.dx.numel > 0) {
    const Tables tables = average_tables(a.dx, a.dy, a.geometry);
    average_backward(a.dy, a.dx, tables.height, tables.width);
  }
}

void cpu::adaptive_avg_pool2d_forward(const AdaptiveAvgPool2dForward& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    const Tables tables = adaptive_tables(a.x, a.y);
    average_forward(a.x, a.y, tables.height, tables.width);
  }
}

void cpu::adaptive_avg_pool2d_backward(const AdaptiveAvgPool2dBackward& a) {
  check_arguments(a);
  if (a.dx.numel > 0) {
    const Tables tables = adaptive_tables(a.dx, a.dy);
    average_backward(a.dy, a.dx, tables.height, tables.width);
  }
}

}  // namespace binade::kernels
