// GradientRecorder counts the gradients of a backward: those stored in 16 bits, and the others.
// Internal to train.
#pragma once
#include <binade/core/observe/observer.h>
#include <binade/core/tensor/create.h>
#include <binade/train/precision/scaler_log.h>

namespace binade::train {

// Counts that may still be on a device.
struct GradientCounts {
  Tensor narrow, wide;  // i64 [kExponentCounters], of f16 or bf16 and of wider tensors
  DType narrow_dtype = DType::f16, wide_dtype = DType::f32;
};

// Reads each gradient once more, in backward, on the thread of the backward. It leaves out tensors
// of a single element (the loss).
class GradientRecorder final : public OpObserver {
 public:
  void begin() { counts_ = {}; }
  GradientCounts take() { return std::exchange(counts_, {}); }
  void upstream(const GradientEvent& event) override;

 private:
  GradientCounts counts_;
};

// The sizes of the narrow gradients if there are any, else of the wide ones. Waits for a device.
// Nothing if no gradient was counted, or if one of them was not finite. REQUIRES: `scale` is a
// power of two.
std::optional<GradientSizes> read_sizes(const GradientCounts& counts, double scale);

}  // namespace binade::train
