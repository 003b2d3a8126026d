// Pooling on the CPU: rows of pixels are independent and split over threads; tensors that are not
// channels-last are packed first. Average and adaptive pooling share one kernel, driven by tables
// of windows per row and column.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/packed_rows.h>
#include <binade/kernels/pool2d.h>
#include <binade/kernels/pool2d_isa.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 8192, kLargestExtent = int64_t{1} << 31;

void check_image(const char* op, const char* name, const View& view) {
  check(is_floating(view.dtype) && view.dim() == 4, op, ": got ", name, " ", view.dtype, " ",
        view.sizes, ", expected a floating tensor [N, C, H, W]");
}

// x (or dx) and y (or dy) agree in all but height and width.
void check_pair(const char* op, const View& x, const View& y) {
  check_image(op, "input", x);
  check_image(op, "output", y);
  check(x.dtype == y.dtype && x.size(0) == y.size(0) && x.size(1) == y.size(1), op, ": got output ",
        y.dtype, " ", y.sizes, " for input ", x.dtype, " ", x.sizes,
        ", expected the same dtype, batch and channels");
}

void check_geometry(const char* op, const View& x, const View& y, const Pool2dGeometry& g) {
  check_pair(op, x, y);
  for (int i = 0; i < 2; ++i) {
    const int64_t expected = pool2d_output_size(x.size(2 + i), g.kernel[i], g.stride[i],
                                                g.padding[i], g.dilation[i], g.ceil_mode);
    check(y.size(2 + i) == expected, op, ": got output ", y.sizes, " for input ", x.sizes,
          ", expected size ", expected, " in dimension ", 2 + i);
  }
}

void check_average(const char* op, const Pool2dGeometry& g) {
  check(g.dilation[0] == 1 && g.dilation[1] == 1, op, ": got dilation ", g.dilation[0], ", ",
        g.dilation[1], ", expected 1");
}

void check_index(const char* op, const View& index, const View& y, const Pool2dGeometry& g) {
  check(index.dtype == DType::u8 && index.sizes == y.sizes, op, ": got index ", index.dtype, " ",
        index.sizes, ", expected u8 ", y.sizes);
  check(g.kernel[0] * g.kernel[1] <= 255, op, ": got kernel ", g.kernel[0], " x ", g.kernel[1],
        ", expected at most 255 elements where an index is wanted");
}

PoolAxis axis(const Pool2dGeometry& g, int i) {
  return {g.kernel[i], g.stride[i], g.padding[i], g.dilation[i]};
}

// Image n of a packed tensor [N, C, H, W] of which `view` has the sizes and dtype.
PixelPlane image(const PackedRows& packed, const View& view, int64_t n) {
  const int64_t rows = view.size(2), cols = view.size(3);
  return {.data = view ? packed.row(n * rows * cols) : nullptr,
          .row_stride = cols * packed.stride(),
          .col_stride = packed.stride(),
          .rows = rows,
          .cols = cols};
}

// Calls body(n, row) for every row of pixels of `view`; `work` is what one pixel element costs.
template <class F>
void for_rows(const View& view, int64_t work, F&& body) {
  const int64_t rows = view.size(2),
                cost = view.size(3) * view.size(1) * std::max<int64_t>(1, work);
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
  // window(o) gives the span of output o.
  template <class F>
  WindowTable(int64_t inputs, int64_t outputs, F&& window)
      : inputs_(inputs),
        outputs_(outputs),
        workspace_(static_cast<size_t>(inputs + outputs) * sizeof(PoolSpan)) {
    for (int64_t o = 0; o < outputs; ++o) {
      windows()[o] = window(o);
    }
    find_cover();
  }

  PoolSpan* windows() const { return workspace_.as<PoolSpan>(); }
  PoolSpan* cover() const { return windows() + outputs_; }

 private:
  // Windows begin and end in order, so those that hold a position are neighbours.
  void find_cover() {
    int64_t first = 0;
    for (int64_t i = 0; i < inputs_; ++i) {
      while (first < outputs_ && windows()[first].end <= i) {
        ++first;
      }
      int64_t last = first;
      while (last < outputs_ && windows()[last].begin <= i) {
        ++last;
      }
      cover()[i] = {first, last, last - first};
    }
  }

  int64_t inputs_, outputs_;
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
  y.finish();
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
  dx.finish();
}

// Tables for x of [.., H, W] and y of [.., P, Q].
struct Tables {
  WindowTable height, width;
};
WindowTable average_windows(int64_t inputs, int64_t outputs, const Pool2dGeometry& g, int i) {
  return WindowTable(inputs, outputs, [&](int64_t o) -> PoolSpan {
    const int64_t start = o * g.stride[i] - g.padding[i];
    const int64_t stop = std::min(start + g.kernel[i], inputs + g.padding[i]);
    const int64_t begin = std::max<int64_t>(start, 0), end = std::min(stop, inputs);
    const int64_t count = g.count_include_pad ? stop - start : end - begin;
    return {begin, end, std::max<int64_t>(count, 1)};
  });
}

