// Checks of the arguments of reductions that every backend makes.
#pragma once
#include <binade/kernels/reduce.h>

namespace binade::kernels {

void check_arguments(const ReduceForward& a);
void check_arguments(const ArgMax& a);

// Whether dimension d of x is reduced into y.
inline bool is_reduced(const ReduceForward& a, int d) {
  return a.y.size(d) == 1 && a.x.size(d) != 1;
}

}  // namespace binade::kernels
