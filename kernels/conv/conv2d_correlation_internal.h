// Forward and backward to the data as one problem: a correlation of a source with a kernel, which
// gives the channels `produced` from the channels `reduced` of every group. Internal to the CPU's
// conv2d.
#pragma once
#include <binade/kernels/base/weight_packing.h>
#include <binade/kernels/conv/conv2d_axis_internal.h>
#include <binade/kernels/gemm/tile_epilogue_internal.h>

namespace binade::kernels {

struct Correlation {
  const View& source;  // [N, groups * reduced, ...]
  const View& target;  // [N, groups * produced, ...]
  const View& w;
  int64_t groups, reduced, produced;                      // channels per group
  int64_t reduced_stride, produced_stride, group_stride;  // of w
  Axis vertical, horizontal;
  TileEpilogue epilogue = {};        // its operand has the target's layout
  WeightPacking* packing = nullptr;  // keeps packed weights; null: none are kept
};

// Calls with fewer operations than this run on one thread.
inline constexpr double kSerialConvolutionFlops = 1.5e6;

}  // namespace binade::kernels
