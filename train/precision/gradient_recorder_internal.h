// GradientRecorder counts the gradients of a backward: those stored in 16 bits, and the others.
// Internal to train.
#pragma once
#include <binade/core/observe/observer.h>
#include <binade/core/tensor/create.h>
#include <binade/train/precision/scaler_log.h>

#include <unordered_map>

namespace binade::train {

// Counts that may still be on a device.
struct GradientCounts {
  Tensor narrow, wide;  // i64 [kExponentCounters], of f16 or bf16 and of wider tensors
  // Of the narrow ones whose zeros no rounding made: these are not among `narrow`.
  Tensor chosen = {};
  DType narrow_dtype = DType::f16, wide_dtype = DType::f32;
};

// Reads each gradient once more, in backward, on the thread of the backward. It leaves out tensors
// of a single element (the loss).
//
// A zero may be a number that was flushed. It is none where every part of the gradient comes from
// the backward of an op that passes numbers on or replaces them by 0 (relu, dropout, max pooling,
// ops that move data): a zero there was chosen, or was one before and was counted there.
class GradientRecorder final : public OpObserver {
 public:
  void begin() {
    counts_ = {};
    parts_.clear();
  }
  GradientCounts take() {
    parts_.clear();
    return std::exchange(counts_, {});
  }
  void upstream(const GradientEvent& event) override;
  void gradients(const GradientEvent& event) override;

 private:
  enum Parts : uint8_t { chosen, computed };
  GradientCounts counts_;
  std::unordered_map<const Node*, Parts> parts_;  // of gradients on their way to these nodes
};

// The sizes of the narrow gradients if there are any, else of the wide ones. Waits for a device.
// Nothing if no gradient was counted, or if one of them was not finite. REQUIRES: `scale` is a
// power of two.
std::optional<GradientSizes> read_sizes(const GradientCounts& counts, double scale);

}  // namespace binade::train
