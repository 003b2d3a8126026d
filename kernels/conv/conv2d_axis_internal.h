// One axis of a correlation, forward or backward to the data. Outputs that have the same taps form
// a class. Internal to the CPU's conv2d.
#pragma once
#include <binade/kernels/conv/conv2d.h>

#include <cstdint>
#include <vector>

namespace binade::kernels {

struct Tap {
  int64_t d, kernel;  // source offset, index in the kernel
};

// Output coordinates first, first + output_step, ... of one axis; number j reads j * source_step +
// d.
struct AxisClass {
  int64_t first = 0, output_step = 1, source_step = 1;
  std::vector<Tap> taps;  // ascending in d
  // Smallest j at or after an output coordinate.
  int64_t index_of(int64_t output) const {
    return output <= first ? 0 : (output - first + output_step - 1) / output_step;
  }
};
using Axis = std::vector<AxisClass>;

// One class: outputs read source pixels stride apart. `axis` is 0 (rows) or 1 (columns).
Axis forward_axis(const Conv2dGeometry& g, int axis, int64_t kernel);

// dx[h] is the sum of dy[(h + padding - i dilation) / stride] w[i] over all i for which the
// division is exact: one class per remainder of h. `size` is the size of dx.
Axis backward_axis(const Conv2dGeometry& g, int axis, int64_t kernel, int64_t size);

// Source coordinates [low, high) that outputs [begin, end) read; empty if no tap hits.
void source_range(const Axis& axis, int64_t begin, int64_t end, int64_t& low, int64_t& high);

}  // namespace binade::kernels
