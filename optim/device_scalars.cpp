#include <binade/optim/device_scalars_internal.h>
#include <binade/optim/step_result.h>

#include <cmath>

namespace binade::optim {
namespace {

// A position is exact in a double: (arena * kSegments + segment) * kElements + offset.
constexpr double kSegments = 8, kElements = 0x1p40;

}  // namespace

const char* to_string(StepOutcome outcome) {
  constexpr const char* kName[] = {"applied", "overflow", "accumulating"};
  return kName[static_cast<int>(outcome)];
}

StepOutcome StepResult::value() const {
  if (!known()) {
    const double outcome = device_outcome_.item();
    if (outcome == kernels::kStepHalted) {
      scaler_->throw_if_halted();  // another result of the same halt may have thrown before
    }
    outcome_ = outcome == kernels::kStepApplied ? StepOutcome::applied : StepOutcome::overflow;
    device_outcome_ = {};
  }
  return outcome_;
}

DeviceScaler::DeviceScaler(Device device, const kernels::ScaleRule& rule,
                           const kernels::ScalerScalars& step_scalars)
    : device(device),
      rule(rule),
      step_scalars(make_device_scalars(step_scalars, device)),
      tag(empty({1}, DType::f64, device)) {}

const Tensor& DeviceScaler::tag_for_backward() {
  if (tag_is_old && !tag.sole_owner()) {
    tag = empty({1}, DType::f64, device);
  }
  tag_is_old = false;
  went_backward = true;
  return tag;
}

double DeviceScaler::position(const std::shared_ptr<Arena>& arena, int segment, int64_t offset) {
  size_t index = 0;
  while (index < arenas.size() && arenas[index].lock() != arena) {
    ++index;
  }
  if (index == arenas.size()) {
    arenas.push_back(arena);
  }
  return (static_cast<double>(index) * kSegments + segment) * kElements +
         static_cast<double>(offset);
}

std::string DeviceScaler::parameter_at(double position) const {
  const double place = std::floor(position / kElements);
  const auto offset = static_cast<int64_t>(position - place * kElements);
  const auto index = static_cast<size_t>(place / kSegments);
  const auto segment = static_cast<int>(std::fmod(place, kSegments));
  if (const std::shared_ptr<Arena> arena = index < arenas.size() ? arenas[index].lock() : nullptr) {
    for (const Parameter& parameter : arena->parameters()) {
      if (parameter.segment == segment && offset >= parameter.offset &&
          offset < parameter.offset + parameter.numel()) {
        return parameter.name;
      }
    }
  }
  return "a parameter that is gone";
}

void DeviceScaler::throw_if_halted() {
  const auto now = read_device_scalars<kernels::ScalerScalars>(step_scalars);
  if (now.halted == 0) {
    return;
  }
  scalar_at(step_scalars, offsetof(kernels::ScalerScalars, halted) / sizeof(double)).fill_(0);
  throw OverflowAtFloor(explain({.parameter = parameter_at(now.overflow_position),
                                 .scale = now.scale,
                                 .stale = now.halted == 2,
                                 .loss = now.halted_loss}),
                        static_cast<int64_t>(now.halted_after));
}

std::string explain(const FloorError& error) {
  const size_t dot = error.parameter.rfind('.');
  const std::string layer =
      dot == std::string::npos ? "" : " (layer " + error.parameter.substr(0, dot) + ")";
  const std::string what =
      text("loss scaler: the gradient of ", error.parameter, layer,
           " is not finite at the smallest scale, ", error.scale, "; nothing was updated. Cause: ");
  if (error.stale) {
    return what +
           "stale gradients: some come from a backward without this scale; clear them with "
           "zero_grad, and go backward only from scaler.scale(loss)";
  }
  if (std::isnan(error.loss)) {
    return what +
           "bad data or forward overflow: the loss itself is NaN, so no scale helps. Inputs, "
           "labels or weights hold NaN, or the forward pass overflowed on its way to NaN (inf - "
           "inf, inf / inf): train::diagnose_overflow tells which, and names the op";
  }
  if (std::isinf(error.loss)) {
    return what +
           "forward overflow: the loss itself is infinite, so no scale helps; the forward pass "
           "left the range of its dtype, or the model diverged: train::diagnose_overflow names "
           "the op";
  }
  if (error.scale > 1) {
    return what +
           "scale too high: it is more than these gradients bear and may not fall; lower "
           "min_scale (for a fixed scale, the scale)";
  }
  return what +
         "masked forward overflow or division by zero: the loss is finite and the scale cannot be "
         "to blame, so a value overflowed within a layer and was masked (tanh(inf) is 1), or a "
         "backward divides by zero; train::diagnose_overflow tells which, and names the op. In "
         "half precision a step in fp32 tells whether the dtype is to blame";
}

}  // namespace binade::optim
