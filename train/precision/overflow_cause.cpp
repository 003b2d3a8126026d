#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/precision/overflow_cause.h>
#include <binade/train/precision/step_undo_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace binade::train {
namespace {

// The smallest scale that is tried. Gradients that are not finite there never are.
constexpr int kLeastPower = -24;

void add_anomaly(std::optional<Anomaly>& to, const AnomalyGuard& guard) {
  to = to ? to : guard.found();
}

// Goes on after a finding, and accepts the -inf of a mask.
constexpr AnomalyOptions kWatch{.throws = false, .written_infinities = false};

// Forward and backward of a micro-batch.
void run_batch(const StepToDiagnose& s, const StepBatch& micro, double scale, bool watched,
               StepRun& run) {
  generator() = micro.random;
  Tensor loss;
  {
    std::optional<AnomalyGuard> guard;
    if (watched) {
      guard.emplace(kWatch);
    }
    loss = s.step(s.model, micro.batch).loss;
    if (guard) {
      add_anomaly(run.forward, *guard);
    }
  }
  check_mean_loss("training", loss);
  run.loss += micro.weight * loss.item();
  if (&micro == s.batches.data()) {
    for (const auto& entry : stored_gradients(s.parameters)) {
      run.stale.push_back(entry.first);
    }
  }
  std::optional<AnomalyGuard> guard;
  if (watched) {
    guard.emplace(kWatch);
  }
  binade::backward(loss, full(loss.sizes(), scale * micro.weight, loss.dtype(), loss.device()),
                   {.scale = scale});
  if (guard) {
    add_anomaly(run.backward, *guard);
  }
}

// The largest power of two below `scale` at which the gradients are finite. If they are finite at a
// scale, they are at smaller ones too, so the search halves an interval of exponents.
double largest_fitting_scale(const StepToDiagnose& s) {
  int fits = kLeastPower, fails = static_cast<int>(std::ceil(std::log2(s.scale)));
  while (fails - fits > 1) {
    const int middle = (fits + fails) / 2 - ((fits + fails) % 2 < 0 ? 1 : 0);
    (run_step(s, std::exp2(middle), false).is_finite() ? fits : fails) = middle;
  }
  return std::exp2(fits);
}

std::string first_bad_field(const StepToDiagnose& s) {
  for (const StepBatch& micro : s.batches) {
    for (const std::string& name : micro.batch.names()) {
      if (!is_finite(micro.batch[name])) {
        return name;
      }
    }
  }
  return {};
}

// The sentence, without the cause's name.
std::string explain(const OverflowReport& r) {
  const std::string op = r.first ? r.first->text : "run again, no op shows it";
  switch (r.cause) {
    case OverflowCause::none: return "run again, the step is finite: it does not repeat";
    case OverflowCause::bad_data:
      return text(r.bad_tensor, " is not finite before the step; no scale helps");
    case OverflowCause::forward_overflow:
      return text("the loss is ", r.loss, ", so no scale helps: ", op);
    case OverflowCause::masked_overflow:
      return text("the loss is finite, but the forward pass is not, so no scale helps: ", op);
    case OverflowCause::scale_too_high:
      return text("the gradients are finite at a loss scale of ", r.fitting_scale, ", not at ",
                  r.scale, r.first ? ": " + r.first->text : "");
    case OverflowCause::stale_gradients:
      return text(r.bad_tensor,
                  " had gradients that are not of this step's scaled loss; clear "
                  "them with zero_grad, and go backward only from scaler.scale(loss)");
    case OverflowCause::zero_division:
      return text("the forward pass is finite and no scale helps: ", op);
  }
  return {};
}

// Sets the cause of a step whose run is not finite.
void find_cause(const StepToDiagnose& s, const StepRun& run, OverflowReport& report) {
  report.first = run.forward;
  if (!std::isfinite(run.loss)) {
    report.cause = OverflowCause::forward_overflow;
    return;
  }
  if (!run.stale.empty()) {
    report.cause = OverflowCause::stale_gradients;
    report.bad_tensor = list_names(run.stale);
    return;
  }
  if (run_step(s, std::exp2(kLeastPower), false).is_finite()) {
    report.cause = OverflowCause::scale_too_high;
    report.fitting_scale = largest_fitting_scale(s);
    report.first = run.backward;
    return;
  }
  report.cause = run.forward ? OverflowCause::masked_overflow : OverflowCause::zero_division;
  report.first = run.forward ? run.forward : run.backward;
}

}  // namespace

