// einsum.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <string_view>
#include <vector>

namespace binade {

// Sums products over letters, as in "bhqd,bhkd->bhqk": letters that the result lacks are summed,
// "..." stands for leading dimensions that broadcast, and without "->" the result has the letters
// that occur once, in the order of the alphabet. Any number of operands, contracted from the left;
// a letter at most once per operand.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

}  // namespace binade
