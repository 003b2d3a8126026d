#include <algorithm>

extern "C" void reference(const double* x, double* y, long long rows, long long cols) {
  std::copy(x, x + rows * cols, y);
  for (long long r = 0; r < rows; ++r)
    std::sort(y + r * cols, y + (r + 1) * cols);
}
