#include <cmath>

// Rows of unequal length: row r has up to `each` elements, the last row all that remain.
extern "C" void fill(double* begin, double* column, long long rows, long long cols, long long each,
                     long long seed) {
  for (long long r = 0; r < rows; ++r)
    begin[r] = static_cast<double>(r == 0 ? 0 : begin[r - 1] + (r * 7 + seed) % (each + 1));
  begin[rows] = static_cast<double>(rows * each);
  for (long long i = 0; i < rows * each; ++i)
    column[i] = static_cast<double>((i * 31 + seed) % cols);
}
extern "C" void reference(const double* begin, const double* column, const double* value,
                          const double* x, double* y, double* y_bound, long long rows) {
  for (long long r = 0; r < rows; ++r) {
    double sizes = 0;
    y[r] = 0;
    for (auto i = static_cast<long long>(begin[r]); i < static_cast<long long>(begin[r + 1]); ++i) {
      const double term = value[i] * x[static_cast<long long>(column[i])];
      y[r] += term;
      sizes += std::abs(term);
    }
    y_bound[r] = (begin[r + 1] - begin[r] + 2) * sizes;
  }
}
