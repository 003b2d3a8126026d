// Row kernels of cross entropy with probabilities: `rows` rows of `classes` adjacent elements. C is
// the type of the compute dtype.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

struct SoftCrossEntropyRows {
  DType dtype;
  const void* logits;
  int64_t stride;
  const void* target;
  int64_t target_stride, rows, classes;
  const void* weight;  // C [classes] or null
  double label_smoothing;
  void* row_loss;         // C [rows], null in the backward
  const void* row_scale;  // C [rows], null in the forward
  void* dlogits;
  int64_t dlogits_stride;
  void* scratch;  // C [classes] for the backward
};
BINADE_ISA_KERNEL(soft_cross_entropy_rows, const SoftCrossEntropyRows& a)

}  // namespace binade::kernels
