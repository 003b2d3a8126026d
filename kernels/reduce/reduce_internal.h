// Checks of the arguments of reductions that every backend makes, and what both derive from them.
#pragma once
#include <binade/kernels/reduce/reduce.h>

namespace binade::kernels {

// Whether dimension d of x is reduced into y.
inline bool is_reduced(const ReduceForward& a, int d) {
  return a.y.size(d) == 1 && a.x.size(d) != 1;
}

// The result for no elements.
double reduction_of_nothing(Reduce op);

// y of an ArgMax with x's rank and size 1 at dim.
View with_reduced_dim(const ArgMax& a, const View& y);

// How a reduction reads its terms and finishes its result.
enum class Term : uint8_t { plain, negative, absolute, square };
struct Reading {
  Term term = Term::plain;
  bool root = false;
  double divisor = 0;  // 0: none
};

// What a reduction keeps of the terms it has seen; the same list on every backend.
enum class Reducer : uint8_t {
  sum,
  product,
  max,
  min,
  power_sum,
  deviations,
  log_sum_exp,
  ties,  // the largest term and how often it came
  zeros  // the product of what is not zero, and how many are
};

struct ReduceRule {
  Reducer reducer;
  Reading reading;
};
// `count` elements go into each result.
ReduceRule reduce_rule(const ReduceForward& a, int64_t count);

}  // namespace binade::kernels
