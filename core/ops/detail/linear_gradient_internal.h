// The gradients of weight and bias that linear and feedforward share. Internal to core.
#pragma once
#include <binade/core/ops/detail/bias_gradient_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade {

// dw = dy^T x and db = the row sums of dy^T, the gradients of inputs `weight` and `bias`; undefined
// if not wanted.
struct LinearGradients {
  Tensor dw, db;
};
inline LinearGradients linear_gradients(const Tensor& dy, const Tensor& x, Needs needs, int weight,
                                        int bias) {
  Tensor dw = needs.out(weight);
  if (dw.defined() && needs[bias] && dy.device().is_cpu() &&
      !kernels::user_computes(kernels::UserFunction::gemm, dy.device())) {
    Tensor db = needs.out(bias);  // the product packs dy anyway
    kernels::cpu::gemm_with_row_sums({.a = transposed(dy), .b = x, .y = dw}, db);
    return {dw, db};
  }
  if (dw.defined()) {
    kernels::gemm({.a = transposed(dy), .b = x, .y = dw});
  }
  return {dw, bias_gradient(dy, 1, needs, bias)};
}

}  // namespace binade
