#include <binade/core/ops.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/nn/format_histories.h>
#include <binade/train/precision/black_box.h>

#include <bit>
#include <cmath>
#include <map>

namespace binade::train {
namespace {

// A model with the recorded weights, and the recorded batches as that model takes them.
struct Restored {
  std::unique_ptr<nn::Module> model;
  std::vector<StepBatch> batches;
  StepToDiagnose step(const TrainingStep& step, double scale) const {
    return {.model = *model,
            .step = step,
            .parameters = model->parameters(),
            .batches = batches,
            .scale = scale,
            .stale = {}};
  }
};

// The stored weights are the rounded masters, unless the program changed them since.
void take_stored_bits(nn::Module& model, const BlackBox& box) {
  const NoGradGuard guard;
  const std::map<std::string, Tensor> stored(box.stored.begin(), box.stored.end());
  for (const auto& [name, tensor] : model.state()) {
    const Tensor& value = stored.at(name);
    if (value.dtype() == tensor.dtype()) {
      Tensor(tensor).copy_(value.to(tensor.device()));
    }
  }
}

Restored restore(const BlackBox& box, const MakeModel& make, Device device,
                 const Precision& precision) {
  Restored restored{.model = make(), .batches = {}};
  check(restored.model != nullptr, "black box: got no model from the function that makes it");
  nn::Module& model = *restored.model;
  model.to(device, precision);
  model.load_state(box.exact);
  take_stored_bits(model, box);
  nn::load_format_histories(model, box.scales);
  check(model.training_modes().size() == box.modes.size(), "black box: got a model of ",
        model.training_modes().size(), " modules, expected the recorded one of ", box.modes.size());
  model.set_training_modes(box.modes);
  for (const StepBatch& micro : box.batches) {
    restored.batches.push_back({micro.batch.to(device), micro.weight, micro.random});
  }
  return restored;
}

void to_f64(Restored& restored, const BlackBox& box) {
  restored.model->to(DType::f64);
  restored.model->load_state(box.exact);
  restored.model->set_training_modes(box.modes);
  for (StepBatch& micro : restored.batches) {
    for (const std::string& name : micro.batch.names()) {
      const Tensor& field = micro.batch[name];
      if (is_floating(field.dtype())) {
        micro.batch.set(name, field.to(DType::f64));
      }
    }
  }
}

BlackBoxRun run_of(std::string what, const StepRun& run) {
  const std::optional<Anomaly>& first = run.forward ? run.forward : run.backward;
  return {.what = std::move(what),
          .is_finite = run.is_finite(),
          .loss = run.loss,
          .first = !run.is_finite() && first ? first->text : ""};
}

// If a run throws, its result is not finite and has the reason.
template <class F>
BlackBoxRun try_run(const std::string& what, F&& run) {
  try {
    return run_of(what, run());
  } catch (const Error& error) {
    return {.what = what, .is_finite = false, .loss = NAN, .first = error.what()};
  }
}

class Replayer {
 public:
  Replayer(const BlackBox& box, const MakeModel& make, const TrainingStep& step, Device device)
      : box_(box), make_(make), step_(step), device_(device) {}

  OverflowReport report() const {
    const Restored restored = restore(box_, make_, device_, box_.precision);
    StepToDiagnose step = restored.step(step_, box_.scale);
    step.stale = box_.stale;
    return diagnose_overflow(step);
  }

  std::vector<BlackBoxRun> wider() const {
    std::vector<BlackBoxRun> runs;
    for (const bool f64 : {false, true}) {
      runs.push_back(try_run(f64 ? "in f64" : "in f32", [&] {
        Restored restored = restore(box_, make_, device_, Precision::full());
        if (f64) {
          to_f64(restored, box_);
        }
        return run_step(restored.step(step_, 1), 1, true);
      }));
    }
    return runs;
  }

  std::vector<BlackBoxRun> cures(const OverflowReport& report) const {
    std::vector<BlackBoxRun> runs;
    if (report.cause == OverflowCause::none) {
      return runs;
    }
    const double scale = report.fitting_scale > 0 ? report.fitting_scale : 0x1p-24;
    runs.push_back(
        try_run(text("loss scale ", scale), [&] { return with_precision(box_.precision, scale); }));
    if (report.first && box_.precision.acts()) {
      add_rules(*report.first, runs);
    }
    return runs;
  }

