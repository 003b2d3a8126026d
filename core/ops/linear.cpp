// Linear layers. Operands are views: a transpose is swapped strides, never a copy.
#include <binade/core/ops.h>
#include <binade/core/ops/detail/activation_internal.h>
#include <binade/core/ops/detail/linear_gradient_internal.h>

namespace binade {
namespace {

void check_floating(const char* op, const Tensor& a, const Tensor& b) {
  check(a.defined() && b.defined(), op, ": got an undefined tensor");
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(), op, ": got dtypes ", a.dtype(), " and ",
        b.dtype(), ", expected one floating dtype; convert one with to()");
}

}  // namespace

// y = x w^T + b
Tensor linear(const Tensor& x_, const Tensor& weight_, const Tensor& bias_, Activation activation) {
  static constexpr Op kOp{"linear", OpClass::contraction};
  auto [x, w, b] = kOp.enter(x_, weight_, bias_);
  check_floating("linear", x, w);
  check(x.dim() >= 1 && w.dim() == 2 && x.size(-1) == w.size(1), "linear: got x of shape ",
        x.sizes(), " and weight of shape ", w.sizes(), ", expected [..., in] and [out, in]");
  check(!b.defined() || (b.dim() == 1 && b.size(0) == w.size(0) && b.dtype() == w.dtype()),
        "linear: got a bias of shape ", b.defined() ? b.sizes() : Dims{}, " and dtype ",
        b.defined() ? b.dtype() : w.dtype(), ", expected [", w.size(0), "] of dtype ", w.dtype());
  if (x.dim() != 2) {
    Dims sizes = x.sizes();
    sizes[x.dim() - 1] = 1;
    const int64_t rows = element_count(sizes, "linear");
    sizes[x.dim() - 1] = w.size(0);
    return reshape(linear(reshape(x, {rows, x.size(-1)}), w, b, activation), sizes);
  }
  Tensor y = empty({x.size(0), w.size(0)}, x.dtype(), x.device());
  kernels::gemm(
      {.a = x,
       .b = transposed(w),
       .y = y,
       .epilogue = {
           .bias = b,
           .activation = kernel_applies(activation, x.dtype()) ? activation : Activation::none}});
  y = kOp.record({x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
                 [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
                   Tensor dx = needs.out(0);
                   if (dx.defined()) {  // dx = dy w
                     kernels::gemm({.a = dy, .b = w, .y = dx});
                   }
                   const auto [dw, db] = linear_gradients(dy, x, needs, 1, 2);
                   return {dx, dw, db};
                 });
  return activated(std::move(y), activation);
}

}  // namespace binade