const char* to_string(OverflowCause cause) {
  constexpr const char* kNames[kOverflowCauses] = {"none",
                                                   "bad data",
                                                   "forward overflow",
                                                   "masked forward overflow",
                                                   "scale too high",
                                                   "stale gradients",
                                                   "division by zero in backward"};
  return kNames[static_cast<int>(cause)];
}

NamedTensors stored_gradients(const ParameterList& parameters) {
  NamedTensors all;
  for (const Parameter& parameter : parameters) {
    if (parameter.value.requires_grad() && parameter.leaf().has_grad) {
      all.emplace_back(parameter.name, parameter.leaf().buffer);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

bool StepRun::is_finite() const { return std::isfinite(loss) && not_finite == 0; }

StepRun run_step(const StepToDiagnose& s, double scale, bool watched) {
  const StepUndo undo(s);
  StepUndo::clear(s.parameters);
  StepRun run;
  for (const StepBatch& micro : s.batches) {
    run_batch(s, micro, scale, watched, run);
  }
  const NamedTensors gradients = stored_gradients(s.parameters);
  for (const auto& [name, gradient] : gradients) {
    const int64_t bad = count_not_finite(gradient);
    run.elements += gradient.numel();
    run.not_finite += bad;
    run.first_parameter = bad > 0 && run.first_parameter.empty() ? name : run.first_parameter;
  }
  run.gradients = watched ? state_hash(gradients) : "";
  return run;
}

OverflowReport diagnose_overflow(const StepToDiagnose& s) {
  check(!s.batches.empty() && s.scale > 0, "diagnose_overflow: got ", s.batches.size(),
        " batches and a scale of ", s.scale, ", expected at least one and a positive scale");
  OverflowReport report{.scale = s.scale};
  const StepRun run = run_step(s, s.scale, true);
  report.loss = run.loss;
  report.elements = run.elements;
  report.not_finite = run.not_finite;
  report.parameter = run.first_parameter;
  report.gradients = run.gradients;
  const std::string field = first_bad_field(s),
                    weight = field.empty() ? first_not_finite(s.model.state()) : "";
  if (!field.empty() || !weight.empty()) {
    report.cause = OverflowCause::bad_data;
    report.bad_tensor = field.empty() ? "the parameter or buffer " + weight
                                      : "the field " + field + " of the batch";
    report.first = run.forward;
  } else if (!run.is_finite()) {
    find_cause(s, run, report);
  } else if (!s.stale.empty()) {
    report.cause = OverflowCause::stale_gradients;
    report.bad_tensor = list_names(s.stale);
  }
  report.text = text(to_string(report.cause), ": ", explain(report));
  return report;
}

std::string describe(const Anomaly& a) {
  std::string out =
      text(a.in_backward ? "gradient from the backward of " : "result of ", a.op,
           a.module.empty() ? "" : " in module ", a.module, ", ", a.dtype, " ", a.sizes, ", at ",
           a.first, ": ", a.nan, " NaN and ", a.infinite, " infinite values in all\n");
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const AnomalyInput& input = a.inputs[i];
    out += text(a.in_backward ? "  gradient of the result" : text("  input ", i), ": ", input.dtype,
                " ", input.sizes, ", largest magnitude ", input.largest,
                input.value ? text(", there ", *input.value) : "", "\n");
  }
  return out;
}

}  // namespace binade::train
