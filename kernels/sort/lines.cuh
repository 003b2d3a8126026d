// The lines of views along a dimension on a device, where a thread walks a line.
#pragma once
#include <binade/kernels/cuda/strided.cuh>

namespace binade::kernels {

template <int kOperands>
struct LinePlan {
  StridedIndex<kOperands> lines;  // the first element of each line
  int64_t n;                      // along the dimension
  int64_t step[kOperands] = {};   // in bytes
};

// Views of equal sizes that are not empty; the first ones are written.
template <int kOperands>
LinePlan<kOperands> plan_of_lines(const char* kernel, const View* const (&views)[kOperands],
                                  int dim) {
  View first[kOperands];  // with size 1 along the dimension
  for (int i = 0; i < kOperands; ++i) {
    first[i] = *views[i];
    first[i].numel = views[i]->numel / views[i]->size(dim);
    first[i].sizes[dim] = 1;
  }
  const auto loop = [&] {
    if constexpr (kOperands == 2) {
      return StridedLoop(kernel, {&first[0], &first[1]});
    } else {
      return StridedLoop(kernel, {&first[0], &first[1], &first[2]});
    }
  };
  LinePlan<kOperands> p = {.lines = StridedIndex<kOperands>(loop()), .n = views[0]->size(dim)};
  for (int i = 0; i < kOperands; ++i) {
    p.step[i] = views[i]->strides[dim] * static_cast<int64_t>(size_of(views[i]->dtype));
  }
  return p;
}

}  // namespace binade::kernels
