// Finds the cause of an overflow: why the loss or the gradients of a step are not finite. The step
// runs again, under an AnomalyGuard and at other loss scales.
//
//   OverflowReport report = diagnose_overflow({.model = net, .step = my_step, ...});
//   report.cause     // scale_too_high: only then does a smaller scale help
//   report.text      // one sentence that names the op, or the tensor, and the scale that fits
//
// The step must not change anything but the model. Afterwards random numbers and buffers are
// restored, and the gradients are cleared.
#pragma once
#include <binade/core/observe/anomaly.h>
#include <binade/core/tensor/create.h>
#include <binade/data/batch.h>
#include <binade/train/step.h>

#include <optional>
#include <string>
#include <vector>

namespace binade::train {

enum class OverflowCause : uint8_t {
  none,              // run again, the step is finite
  bad_data,          // a field of the batch, or a weight, is not finite
  forward_overflow,  // an op of the forward pass gave inf or NaN, and so did the loss
  masked_overflow,   // the same, but the loss is finite: tanh(inf) is 1, relu(-inf) is 0
  scale_too_high,    // at a smaller loss scale the gradients are finite
  stale_gradients,   // gradients from a backward that was not of the scaled loss
  zero_division,     // a backward divides by zero: at no scale are the gradients finite
};
inline constexpr int kOverflowCauses = 7;
const char* to_string(OverflowCause cause);  // "forward overflow"

// A micro-batch of a step.
struct StepBatch {
  data::Batch batch;      // on the model's device
  double weight = 1;      // the share of its loss in the window
  Generator random = {};  // the generator before its forward
};

struct StepToDiagnose {
  nn::Module& model;
  const TrainingStep& step;
  ParameterList parameters;  // whose gradients the step takes
  std::vector<StepBatch> batches;
  double scale = 1;                     // the loss scale; 1 without one
  std::vector<std::string> stale = {};  // parameters that had a gradient before the step
  // nn::format_histories() before the step; none: those that the model has now.
  std::optional<NamedTensors> scales = {};
};

// A run of a step at one loss scale.
struct StepRun {
  double loss = 0;                       // the weighted sum over the micro-batches
  int64_t elements = 0, not_finite = 0;  // of the gradients
  std::string first_parameter = {};      // the first one whose gradient is not finite
  std::vector<std::string> stale = {};   // parameters that the step itself gave gradients
  std::optional<Anomaly> forward = {}, backward = {};  // the first ones; if it is watched
  std::string gradients = {};                          // state_hash() of them; if it is watched
  bool is_finite() const;
};

struct OverflowReport {
  OverflowCause cause = OverflowCause::none;
  double loss = 0;
  double scale = 1;          // of the step
  double fitting_scale = 0;  // the largest power of two at which the gradients are finite; 0: none
  int64_t elements = 0, not_finite = 0;  // of the gradients at `scale`
  std::string parameter = {};            // the first whose gradient is not finite
  std::string bad_tensor = {};           // of bad data: "images", "fc1.weight"
  std::optional<Anomaly> first = {};     // the first bad element, and what it was computed from
  std::string gradients = {};            // state_hash() of the gradients at `scale`
  std::string text = {};
};

OverflowReport diagnose_overflow(const StepToDiagnose& step);

// The gradients that the parameters have now, by name, as they are stored: multiplied by the scale
// of their backward.
NamedTensors stored_gradients(const ParameterList& parameters);

// Runs the step once, with gradients at this scale, and clears them. `watched`: under guards.
StepRun run_step(const StepToDiagnose& step, double scale, bool watched);
// The first bad element with its inputs, as lines of text.
std::string describe(const Anomaly& anomaly);

}  // namespace binade::train
