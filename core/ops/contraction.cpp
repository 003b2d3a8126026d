// Linear layers and convolution. Operands are views: a transpose is swapped strides, never a
// copy.
#include <binade/core/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/views.h>
#include <binade/kernels/gemm.h>
#include <binade/kernels/reduce.h>

namespace binade {
namespace {

void check_floating(const char* op, const Tensor& a, const Tensor& b) {
  check(a.defined() && b.defined(), op, ": got an undefined tensor");
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(), op, ": got dtypes ", a.dtype(), " and ",
        b.dtype(), ", expected one floating dtype; convert one with to()");
}

// db[o] = sum of dy over all dimensions but `dim`.
Tensor bias_gradient(const Tensor& dy, int dim, Needs needs, int index) {
  Tensor db = needs.out(index);
  if (db.defined()) {
    Dims sizes = Dims::of(dy.dim(), 1), strides = Dims::of(dy.dim());
    sizes[dim] = db.numel();
    strides[dim] = db.strides()[0];
    kernels::reduce_forward(
        {.op = kernels::Reduce::sum, .x = dy, .y = make_view(db, sizes, strides)});
  }
  return db;
}

int64_t conv_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t reach = dilation * (kernel - 1) + 1;
  return in + 2 * padding < reach ? 0 : (in + 2 * padding - reach) / stride + 1;
}

Dims conv2d_sizes(const Tensor& x, const Tensor& w, const Tensor& bias,
                  const kernels::Conv2dGeometry& g) {
  check_floating("conv2d", x, w);
  check(x.dim() == 4 && w.dim() == 4, "conv2d: got x of shape ", x.sizes(), " and weight of shape ",
        w.sizes(), ", expected [N, C, H, W] and [O, C / groups, R, S]");
  for (int i = 0; i < 2; ++i) {
    constexpr int64_t kLimit = int64_t(1) << 31;  // far from overflow below
    check(g.stride[i] >= 1 && g.dilation[i] >= 1 && g.padding[i] >= 0 && g.stride[i] < kLimit &&
              g.dilation[i] < kLimit && g.padding[i] < kLimit,
          "conv2d: got stride ", g.stride[i], ", padding ", g.padding[i], ", dilation ",
          g.dilation[i],
          ", expected stride and dilation of at least 1, no negative padding, all below 2^31");
  }
  check(g.groups >= 1 && w.size(0) % g.groups == 0 && x.size(1) == w.size(1) * g.groups,
        "conv2d: got x of shape ", x.sizes(), ", weight of shape ", w.sizes(), " and groups ",
        g.groups, ", expected C = weight.size(1) * groups and O divisible by groups");
  check(!bias.defined() ||
            (bias.dim() == 1 && bias.size(0) == w.size(0) && bias.dtype() == w.dtype()),
        "conv2d: got a bias that is not [", w.size(0), "] of dtype ", w.dtype());
  const Dims sizes{x.size(0), w.size(0),
                   conv_size(x.size(2), w.size(2), g.stride[0], g.padding[0], g.dilation[0]),
                   conv_size(x.size(3), w.size(3), g.stride[1], g.padding[1], g.dilation[1])};
  check(sizes[2] > 0 && sizes[3] > 0, "conv2d: got x of shape ", x.sizes(), " and weight of shape ",
        w.sizes(), ", expected a kernel that fits into the padded input");
  return sizes;
}

}  // namespace

Tensor linear(const Tensor& x_, const Tensor& weight_, const Tensor& bias_) {  // y = x w^T + b
  static constexpr Op kOp{"linear", OpClass::contraction};
  auto [x, w, b] = kOp.enter(x_, weight_, bias_);
  check_floating("linear", x, w);
  check(x.dim() >= 1 && w.dim() == 2 && x.size(-1) == w.size(1), "linear: got x of shape ",
        x.sizes(), " and weight of shape ", w.sizes(), ", expected [..., in] and [out, in]");
  check(!b.defined() || (b.dim() == 1 && b.size(0) == w.size(0) && b.dtype() == w.dtype()),
        "linear: got a bias that is not [", w.size(0), "] of dtype ", w.dtype());
  if (x.dim() != 2) {
    Dims sizes = x.sizes();
    sizes[x.dim() - 1] = 1;
    const int64_t rows = element_count(sizes, "linear");
    sizes[x.dim() - 1] = w.size(0);
    return reshape(linear(reshape(x, {rows, x.size(-1)}), w, b), sizes);
  }
  Tensor y = empty({x.size(0), w.size(0)}, x.dtype(), x.device());
  kernels::gemm({.a = x, .b = flipped(w), .y = y, .bias = b});
  return kOp.record({x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
                    [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
                      Tensor dx = needs.out(0), dw = needs.out(1);
                      if (dx.defined()) {  // dx = dy w
                        kernels::gemm({.a = dy, .b = w, .y = dx});
                      }
                      if (dw.defined()) {  // dw = dy^T x
                        kernels::gemm({.a = flipped(dy), .b = x, .y = dw});
                      }
                      return {dx, dw, bias_gradient(dy, 1, needs, 2)};
                    });
}

Tensor conv2d(const Tensor& x_, const Tensor& weight_, const Tensor& bias_,
              const kernels::Conv2dGeometry& geometry) {
  static constexpr Op kOp{"conv2d", OpClass::contraction};
  auto [x, w, b] = kOp.enter(x_, weight_, bias_);
  const Dims sizes = conv2d_sizes(x, w, b, geometry);
  Tensor y = empty_strided(sizes, channels_last_strides(sizes), x.dtype(), x.device());
  kernels::conv2d_forward({.x = x, .w = w, .y = y, .bias = b, .geometry = geometry});
  return kOp.record(
      {x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
      [geometry, x_strides = x.strides(), w_strides = w.strides()](
          const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
        Tensor dx = needs.out_strided(0, x_strides), dw = needs.out_strided(1, w_strides);
        if (dx.defined()) {
          kernels::conv2d_backward_data({.dy = dy, .w = w, .dx = dx, .geometry = geometry});
        }
        if (dw.defined()) {
          kernels::conv2d_backward_weight({.x = x, .dy = dy, .dw = dw, .geometry = geometry});
        }
        return {dx, dw, bias_gradient(dy, 1, needs, 2)};
      });
}

}  // namespace binade
