// The recursions of ctc_loss for one sample. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

// C is the type of the dtype `compute`.
struct CtcSample {
  DType compute;
  const void* log_probs;  // C, with time_stride between times
  int64_t time_stride, times, classes;
  const int64_t* state_class;  // [states]
  const void* skip;            // C [states]: 0 if state s may follow s - 2, else minus infinity
  int64_t states;
  void* alpha;  // C [times, alpha_stride]
  int64_t alpha_stride;
  void* scratch;  // C [4 (states + 2) + classes]
};

// Computes alpha and the negative log-likelihood, as double.
BINADE_ISA_KERNEL(ctc_forward, const CtcSample& sample, double* nll)
// dlogits = scale (softmax - posterior of the classes) for each time.
struct CtcGradient {
  double scale;
  std::byte* dlogits;
  int64_t time_stride, class_stride;  // bytes
  DType dtype;
};
BINADE_ISA_KERNEL(ctc_backward, const CtcSample& sample, const CtcGradient& gradient)

}  // namespace binade::kernels
