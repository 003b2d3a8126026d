// Kernels of group norm over planes: `channels` channels of `rows` adjacent elements each, whose
// planes begin x_stride elements apart. The arguments are those of the row kernels of batch norm
// (batch_norm_isa_internal.h), where rows hold one element of each channel. Also the map of the
// backward, for planes and rows.
#pragma once
#include <binade/kernels/norm/batch_norm_isa_internal.h>

namespace binade::kernels {

// dx = scale dy - shift - (x - mean) slope.
struct GroupNormBackwardMap {
  DType dtype;
  const void* x;
  const void* dy;
  void* dx;
  int64_t x_stride, dy_stride, dx_stride, rows, channels;
  const void* mean;  // C [channels], like the others
  const void* scale;
  const void* shift;
  const void* slope;
};

BINADE_ISA_KERNEL(moment_planes, const MomentRows& a)
BINADE_ISA_KERNEL(gradient_sum_planes, const GradientSumRows& a)
BINADE_ISA_KERNEL(normalize_planes, const NormalizeRows& a)
BINADE_ISA_KERNEL(group_norm_backward_planes, const GroupNormBackwardMap& a)
BINADE_ISA_KERNEL(group_norm_backward_rows, const GroupNormBackwardMap& a)

}  // namespace binade::kernels
