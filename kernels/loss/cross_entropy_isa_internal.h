// Row kernels of cross entropy: `rows` rows of `classes` adjacent logits. C is the type of the
// compute dtype.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

struct CrossEntropyRows {
  DType dtype;
  const void* logits;
  int64_t stride, rows, classes;
  const int64_t* target;
  int64_t target_stride;
  const void* weight;  // C [classes] or null
  double weight_sum;   // the number of classes without weights
  int64_t ignore_index;
  double label_smoothing;
  void* row_loss;    // C [rows]
  void* row_weight;  // C [rows]
  void* lse;         // C [rows]
};

struct CrossEntropyRowsBackward {
  DType dtype;
  const void* logits;
  int64_t stride, rows, classes;
  const int64_t* target;
  int64_t target_stride;
  const void* weight;
  double weight_sum;
  int64_t ignore_index;
  double label_smoothing;
  const void* lse;        // C [rows]
  const void* row_scale;  // C [rows]
  void* dlogits;
  int64_t dlogits_stride;
  void* scratch;             // C [classes]
  bool nontemporal = false;  // a hint: dlogits are large (base/strided.h)
};

BINADE_ISA_KERNEL(cross_entropy_rows, const CrossEntropyRows& a)
BINADE_ISA_KERNEL(cross_entropy_rows_backward, const CrossEntropyRowsBackward& a)

}  // namespace binade::kernels
