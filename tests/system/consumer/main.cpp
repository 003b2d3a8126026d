// A user's program: d(x^2)/dx at 3.
#include <binade/binade.h>

#include <cstdio>

int main() {
  binade::Tensor x = binade::full({1}, 3).require_grad();
  (x * x).backward();
  std::printf("dx = %g\n", x.grad().item());
}
