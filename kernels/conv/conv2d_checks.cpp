#include <binade/kernels/conv/conv2d_internal.h>

namespace binade::kernels {
namespace {

int64_t output_size(const char* op, int64_t size, int64_t kernel, const Conv2dGeometry& g,
                    int axis) {
  constexpr int64_t kLimit = int64_t{1} << 31;
  const int64_t stride = g.stride[axis], padding = g.padding[axis], dilation = g.dilation[axis];
  check(stride >= 1 && stride < kLimit && dilation >= 1 && dilation < kLimit && padding >= 0 &&
            padding < kLimit,
        op, ": got stride ", stride, ", padding ", padding, ", dilation ", dilation,
        ", expected stride >= 1, padding >= 0, dilation >= 1 (all below 2^31)");
  check(kernel >= 1 && kernel < kLimit && size < kLimit, op, ": got an image side of ", size,
        " and a kernel side of ", kernel, ", expected 1 <= kernel and both below 2^31");
  const int64_t extent = dilation * (kernel - 1) + 1;
  check(size + 2 * padding >= extent, op, ": got a padded image side of ", size + 2 * padding,
        ", smaller than the dilated kernel side ", extent, "; use more padding or a larger image");
  return (size + 2 * padding - extent) / stride + 1;
}

Conv2dSizes conv2d_sizes(const char* op, const View& x, const View& w, const View& y,
                         const Conv2dGeometry& g) {
  check(is_floating(x.dtype), op, ": got dtype ", x.dtype, ", expected f64, f32, f16 or bf16");
  check(x.dtype == w.dtype && x.dtype == y.dtype, op, ": got dtypes input ", x.dtype, ", weight ",
        w.dtype, " and output ", y.dtype, ", expected one dtype for all; cast first");
  check(x.dim() == 4 && w.dim() == 4 && y.dim() == 4, op, ": got shapes input ", x.sizes,
        ", weight ", w.sizes, " and output ", y.sizes,
        ", expected [N, C, H, W], [O, C/groups, R, S], [N, O, P, Q]");
  check(g.groups >= 1 && x.size(1) % g.groups == 0 && w.size(0) % g.groups == 0 &&
            w.size(1) == x.size(1) / g.groups,
        op, ": got ", g.groups, " groups, input ", x.sizes, " and weight ", w.sizes,
        ", expected C and O to be multiples of groups and weight [O, C/groups, R, S]");
  const Dims want{x.size(0), w.size(0), output_size(op, x.size(2), w.size(2), g, 0),
                  output_size(op, x.size(3), w.size(3), g, 1)};
  check(y.sizes == want, op, ": got output ", y.sizes, ", expected ", want, " for input ", x.sizes,
        ", weight ", w.sizes, " and this stride, padding and dilation");
  return {x.size(0),
          x.size(1),
          x.size(2),
          x.size(3),
          w.size(0),
          w.size(2),
          w.size(3),
          want[2],
          want[3],
          g.groups,
          x.size(1) / g.groups,
          w.size(0) / g.groups};
}

void check_bias(const char* op, const View& bias, const View& target) {
  check(!bias || (bias.dtype == target.dtype && bias.sizes == Dims{target.size(1)}), op,
        ": got bias ", bias.dtype, " ", bias.sizes, ", expected ", target.dtype, " [",
        target.size(1), "]");
}

void check_epilogue(const Conv2dForward& a) {
  const auto& [bias, activation, accumulate, scale, residual, factor, slope] = a.epilogue;
  check(activation == Activation::none || activation == Activation::relu,
        "conv2d_forward: got another activation, expected none or relu; apply it as an op");
  check(!accumulate && !factor && !slope,
        "conv2d_forward: got an epilogue with accumulate, factor or slope, which gemm has, "
        "expected bias, activation, scale or residual");
  check_bias("conv2d_forward", bias, a.y);
  if (!scale && !residual) {
    return;
  }
  check(a.y.device.is_cpu() && a.y.dtype == DType::f32 &&
            (a.y.strides[1] == 1 || a.y.size(1) == 1) &&
            (!scale || (scale.dtype == DType::f32 && scale.sizes == Dims{a.y.size(1)})) &&
            (!residual || (residual.dtype == DType::f32 && residual.sizes == a.y.sizes &&
                           residual.strides == a.y.strides)),
        "conv2d_forward: got y ", a.y.dtype, " ", a.y.sizes, " with strides ", a.y.strides, " on ",
        a.y.device, ", scale ", scale.dtype, " ", scale.sizes, " and residual ", residual.dtype,
        " ", residual.sizes, " with strides ", residual.strides,
        ", expected f32 on the CPU, y [N, O, P, Q] in channels-last order, a scale [O] and a "
        "residual like y");
}

}  // namespace

Conv2dSizes checked_sizes(const Conv2dForward& a) {
  const Conv2dSizes size = conv2d_sizes("conv2d_forward", a.x, a.w, a.y, a.geometry);
  check_epilogue(a);
  return size;
}

Conv2dSizes checked_sizes(const Conv2dBackwardData& a) {
  const Conv2dSizes size = conv2d_sizes("conv2d_backward_data", a.dx, a.w, a.dy, a.geometry);
  check_bias("conv2d_backward_data", a.bias, a.dx);
  return size;
}

Conv2dSizes checked_sizes(const Conv2dBackwardWeight& a) {
  return conv2d_sizes("conv2d_backward_weight", a.x, a.dw, a.dy, a.geometry);
}

}  // namespace binade::kernels