Tables average_tables(const View& x, const View& y, const Pool2dGeometry& g) {
  return {average_windows(x.size(2), y.size(2), g, 0), average_windows(x.size(3), y.size(3), g, 1)};
}

WindowTable adaptive_windows(int64_t inputs, int64_t outputs) {
  return WindowTable(inputs, outputs, [&](int64_t o) -> PoolSpan {
    const int64_t begin = o * inputs / outputs, end = ((o + 1) * inputs + outputs - 1) / outputs;
    return {begin, end, end - begin};
  });
}

Tables adaptive_tables(const char* op, const View& x, const View& y) {
  check_pair(op, x, y);
  for (int i = 2; i < 4; ++i) {
    check(y.size(i) >= 1 && y.size(i) <= kLargestExtent && x.size(i) >= 1 &&
              x.size(i) <= kLargestExtent,
          op, ": got input ", x.sizes, " and output ", y.sizes,
          ", expected heights and widths of at least 1");
  }
  return {adaptive_windows(x.size(2), y.size(2)), adaptive_windows(x.size(3), y.size(3))};
}

}  // namespace

int64_t pool2d_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                           int64_t dilation, bool ceil_mode) {
  for (const int64_t value : {kernel, stride, dilation}) {
    check(value >= 1 && value <= kLargestExtent, "pool2d: got kernel ", kernel, ", stride ", stride,
          ", dilation ", dilation, ", expected 1 or more");
  }
  check(in >= 0 && in <= kLargestExtent, "pool2d: got input size ", in, ", expected 0 to 2^31");
  check(padding >= 0 && padding <= kernel / 2, "pool2d: got padding ", padding, " for kernel ",
        kernel, ", expected 0 to half the kernel");
  const int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
  check(in >= 1 && room >= 0, "pool2d: got input size ", in, " with padding ", padding,
        ", smaller than kernel ", kernel, " with dilation ", dilation);
  int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + padding) {
    --out;
  }
  return out;
}

void cpu::max_pool2d_forward(const MaxPool2dForward& a) {
  const char* op = "max_pool2d";
  check_geometry(op, a.x, a.y, a.geometry);
  if (a.index) {
    check_index(op, a.index, a.y, a.geometry);
  }
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
                                 .height = axis(a.geometry, 0),
                                 .width = axis(a.geometry, 1),
                                 .channels = a.x.size(1),
                                 .row = row});
  });
  y.finish();
  index.finish();
}

void cpu::max_pool2d_backward(const MaxPool2dBackward& a) {
  const char* op = "max_pool2d backward";
  check_geometry(op, a.dx, a.dy, a.geometry);
  check_index(op, a.index, a.dy, a.geometry);
  if (a.dx.numel == 0) {
    return;
  }
  const PackedRows dy(a.dy, 1, Access::read), index(a.index, 1, Access::read);
  const PackedRows dx(a.dx, 1, Access::write);
  for_rows(a.dx, 1, [&](int64_t n, int64_t row) {
    max_pool_row_backward_best(MaxPoolRowBackward{.dtype = a.dx.dtype,
                                                  .dy = image(dy, a.dy, n),
                                                  .index = image(index, a.index, n),
                                                  .dx = image(dx, a.dx, n),
                                                  .height = axis(a.geometry, 0),
                                                  .width = axis(a.geometry, 1),
                                                  .channels = a.dx.size(1),
                                                  .row = row});
  });
  dx.finish();
}

void cpu::avg_pool2d_forward(const AvgPool2dForward& a) {
  check_geometry("avg_pool2d", a.x, a.y, a.geometry);
  check_average("avg_pool2d", a.geometry);
  if (a.y.numel > 0) {
    const Tables tables = average_tables(a.x, a.y, a.geometry);
    average_forward(a.x, a.y, tables.height, tables.width);
  }
}

void cpu::avg_pool2d_backward(const AvgPool2dBackward& a) {
  check_geometry("avg_pool2d backward", a.dx, a.dy, a.geometry);
  check_average("avg_pool2d backward", a.geometry);
  if (a.dx.numel > 0) {
    const Tables tables = average_tables(a.dx, a.dy, a.geometry);
    average_backward(a.dy, a.dx, tables.height, tables.width);
  }
}

void cpu::adaptive_avg_pool2d_forward(const AdaptiveAvgPool2dForward& a) {
  const Tables tables = adaptive_tables("adaptive_avg_pool2d", a.x, a.y);
  if (a.y.numel > 0) {
    average_forward(a.x, a.y, tables.height, tables.width);
  }
}

void cpu::adaptive_avg_pool2d_backward(const AdaptiveAvgPool2dBackward& a) {
  const Tables tables = adaptive_tables("adaptive_avg_pool2d backward", a.dx, a.dy);
  if (a.dx.numel > 0) {
    average_backward(a.dy, a.dx, tables.height, tables.width);
  }
}

}  // namespace binade::kernels
