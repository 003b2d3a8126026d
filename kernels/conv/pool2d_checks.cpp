#include <binade/kernels/conv/pool2d_internal.h>

namespace binade::kernels {
namespace {

constexpr int64_t kLargestExtent = int64_t{1} << 31;

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
    const int64_t expected = pool2d_output_size(x.size(2 + i), g, i, op);
    check(y.size(2 + i) == expected, op, ": got output ", y.sizes, " for input ", x.sizes,
          ", expected size ", expected, " in dimension ", 2 + i);
  }
}

void check_average(const char* op, const Pool2dGeometry& g) {
  check(g.dilation[0] == 1 && g.dilation[1] == 1, op, ": got dilation ", g.dilation[0], ", ",
        g.dilation[1], ", expected 1");
}

void check_index(const char* op, const View& index, const View& y, const Pool2dGeometry& g) {
  const DType dtype = pool2d_index_dtype(g);
  check(index.dtype == dtype && index.sizes == y.sizes, op, ": got index ", index.dtype, " ",
        index.sizes, ", expected ", dtype, " ", y.sizes);
  check(g.kernel[0] * g.kernel[1] <= kLargestExtent, op, ": got kernel ", g.kernel[0], " x ",
        g.kernel[1], ", expected at most 2^31 elements where a gradient is wanted");
}

void check_adaptive(const char* op, const View& x, const View& y) {
  check_pair(op, x, y);
  for (int i = 2; i < 4; ++i) {
    check(y.size(i) >= 1 && y.size(i) <= kLargestExtent && x.size(i) >= 1 &&
              x.size(i) <= kLargestExtent,
          op, ": got input ", x.sizes, " and output ", y.sizes,
          ", expected heights and widths of at least 1");
  }
}

}  // namespace

int64_t pool2d_output_size(int64_t in, const Pool2dGeometry& g, int axis, const char* op) {
  const int64_t kernel = g.kernel[axis], stride = g.stride[axis], padding = g.padding[axis],
                dilation = g.dilation[axis];
  const bool ceil_mode = g.ceil_mode;
  for (const int64_t value : {kernel, stride, dilation}) {
    check(value >= 1 && value <= kLargestExtent, op, ": got kernel ", kernel, ", stride ", stride,
          ", dilation ", dilation, ", expected 1 to 2^31");
  }
  check(in >= 0 && in <= kLargestExtent, op, ": got input size ", in, ", expected 0 to 2^31");
  check(padding >= 0 && padding <= kernel / 2, op, ": got padding ", padding, " for kernel ",
        kernel, ", expected 0 to half the kernel");
  const int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
  const int64_t steps = room + (ceil_mode ? stride - 1 : 0);
  check(in >= 1 && steps >= 0, op, ": got input size ", in, " with padding ", padding,
        ", expected at least ", dilation * (kernel - 1) + 1 - (ceil_mode ? stride - 1 : 0),
        " with padding for kernel ", kernel, " with dilation ", dilation,
        ceil_mode ? " in ceil_mode" : "");
  int64_t out = steps / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + padding) {
    --out;
  }
  return out;
}

void check_arguments(const MaxPool2dForward& a) {
  check_geometry("max_pool2d", a.x, a.y, a.geometry);
  if (a.index) {
    check_index("max_pool2d", a.index, a.y, a.geometry);
  }
}

void check_arguments(const MaxPool2dBackward& a) {
  check_geometry("max_pool2d backward", a.dx, a.dy, a.geometry);
  check_index("max_pool2d backward", a.index, a.dy, a.geometry);
}

void check_arguments(const AvgPool2dForward& a) {
  check_geometry("avg_pool2d", a.x, a.y, a.geometry);
  check_average("avg_pool2d", a.geometry);
}

void check_arguments(const AvgPool2dBackward& a) {
  check_geometry("avg_pool2d backward", a.dx, a.dy, a.geometry);
  check_average("avg_pool2d backward", a.geometry);
}

void check_arguments(const AdaptiveAvgPool2dForward& a) {
  check_adaptive("adaptive_avg_pool2d", a.x, a.y);
}

void check_arguments(const AdaptiveAvgPool2dBackward& a) {
  check_adaptive("adaptive_avg_pool2d backward", a.dx, a.dy);
}

PoolWindows pool_windows(const View& x, const View& y, const Pool2dGeometry& g, int i) {
  return {.inputs = x.size(2 + i),
          .outputs = y.size(2 + i),
          .adaptive = false,
          .kernel = g.kernel[i],
          .stride = g.stride[i],
          .padding = g.padding[i],
          .dilation = g.dilation[i],
          .count_include_pad = g.count_include_pad};
}

PoolWindows adaptive_pool_windows(const View& x, const View& y, int i) {
  return {.inputs = x.size(2 + i), .outputs = y.size(2 + i), .adaptive = true};
}

}  // namespace binade::kernels