 private:
  StepRun with_precision(const Precision& precision, double scale) const {
    const Restored restored = restore(box_, make_, device_, precision);
    return run_step(restored.step(step_, scale), scale, true);
  }

  void add_rules(const Anomaly& first, std::vector<BlackBoxRun>& runs) const {
    const auto add = [&](const std::string& what, const PrecisionRule& rule) {
      runs.push_back(
          try_run(what, [&] { return with_precision(box_.precision.with({rule}), box_.scale); }));
    };
    const std::string place = first.module.empty() ? "" : " in module " + first.module;
    if (first.op != "cast" && first.op != "policy_cast") {
      add(text(first.op, place, " in f32"),
          {.op = first.op, .module = first.module, .dtype = DType::f32});
    }
    if (!first.module.empty()) {
      add(text("module ", first.module, " in f32"), {.module = first.module, .dtype = DType::f32});
      const size_t dot = first.module.find('.');
      if (dot != std::string::npos) {
        const std::string top = first.module.substr(0, dot);
        add(text("module ", top, " in f32"), {.module = top, .dtype = DType::f32});
      }
    }
    add("every op in f32", {.op = "*", .dtype = DType::f32});
  }

  const BlackBox& box_;
  const MakeModel& make_;
  const TrainingStep& step_;
  Device device_;
};

std::string line_of(const BlackBoxRun& run) {
  return text("  ", run.what, ": ", run.is_finite ? "finite" : "not finite", ", loss ",
              std::isnan(run.loss) ? std::abs(run.loss) : run.loss, run.first.empty() ? "" : "; ",
              run.first, "\n");
}

}  // namespace

BlackBoxReplay replay(const BlackBox& box, const MakeModel& make, const TrainingStep& step,
                      Device device) {
  const Replayer replayer(box, make, step, device);
  BlackBoxReplay result{.report = replayer.report(),
                        .bit_equal = false,
                        .loss_error = 0,
                        .wider = replayer.wider(),
                        .cures = {}};
  const double now = result.report.loss;
  result.bit_equal = std::bit_cast<uint64_t>(now) == std::bit_cast<uint64_t>(box.loss) &&
                     result.report.gradients == box.gradients;
  if (std::isfinite(now) && std::isfinite(box.loss) && now != box.loss) {
    result.loss_error = std::abs(now - box.loss) / std::max(std::abs(box.loss), 1e-300);
  }
  result.cures = replayer.cures(result.report);
  return result;
}

std::string to_text(const BlackBox& box) {
  std::string samples;
  for (const StepBatch& micro : box.batches) {
    for (const int64_t index : micro.batch.indices) {
      samples += text(samples.empty() ? "" : ", ", index);
    }
  }
  constexpr size_t kShown = 200;
  return text(
      "step ", box.step, " in ", to_string(box.precision), " on ", box.device, ", loss scale ",
      box.scale, ", loss ", std::isnan(box.loss) ? std::abs(box.loss) : box.loss, ", samples ",
      samples.size() > kShown ? samples.substr(0, samples.rfind(',', kShown)) + ", ..." : samples,
      "\n", "found by the run: ", box.cause, "\n", box.first);
}

std::string to_text(const BlackBox& box, const BlackBoxReplay& r) {
  std::string out = text(to_text(box), "run again: ", r.report.text, "\n",
                         r.bit_equal ? "  loss and all gradients have the recorded bits\n"
                                     : text("  not the recorded bits; the losses differ by ",
                                            r.loss_error, " of their size\n"),
                         r.report.not_finite > 0
                             ? text("  ", r.report.not_finite, " of ", r.report.elements,
                                    " elements of the gradients are not finite, the first in ",
                                    r.report.parameter, "\n")
                             : "",
                         r.report.first ? "first bad element: " + describe(*r.report.first) : "",
                         "the same step with other arithmetic, without a loss scale:\n");
  for (const BlackBoxRun& run : r.wider) {
    out += line_of(run);
  }
  out += r.cures.empty() ? "" : "cures that were tried:\n";
  for (const BlackBoxRun& run : r.cures) {
    out += line_of(run);
  }
  if (r.report.not_finite > 0) {
    out += text(
        "  clipping: a norm that is not finite cannot be clipped; AtFloor::clip would "
        "replace ",
        r.report.not_finite, " elements, ",
        100 * static_cast<double>(r.report.not_finite) /
            static_cast<double>(std::max<int64_t>(r.report.elements, 1)),
        "% of all\n");
  }
  return out;
}

}  // namespace binade::train
