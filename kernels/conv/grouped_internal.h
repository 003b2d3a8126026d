// Direct convolution of groups with few channels on the CPU, depthwise convolution among them. A
// vector holds adjacent channels of a channels-last pixel, so it spans several groups.
//
// With groups of `width` channels in and out, lane j of a group is input channel j, and accumulator
// k sums the contribution of this channel to output channel (j + k) mod width:
//   a_k[j] = sum over taps of x[j] * w[(j + k) mod width][j],   y[j] = sum_k a_k[(j - k) mod
//   width].
// So the loop over taps has only loads and multiply-adds; lanes are permuted once at the end. The
// gradient of the weight is dw[(j + k) mod width][j] = sum over pixels of x[j] dy[(j + k) mod
// width].
//
// If a group has other counts of input and output channels, width is their greatest common divisor.
// The source is then expanded: for each of reduced / width phases, lane j of every block of width
// output channels is input channel phase * width + j of the group, and a phase counts as further
// taps.
//
// Pixels outside the image are skipped, so nothing is padded. Every output is one chain of
// additions over its taps for every k: bits do not depend on how pixels are shared among tiles and
// threads.
//
// Internal to kernels/.
#pragma once
#include <binade/kernels/conv/conv2d_correlation_internal.h>
#include <binade/kernels/conv/conv2d_internal.h>
#include <binade/kernels/conv/grouped_isa_internal.h>

#include <vector>

namespace binade::kernels {

// REQUIRES: reduced and produced are at least 1.
GroupedLanes grouped_lanes(DType compute, int64_t groups, int64_t reduced, int64_t produced);

// The rule: the direct kernel runs if its vectors are fuller than those of a product per group,
// whose columns are the output channels of one group. It depends on the channels and the
// instruction set only.
bool grouped_pays(const GroupedLanes& lanes);

// The source channel of every element of an expanded pixel.
std::vector<int32_t> expanded_channels(const GroupedLanes& lanes);

// Lane permutations [slots][lanes]: entry k takes lane (j + sign * k) mod width of the same group.
std::vector<int32_t> lane_rotations(const GroupedLanes& lanes, int sign);

// The three directions. REQUIRES: grouped_pays().
void grouped_correlate(const Correlation& c, const GroupedLanes& lanes);
void grouped_backward_weight(const Conv2dBackwardWeight& a, const Conv2dSizes& size,
                             const GroupedLanes& lanes);

}  // namespace binade::kernels
