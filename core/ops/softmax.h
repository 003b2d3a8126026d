// softmax and log_softmax.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// exp(x_i) / sum_j exp(x_j) along `dim`, and its logarithm. f16 and bf16 are computed in f32 and
// rounded once.
Tensor softmax(const Tensor& x, int dim = -1);
Tensor log_softmax(const Tensor& x, int dim = -1);

}  // namespace binade
