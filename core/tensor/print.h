// Tensors as text: std::cout << x, to_string(x). The layout is NumPy's, followed by dtype and
// sizes:
//
//   [[ 0.5000, -1.2500],
//    [    nan,  2.0000]] f32 [2, 2]
//
// A tensor of more than `threshold` elements is summarised: long dimensions show their first and
// last elements only, and only these are read. The host waits for a device.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <iosfwd>
#include <string>

namespace binade {

struct PrintOptions {
  int precision = 4;         // digits after the point, 0 to 17
  int64_t threshold = 1000;  // elements that are all shown
  // First and last elements of a dimension in a summary; fewer if more than 10,000 elements would
  // be shown.
  int64_t edge_items = 3;
  int line_width = 80;  // longer rows continue on the next line
};

// Whole numbers show as "2.", others with `precision` digits; all have an exponent if the largest
// is 1e8 or more, the smallest that is not 0 less than 1e-4, or their ratio more than 1000.
std::string to_string(const Tensor& x, const PrintOptions& options = {},
                      SourceLine where = SourceLine::here());
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace binade
