// The epilogue of a matrix product or a convolution: the operations on the sums before they are
// stored, while they are in registers or in cache. One type for gemm and conv2d, CPU and CUDA.
#pragma once
#include <binade/kernels/base/view.h>

#include <cstdint>

namespace binade::kernels {

// relu keeps NaN; gelu_tanh is the tanh approximation of gelu.
enum class Activation : uint8_t { none, relu, gelu_tanh, gelu };

// y = activation(y? + sum * scale? + bias? + residual?) * factor?, rounded once to the dtype of y.
// Undefined views are left out.
struct Epilogue {
  const View& bias = kNoView;  // [columns of y], or [O] of a convolution
  Activation activation = Activation::none;
  bool accumulate = false;  // gemm: the old value of y is added; it is read once
  // On the CPU and in f32 only:
  const View& scale = kNoView;     // conv2d: [O]
  const View& residual = kNoView;  // conv2d: [N, O, P, Q] with the strides of y
  const View& factor = kNoView;    // gemm: [m, n], adjacent columns
  const View& slope = kNoView;     // gemm: [m, n], adjacent columns; with gelu, whose slope at the
                                   // sum is written there
};

}  // namespace binade::kernels
