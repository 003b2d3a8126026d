// Matrix products. Operands may have any strides: transposes and broadcast batches are never copied
// for the product. f16 and bf16 accumulate in f32 and are rounded once.
#pragma once
#include <binade/core/autograd/autograd.h>

#include <string_view>
#include <vector>

namespace binade {

// [m, k] [k, n] -> [m, n]; leading dimensions are batches that broadcast. A vector counts as a row
// of the left or a column of the right operand, and its dimension is dropped from the result.
Tensor matmul(const Tensor& a, const Tensor& b);
// [batch, m, k] [batch, k, n] -> [batch, m, n], nothing broadcasts.
Tensor bmm(const Tensor& a, const Tensor& b);
struct AddmmOptions {
  double beta = 1;
  double alpha = 1;
};
// beta input + alpha a b: a [m, k], b [k, n], input broadcasts to [m, n] and is not read if beta
// is 0.
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b,
             const AddmmOptions& options = {});
// [m] [n] -> [m, n]
Tensor outer(const Tensor& a, const Tensor& b);
// Sums products over letters, as in "bhqd,bhkd->bhqk": letters that the result lacks are summed,
// "..." stands for leading dimensions that broadcast, and without "->" the result has the letters
// that occur once, in the order of the alphabet. Any number of operands, contracted from the left;
// a letter at most once per operand.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

}  // namespace binade
