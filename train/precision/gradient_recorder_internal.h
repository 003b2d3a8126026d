// GradientRecorder: counts the exponents of the gradients of a backward, separately for those
// stored in 16 bits and for wider ones. Internal to train.
#pragma once
#include <binade/core/observe/observer.h>
#include <binade/core/tensor/create.h>
#include <binade/train/precision/scaler_log.h>

#include <unordered_map>

namespace binade::train {

// Counts that may still be on a device.
struct GradientCounts {
  Tensor narrow, wide;  // i64 [kExponentCounters], of f16 or bf16 and of wider tensors
  // The same for narrow gradients whose zeros rounding cannot have made; `narrow` leaves them out.
  Tensor chosen = {};
  DType narrow_dtype = DType::f16, wide_dtype = DType::f32;
};

// Reads each gradient once more, in backward, on the thread of the backward. It leaves out tensors
// of a single element (the loss).
//
// A zero may be a number that was flushed. But some ops' backwards only pass numbers on or replace
// them by 0 (relu, dropout, max pooling, ops that move data). If all parts of a gradient come from
// such ops, a zero is a masked element, or was zero before and was counted there.
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
// Empty if no gradient was counted, or if one of them was not finite. REQUIRES: `scale` is a
// power of two.
std::optional<GradientSizes> read_sizes(const GradientCounts& counts, double scale);

}  // namespace binade::train
