// Contractions over chosen dimensions.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string_view>
#include <vector>

namespace binade {

// Sums products over letters, as in "bhqd,bhkd->bhqk": letters that the result lacks are summed,
// and "..." stands for leading dimensions that broadcast. Without "->" the result has the letters
// that occur once, in alphabetical order. Takes any number of operands and contracts them from the
// left; an operand has each letter at most once.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

// Sums products over dims_a of a with dims_b of b, or over the last `dims` of a with the first of
// b. The result has the other dimensions of a, then those of b.
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b);
Tensor tensordot(const Tensor& a, const Tensor& b, int dims = 2);

}  // namespace binade
