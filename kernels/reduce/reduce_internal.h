// Helpers of the reductions that every backend uses.
#pragma once
#include <binade/kernels/reduce/reduce.h>

namespace binade::kernels {

// True if dimension d of x is reduced.
inline bool is_reduced(const ReduceForward& a, int d) {
  return a.y.size(d) == 1 && a.x.size(d) != 1;
}

// The result of a reduction over no elements.
double reduction_of_nothing(Reduce op);

// y of an ArgMax as a view with x's rank and size 1 at dim.
View with_reduced_dim(const ArgMax& a, const View& y);

// How a reduction transforms its terms and its result.
enum class Term : uint8_t { plain, negative, absolute, square };
struct Reading {
  Term term = Term::plain;
  bool root = false;
  double divisor = 0;  // 0: none
};

// The state that a reduction keeps; the same list on every backend.
enum class Reducer : uint8_t {
  sum,
  product,
  max,
  min,
  power_sum,
  deviations,
  log_sum_exp,
  ties,  // the largest term and how often it occurs
  zeros  // the product of the nonzero terms, and the number of zeros
};

// The type in which a reducer whose state is one value accumulates x.
constexpr DType accumulator_dtype(Reducer reducer, DType dtype) {
  return is_floating(dtype) ? compute_dtype(dtype) : reducer == Reducer::sum ? DType::i64 : dtype;
}

struct ReduceRule {
  Reducer reducer;
  Reading reading;
};
// `count` elements are reduced into each result.
ReduceRule reduce_rule(const ReduceForward& a, int64_t count);

}  // namespace binade::kernels
