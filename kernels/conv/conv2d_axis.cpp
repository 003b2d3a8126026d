#include <binade/kernels/conv/conv2d_axis_internal.h>

#include <algorithm>

namespace binade::kernels {

Axis forward_axis(const Conv2dGeometry& g, int axis, int64_t kernel) {
  AxisClass all;
  all.source_step = g.stride[axis];
  for (int64_t i = 0; i < kernel; ++i) {
    all.taps.push_back({i * g.dilation[axis] - g.padding[axis], i});
  }
  return {all};
}

Axis backward_axis(const Conv2dGeometry& g, int axis, int64_t kernel, int64_t size) {
  Axis classes;
  for (int64_t first = 0; first < std::min(g.stride[axis], size); ++first) {
    AxisClass one;
    one.first = first;
    one.output_step = g.stride[axis];
    for (int64_t i = kernel; i-- > 0;) {
      const int64_t position = first + g.padding[axis] - i * g.dilation[axis];
      if (position % g.stride[axis] == 0) {
        one.taps.push_back({position / g.stride[axis], i});
      }
    }
    classes.push_back(one);
  }
  return classes;
}

void source_range(const Axis& axis, int64_t begin, int64_t end, int64_t& low, int64_t& high) {
  low = INT64_MAX;
  high = INT64_MIN;
  for (const AxisClass& one : axis) {
    const int64_t j0 = one.index_of(begin), j1 = one.index_of(end);
    if (j0 < j1 && !one.taps.empty()) {
      low = std::min(low, j0 * one.source_step + one.taps.front().d);
      high = std::max(high, (j1 - 1) * one.source_step + one.taps.back().d + 1);
    }
  }
  if (low > high) {
    low = high = 0;
  }
}

}  // namespace binade::kernels
