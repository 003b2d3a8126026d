// Convolution over images and sequences, and its transpose. The kernels take images: a sequence [N,
// C, L] is viewed as an image of height 1. A transposed convolution is a convolution's gradient
// with respect to its input, so its own gradients are the other two directions.
#include <binade/core/ops.h>
#include <binade/core/ops/conv.h>
#include <binade/core/ops/detail/activation_internal.h>
#include <binade/core/ops/detail/bias_gradient_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/conv_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/packed_weights_internal.h>
#include <binade/kernels/copy/copy.h>

namespace binade {
namespace {

constexpr int64_t kLimit = int64_t{1} << 31;  // sizes and strides below it cannot overflow products

// [N, C, L] as [N, C, 1, L], without recording.
Tensor image(const Tensor& t) {
  if (!t.defined() || t.dim() == 4) {
    return t;
  }
  const Dims& strides = t.strides();
  return make_view(t, {t.size(0), t.size(1), 1, t.size(2)},
                   {strides[0], strides[1], t.size(2) * strides[2], strides[2]});
}

// The checks that both kinds of convolution share. A sequence has axis 1 only.
void check_operands(const char* op, const Tensor& x, const Tensor& w, int rank,
                    const Conv2dOptions& g) {
  check_floating(op, x, w);
  check(x.dim() == rank && w.dim() == rank, op, ": got x of shape ", x.sizes(),
        " and weight of shape ", w.sizes(), ", expected ", rank, " dimensions each, [N, C, ...]");
  check(g.groups >= 1 && g.groups < kLimit, op, ": got ", g.groups,
        " groups, expected at least 1 and fewer than 2^31");
  for (int axis = 4 - rank; axis < 2; ++axis) {
    check(g.stride[axis] >= 1 && g.dilation[axis] >= 1 && g.padding[axis] >= 0 &&
              g.stride[axis] < kLimit && g.dilation[axis] < kLimit && g.padding[axis] < kLimit,
          op, ": got stride ", g.stride[axis], ", padding ", g.padding[axis], ", dilation ",
          g.dilation[axis],
          ", expected stride and dilation of at least 1, no negative padding, all below 2^31");
    const int64_t size = x.size(rank - 2 + axis), kernel = w.size(rank - 2 + axis);
    check(size < kLimit && kernel >= 1 && kernel < kLimit, op, ": got x of shape ", x.sizes(),
          " and weight of shape ", w.sizes(), ", expected a kernel, and sides below 2^31");
  }
}

void check_bias(const char* op, const Tensor& bias, const Tensor& w, int64_t channels) {
  check(
      !bias.defined() || (bias.dim() == 1 && bias.size(0) == channels && bias.dtype() == w.dtype()),
      op, ": got a bias of shape ", bias.defined() ? bias.sizes() : Dims{}, " and dtype ",
      bias.defined() ? bias.dtype() : w.dtype(), ", expected [", channels, "] of dtype ",
      w.dtype());
}

// For the error message: images from other libraries often have their channels last.
bool channels_are_last(const Tensor& x, int64_t channels) {
  return x.size(-1) == channels && x.size(1) != channels;
}

Dims convolution_sizes(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias,
                       int rank, const Conv2dOptions& g) {
  check_operands(op, x, w, rank, g);
  check(g.groups >= 1 && w.size(0) % g.groups == 0 && x.size(1) == w.size(1) * g.groups, op,
        ": got x of shape ", x.sizes(), ", weight of shape ", w.sizes(), " and groups ", g.groups,
        ", expected x [N, ", w.size(1) * g.groups, ", ...] and O divisible by groups",
        channels_are_last(x, w.size(1) * g.groups)
            ? "; x seems to be [N, ..., C]: movedim(x, -1, 1) puts the channels in place"
            : "; the dimensions of x are batch, channels, sides");
  check_bias(op, bias, w, w.size(0));
  Dims sizes = x.sizes();
  sizes[1] = w.size(0);
  for (int axis = 4 - rank; axis < 2; ++axis) {
    const int dim = rank - 2 + axis;
    const int64_t padded = x.size(dim) + 2 * g.padding[axis],
                  reach = g.dilation[axis] * (w.size(dim) - 1) + 1;
    check(padded >= reach, op, ": got x of shape ", x.sizes(), " and weight of shape ", w.sizes(),
          ", expected a kernel that fits into the padded input");
    sizes[dim] = (padded - reach) / g.stride[axis] + 1;
  }
  element_count(sizes, op);
  return sizes;
}

Tensor empty_pixels(const Dims& sizes, const Tensor& like) {
  return empty_strided(sizes, channels_last_strides(sizes), like.dtype(), like.device());
}

// The three products of a convolution y = x * w: y, the gradient of x and the gradient of w. The
// gradients of each are the other two, so as ops, for a backward that is itself recorded, they can
// be differentiated any number of times.
struct Products {
  const Op* op;  // that is differentiated
  Conv2dOptions geometry;
};
Tensor product_y(const Tensor& x, const Tensor& w, const Dims& sizes, const Products& p);
Tensor product_x(const Tensor& y, const Tensor& w, const Dims& sizes, const Products& p);
Tensor product_w(const Tensor& x, const Tensor& y, const Dims& sizes, const Products& p);

Tensor product_y(const Tensor& x, const Tensor& w, const Dims& sizes, const Products& p) {
  Tensor y = empty_pixels(sizes, x);
  kernels::conv2d_forward({.x = image(x), .w = image(w), .y = image(y), .geometry = p.geometry});
  return p.op->record(
      {x, w}, y, save(x, w),
      [p](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
        return {needs[0] ? product_x(dy, w, x.sizes(), p) : Tensor(),
                needs[1] ? product_w(x, dy, w.sizes(), p) : Tensor()};
      });
}

Tensor product_x(const Tensor& y, const Tensor& w, const Dims& sizes, const Products& p) {
  Tensor x = empty_pixels(sizes, y);
  kernels::conv2d_backward_data(
      {.dy = image(y), .w = image(w), .dx = image(x), .geometry = p.geometry});
  return p.op->record(
      {y, w}, x, save(y, w),
      [p](const Tensor& dx, Needs needs, const Tensor& y, const Tensor& w) -> Grads {
        return {needs[0] ? product_y(dx, w, y.sizes(), p) : Tensor(),
                needs[1] ? product_w(dx, y, w.sizes(), p) : Tensor()};
      });
}

Tensor product_w(const Tensor& x, const Tensor& y, const Dims& sizes, const Products& p) {
  Tensor w = empty(sizes, x.dtype(), x.device());
  kernels::conv2d_backward_weight(
      {.x = image(x), .dy = image(y), .dw = image(w), .geometry = p.geometry});
  return p.op->record(
      {x, y}, w, save(x, y),
      [p](const Tensor& dw, Needs needs, const Tensor& x, const Tensor& y) -> Grads {
        return {needs[0] ? product_x(y, dw, x.sizes(), p) : Tensor(),
                needs[1] ? product_y(x, dw, y.sizes(), p) : Tensor()};
      });
}

// The gradient of a bias as an op: the sum over all but the channels.
Tensor recorded_bias_gradient(const Tensor& dy) {
  return sum(flatten(transpose(dy, 0, 1), 1), {1});
}

// `rank` is the number of dimensions that the op documents.
Tensor convolution(const Op& op, const Entered<3>& operands, int rank,
                   const Conv2dOptions& geometry, Activation activation = Activation::none) {
  const auto& [x, w, b] = operands;
  const Dims sizes = convolution_sizes(op.name, x, w, b, rank, geometry);
  Tensor y = empty_pixels(sizes, x);
  KeptPacking packing(w);
  kernels::conv2d_forward(
      {.x = image(x),
       .w = image(w),
       .y = image(y),
       .geometry = geometry,
       .epilogue = {.bias = b,
                    .activation =
                        kernel_applies(activation, x.dtype()) ? activation : Activation::none},
       .packing = packing});
  y = op.record({x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
                [op = &op, geometry, x_strides = x.strides(), w_strides = w.strides()](
                    const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
                  if (grad_enabled()) {
                    return {needs[0] ? product_x(dy, w, needs.sizes(0), {op, geometry}) : Tensor(),
                            needs[1] ? product_w(x, dy, needs.sizes(1), {op, geometry}) : Tensor(),
                            needs[2] ? recorded_bias_gradient(dy) : Tensor()};
                  }
                  Tensor dx = needs.out_strided(0, x_strides), dw = needs.out_strided(1, w_strides);
                  if (dx.defined()) {
                    kernels::conv2d_backward_data(
                        {.dy = image(dy), .w = image(w), .dx = image(dx), .geometry = geometry});
                  }
                  if (dw.defined()) {
                    kernels::conv2d_backward_weight(
                        {.x = image(x), .dy = image(dy), .dw = image(dw), .geometry = geometry});
                  }
                  return {dx, dw, bias_gradient(dy, 1, needs, 2)};
                });
  return activated(std::move(y), activation);
}

Dims transposed_sizes(const char* op, const Entered<3>& operands, int rank, const Conv2dOptions& g,
                      const Pair& output_padding) {
  const auto& [x, w, bias] = operands;
  check_operands(op, x, w, rank, g);
  check(g.groups >= 1 && x.size(1) == w.size(0) && x.size(1) % g.groups == 0, op,
        ": got x of shape ", x.sizes(), ", weight of shape ", w.sizes(), " and groups ", g.groups,
        ", expected C = weight.size(0), divisible by groups");
  check(w.size(1) < kLimit && g.groups < kLimit, op, ": got weight of shape ", w.sizes(), " and ",
        g.groups, " groups, expected less than 2^31 of each");
  check_bias(op, bias, w, w.size(1) * g.groups);
  Dims sizes = x.sizes();
  sizes[1] = w.size(1) * g.groups;
  for (int axis = 4 - rank; axis < 2; ++axis) {
    const int dim = rank - 2 + axis;
    const int64_t extra = output_padding[axis];
    check(extra >= 0 && (extra < g.stride[axis] || extra < g.dilation[axis]), op,
          ": got output_padding ", extra, " with stride ", g.stride[axis], " and dilation ",
          g.dilation[axis], ", expected it to be less than one of them");
    sizes[dim] = (x.size(dim) - 1) * g.stride[axis] - 2 * g.padding[axis] +
                 g.dilation[axis] * (w.size(dim) - 1) + extra + 1;
    check(x.size(dim) >= 1 && sizes[dim] >= 1, op, ": got x of shape ", x.sizes(), " and output ",
          sizes, ", expected sides of at least 1");
  }
  element_count(sizes, op);
  return sizes;
}

// x with `count` zeros after the last elements of a dimension.
Tensor followed_by_zeros(const Tensor& x, int dim, int64_t count) {
  Dims sizes = x.sizes();
  sizes[dim] = count;
  return cat({x, zeros(sizes, x.dtype(), x.device())}, dim);
}

Tensor transposed_convolution(const Op& op, const Entered<3>& operands, int rank,
                              const Conv2dOptions& geometry, const Pair& output_padding) {
  const auto& [given, w, b] = operands;
  const Dims sizes = transposed_sizes(op.name, operands, rank, geometry, output_padding);
  Tensor x = given;
  for (int axis = 4 - rank; axis < 2; ++axis) {
    // A convolution of the result would have this many pixels more than x has.
    if (const int64_t more = output_padding[axis] / geometry.stride[axis]) {
      x = followed_by_zeros(x, rank - 2 + axis, more);
    }
  }
  Tensor y = empty_pixels(sizes, x);
  kernels::conv2d_backward_data(
      {.dy = image(x), .w = image(w), .dx = image(y), .geometry = geometry, .bias = b});
  return op.record(
      {x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
      [op = &op, geometry, x_strides = x.strides(), w_strides = w.strides()](
          const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
        if (grad_enabled()) {
          return {needs[0] ? product_y(dy, w, needs.sizes(0), {op, geometry}) : Tensor(),
                  needs[1] ? product_w(dy, x, needs.sizes(1), {op, geometry}) : Tensor(),
                  needs[2] ? recorded_bias_gradient(dy) : Tensor()};
        }
        Tensor dx = needs.out_strided(0, x_strides), dw = needs.out_strided(1, w_strides);
        if (dx.defined()) {
          kernels::conv2d_forward(
              {.x = image(dy), .w = image(w), .y = image(dx), .geometry = geometry});
        }
        if (dw.defined()) {
          kernels::conv2d_backward_weight(
              {.x = image(dy), .dy = image(x), .dw = image(dw), .geometry = geometry});
        }
        return {dx, dw, bias_gradient(dy, 1, needs, 2)};
      });
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) {
  static constexpr Op kOp{"conv1d", OpClass::contraction, true};
  return convolution(kOp, kOp.enter(x, weight, bias), 3,
                     {.stride = {1, options.stride},
                      .padding = {0, options.padding},
                      .dilation = {1, options.dilation},
                      .groups = options.groups});
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& geometry, Activation activation) {
  static constexpr Op kOp{"conv2d", OpClass::contraction, true};
  return convolution(kOp, kOp.enter(x, weight, bias), 4, geometry, activation);
}

Tensor conv2d_with_epilogue(const Conv2dWithEpilogue& a) {
  static constexpr Op kOp{"conv2d", OpClass::contraction};
  const Dims sizes = convolution_sizes(kOp.name, a.x, a.w, a.shift, 4, a.geometry);
  check(!a.residual.defined() || a.residual.sizes() == sizes, kOp.name,
        ": got a residual of shape ", a.residual.defined() ? a.residual.sizes() : Dims{},
        ", expected ", sizes, " like the result");
  Tensor y = empty_pixels(sizes, a.x), residual = a.residual;
  if (residual.defined() && residual.strides() != y.strides()) {
    residual = empty_pixels(sizes, a.x);
    kernels::copy({.x = a.residual, .y = residual});
  }
  KeptPacking packing(a.w);
  kernels::cpu::conv2d_forward(
      {.x = a.x,
       .w = a.w,
       .y = y,
       .geometry = a.geometry,
       .epilogue = {.bias = a.shift,
                    .activation = a.relu ? Activation::relu : Activation::none,
                    .scale = a.scale,
                    .residual = residual},
       .packing = packing});
  return y;
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  static constexpr Op kOp{"conv_transpose1d", OpClass::contraction, true};
  return transposed_convolution(kOp, kOp.enter(x, weight, bias), 3,
                                {.stride = {1, options.stride},
                                 .padding = {0, options.padding},
                                 .dilation = {1, options.dilation},
                                 .groups = options.groups},
                                {0, options.output_padding});
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  static constexpr Op kOp{"conv_transpose2d", OpClass::contraction, true};
  const auto& [stride, padding, dilation, groups, output_padding] = options;
  return transposed_convolution(
      kOp, kOp.enter(x, weight, bias), 4,
      {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups},
      output_padding);
}

}  // namespace binade
