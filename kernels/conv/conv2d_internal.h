// The sizes of a conv2d call; checked_sizes() throws if the arguments do not fit each other.
#pragma once
#include <binade/kernels/conv/conv2d.h>

namespace binade::kernels {

// Sizes of one call, in the letters of kernels/conv/conv2d.h; group_c and group_o are per group.
struct Conv2dSizes {
  int64_t n, c, h, w, o, r, s, p, q, groups, group_c, group_o;
};

// Throws Error if views, bias or geometry do not fit each other.
Conv2dSizes checked_sizes(const Conv2dForward& a);
Conv2dSizes checked_sizes(const Conv2dBackwardData& a);
Conv2dSizes checked_sizes(const Conv2dBackwardWeight& a);

}  // namespace binade::kernels
