// The decay rates of Adam and its relatives.
#pragma once
#include <cstddef>

namespace binade::optim {

// Of the averages of the gradient and of its square. Both are given: {0.9} alone does not compile,
// where an array would take it for {0.9, 0}.
struct Betas {
  double first, second;
  constexpr Betas(double first, double second) : first(first), second(second) {}
  constexpr double& operator[](size_t i) { return i == 0 ? first : second; }
  constexpr double operator[](size_t i) const { return i == 0 ? first : second; }
  bool operator==(const Betas&) const = default;
};

}  // namespace binade::optim
