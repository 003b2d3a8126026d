// Matrix products. Operands may have any strides: transposes and broadcast batches are never copied
// for the product. f16 and bf16 accumulate in f32 and are rounded once.
#pragma once
#include <binade/core/tensor/tensor.h>

namespace binade {

// [m, k] [k, n] -> [m, n]; leading dimensions are batches that broadcast. A vector counts as a row
// of the left or a column of the right operand, and its dimension is dropped from the result.
Tensor matmul(const Tensor& a, const Tensor& b);
// [batch, m, k] [batch, k, n] -> [batch, m, n], without broadcasting.
Tensor bmm(const Tensor& a, const Tensor& b);
struct AddmmOptions {
  double beta = 1;
  double alpha = 1;
};
// beta input + alpha a b: a [m, k], b [k, n], input broadcasts to [m, n] and is not read if beta
// is 0.
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b,
             const AddmmOptions& options = {});
// The same with batches: a [batch, m, k], b [batch, k, n].
Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b,
               const AddmmOptions& options = {});

// [m] [n] -> [m, n]
Tensor outer(const Tensor& a, const Tensor& b);

}  // namespace binade
