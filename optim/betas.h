// The decay rates of Adam and its relatives.
#pragma once
#include <cstddef>

namespace binade::optim {

// The first belongs to the average of the gradient, the second to that of its square. The compiler
// refuses {0.9} alone, which std::array would take for {0.9, 0}.
struct Betas {
  double first, second;
  constexpr Betas(double first, double second) : first(first), second(second) {}
  constexpr double& operator[](size_t i) { return i == 0 ? first : second; }
  constexpr double operator[](size_t i) const { return i == 0 ? first : second; }
  bool operator==(const Betas&) const = default;
};

}  // namespace binade::optim
