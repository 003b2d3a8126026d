// Linear layers, and the feed-forward part of a transformer as one op. Operands are views: a
// transpose is swapped strides, never a copy.
#include <binade/core/autograd/op.h>
#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/accumulated_internal.h>
#include <binade/core/ops/detail/activation_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/feedforward_internal.h>
#include <binade/core/ops/detail/linear_gradient_internal.h>
#include <binade/core/ops/linear.h>
#include <binade/core/tensor/packed_weights_internal.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade {

// y = x w^T + b
Tensor linear(const Tensor& x_, const Tensor& weight_, const Tensor& bias_, Activation activation) {
  static constexpr Op kOp{"linear", OpClass::contraction, true};
  auto [x, w, b] = kOp.enter(x_, weight_, bias_);
  check_floating("linear", x, w);
  check(w.dim() == 2, "linear: got a weight of shape ", w.sizes(), ", expected [out, in]");
  check(x.dim() >= 1 && x.size(-1) == w.size(1), "linear: got x of shape ", x.sizes(),
        " and weight of shape ", w.sizes(), ", expected x [..., ", w.size(1),
        "]; change the layer's option in, or the shape of x with flatten() or transpose()");
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
  if (const Accumulation* sum = detail::simulated_sum(kOp)) {
    return activated(detail::accumulated_linear(kOp, x, w, b, *sum), activation);
  }
  Tensor y = empty({x.size(0), w.size(0)}, x.dtype(), x.device());
  KeptPacking packing(w);
  kernels::gemm(
      {.a = x,
       .b = transposed(w),
       .y = y,
       .epilogue = {.bias = b,
                    .activation =
                        kernel_applies(activation, x.dtype()) ? activation : Activation::none},
       .packing = packing});
  y = kOp.record({x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
                 [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
                   if (grad_enabled()) {  // recorded: made of ops
                     return {needs[0] ? matmul(dy, w) : Tensor(),
                             needs[1] ? matmul(transpose(dy, 0, 1), x) : Tensor(),
                             needs[2] ? sum(dy, {0}) : Tensor()};
                   }
                   Tensor dx = needs.out(0);
                   if (dx.defined()) {  // dx = dy w
                     kernels::gemm({.a = dy, .b = w, .y = dx});
                   }
                   const auto [dw, db] = linear_gradients(dy, x, needs, 1, 2);
                   return {dx, dw, db};
                 });
  return activated(std::move(y), activation);
}
namespace {

constexpr Op kFeedforward{"feedforward", OpClass::contraction};

void check_operands(const Feedforward& operands) {
  const auto& [x, w1, b1, w2, b2, activation] = operands;
  const bool cast = detail::thread_state.precision;  // a policy makes them one dtype
  for (const Tensor* t : {&x, &w1, &w2}) {
    check(t->defined() && is_floating(t->dtype()) && (cast || t->dtype() == x.dtype()),
          kFeedforward.name,
          ": got undefined tensors or several dtypes, expected one floating dtype");
  }
  check_one_device(kFeedforward.name, {&x, &w1, &b1, &w2, &b2});
  check(x.dim() >= 1 && w1.dim() == 2 && w2.dim() == 2 && x.size(-1) == w1.size(1) &&
            w1.size(0) == w2.size(1),
        kFeedforward.name, ": got x ", x.sizes(), ", w1 ", w1.sizes(), ", w2 ", w2.sizes(),
        ", expected [..., in], [hidden, in] and [out, hidden]");
  const auto fits = [cast](const Tensor& b, const Tensor& w) {
    return !b.defined() ||
           (b.dim() == 1 && b.size(0) == w.size(0) && (cast || b.dtype() == w.dtype()));
  };
  const auto sizes = [](const Tensor& b) { return b.defined() ? b.sizes() : Dims{}; };
  check(fits(b1, w1) && fits(b2, w2), kFeedforward.name, ": got biases of shapes ", sizes(b1),
        " and ", sizes(b2), ", expected [", w1.size(0), "] and [", w2.size(0), "] of dtype ",
        x.dtype());
}

// x [rows, in], f32 on the CPU.
Tensor one_op(const Feedforward& operands) {
  const auto& [x, w1, b1, w2, b2, activation] = operands;
  const Tensor h = empty({x.size(0), w1.size(0)}, x.dtype());  // activation of the first product
  const Tensor slope = empty(h.sizes(), x.dtype());
  kernels::cpu::gemm({.a = x,
                      .b = transposed(w1),
                      .y = h,
                      .epilogue = {.bias = b1, .activation = activation, .slope = slope}});
  Tensor y = empty({x.size(0), w2.size(0)}, x.dtype());
  kernels::gemm({.a = h, .b = transposed(w2), .y = y, .epilogue = {.bias = b2}});
  return kFeedforward.record(
      {x, w1, b1, w2, b2}, y, save(x, w1, w2, h, slope),
      [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w1, const Tensor& w2,
         const Tensor& h, const Tensor& slope) -> Grads {
        const LinearGradients second = linear_gradients(dy, h, needs, 3, 4);
        if (!needs[0] && !needs[1] && !needs[2]) {
          return Grads(std::vector<Tensor>{{}, {}, {}, second.dw, second.db});
        }
        const Tensor dh = empty(h.sizes(), h.dtype());  // of the first product
        kernels::cpu::gemm({.a = dy, .b = w2, .y = dh, .epilogue = {.factor = slope}});
        const LinearGradients first = linear_gradients(dh, x, needs, 1, 2);
        const Tensor dx = needs.out(0);
        if (dx.defined()) {
          kernels::gemm({.a = dh, .b = w1, .y = dx});
        }
        return Grads(std::vector<Tensor>{dx, first.dw, first.db, second.dw, second.db});
      });
}

}  // namespace

bool feedforward_is_one_op(const Tensor& x) {
  return x.defined() && x.dtype() == DType::f32 && x.device().is_cpu() &&
         !detail::thread_state.precision && !detail::observers_read_values() &&
         !kernels::user_computes(kernels::UserFunction::gemm, x.device());
}

Tensor feedforward(const Feedforward& operands) {
  detail::begin_op(kFeedforward);
  check_operands(operands);
  const auto& [x, w1, b1, w2, b2, activation] = operands;
  const bool recorded =
      grad_enabled() && (x.requires_grad() || w1.requires_grad() || b1.requires_grad() ||
                         w2.requires_grad() || b2.requires_grad());
  if (!recorded || !feedforward_is_one_op(x)) {
    return linear(activated(linear(x, w1, b1), activation), w2, b2);
  }
  if (x.dim() == 2) {
    return one_op(operands);
  }
  Dims sizes = x.sizes();
  sizes[x.dim() - 1] = 1;
  const int64_t rows = element_count(sizes, kFeedforward.name);
  sizes[x.dim() - 1] = w2.size(0);
  const Tensor flat = reshape(x, {rows, x.size(-1)});
  return reshape(one_op({flat, w1, b1, w2, b2, activation}), sizes);
}

Tensor feedforward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                   const Tensor& b2) {
  return feedforward({x, w1, b1, w2, b2, Activation::gelu});
}

}  // namespace binade
