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

// A whole group of planes that stays in a near cache: `channels` adjacent planes of `inner`
// elements.
struct GroupPlanes {
  DType dtype;
  const void* x;
  int64_t inner, channels;
  const void* weight;  // C [channels] or null
  void* mean;          // C, of the group: written by the forward
  void* rstd;
};

struct GroupPlanesForward {
  GroupPlanes group;
  const void* bias;  // C [channels] or null
  void* y;
  double eps;
  bool nontemporal;  // a hint: y is large (base/strided.h)
};

struct GroupPlanesBackward {
  GroupPlanes group;
  const void* dy;
  void* dx;          // or null
  double* sum_dy;    // [channels], written
  double* sum_dy_x;  // [channels], written: sum dy (x - mean)
  bool nontemporal;  // a hint: dx is large
};

BINADE_ISA_KERNEL(group_norm_planes, const GroupPlanesForward& a)
BINADE_ISA_KERNEL(group_norm_planes_backward, const GroupPlanesBackward& a)
BINADE_ISA_KERNEL(moment_planes, const MomentRows& a)
BINADE_ISA_KERNEL(gradient_sum_planes, const GradientSumRows& a)
BINADE_ISA_KERNEL(normalize_planes, const NormalizeRows& a)
BINADE_ISA_KERNEL(group_norm_backward_planes, const GroupNormBackwardMap& a)
BINADE_ISA_KERNEL(group_norm_backward_rows, const GroupNormBackwardMap& a)

}  // namespace binade::kernels
