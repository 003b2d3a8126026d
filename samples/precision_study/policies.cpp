// One table over the policies O0 to O3.
#include <cmath>

#include "experiment.h"
#include "gradients.h"
#include "training.h"

namespace study {
namespace {

constexpr double kSameLoss = 0.01, kWorse = 0.03;
constexpr double kLossFactor = 0x1p-18, kLossScale = 0x1p16;
constexpr int64_t kLook = 50;  // steps between looks at gradients and updates

struct Arm {
  const char* name;
  Precision precision;
  double scale;
  bool must_match;
};

// Parameters and their masters.
int64_t weight_bytes(const Task& task, const Precision& precision) {
  const auto model = task.make_model();
  model->to(Device{}, precision);
  return model->parameter_count() *
         ((precision.low_weights() ? 2 : 4) + (precision.masters() ? 4 : 0));
}

// The measured losses of an arm: the share of O0's gradients that its dtype and scale flush, and
// the share of the updates of its own run that changed nothing.
struct Losses {
  double flushed, swallowed;
};
Losses losses_of(const Arm& arm, const Run& base, const Run& run) {
  ExponentCounts gradients = base.activation_gradients;
  gradients.add(base.weight_gradients);
  const bool f16 = arm.precision.policy != Precision::kFull && arm.precision.low == DType::f16;
  return {f16 ? flushed(gradients, arm.scale) : 0,  // bf16 has the exponents of f32
          run.updates ? static_cast<double>(run.swallowed) / static_cast<double>(run.updates) : 0};
}

// SGD with a small step and a small loss: one recipe that needs both mechanisms.
void study_model(const Task& task, const Lab& lab, double lr, int64_t steps, Report& report) {
  const auto mixed = [&](DType low) {
    return lab.broken ? Precision::half(low) : Precision::mixed(low);
  };
  const Arm arms[] = {{"O0 f32", Precision::full(), kUnscaled, false},
                      {"O1 autocast f16", Precision::autocast(DType::f16), kLossScale, true},
                      {"O2 mixed f16", mixed(DType::f16), kLossScale, true},
                      {"O2 mixed f16, no scale", mixed(DType::f16), kUnscaled, false},
                      {"O3 half f16", Precision::half(DType::f16), kLossScale, false},
                      {"O1 autocast bf16", Precision::autocast(DType::bf16), kUnscaled, true},
                      {"O2 mixed bf16", mixed(DType::bf16), kUnscaled, true},
                      {"O3 half bf16", Precision::half(DType::bf16), kUnscaled, false}};
  Table table{.caption = task.name + ", SGD, " + std::to_string(steps) + " steps",
              .head = {"policy", "test loss", "against O0", "test accuracy", "kept for backward",
                       "weights and masters", "gradients flushed", "updates swallowed"},
              .rows = {}};
  Run base;
  for (const Arm& arm : arms) {
    const Run run = train_model(task, {.precision = arm.precision,
                                       .loss_scale = arm.scale,
                                       .lr = lr * task.step_factor,
                                       .momentum = 0.9,
                                       .steps = steps,
                                       .lens = arm.precision.policy == Precision::kFull ? kLook : 0,
                                       .count_updates = kLook,
                                       .loss_factor = kLossFactor});
    if (arm.precision.policy == Precision::kFull) {
      base = run;
    }
    const double excess = run.test_loss / base.test_loss - 1;
    const Losses lost = losses_of(arm, base, run);
    table.rows.push_back({arm.name, fixed(run.test_loss, 4), percent(excess), percent(run.accuracy),
                          bytes(static_cast<double>(run.saved_bytes)),
                          bytes(static_cast<double>(weight_bytes(task, arm.precision))),
                          percent(lost.flushed), percent(lost.swallowed)});
    const std::string name = task.name + ", " + arm.name + ": test loss / O0 - 1";
    if (arm.must_match) {
      // autocast keeps f32 weights and needs no masters
      report.at_most(name, excess, kSameLoss).by_mechanism =
          arm.precision.policy != Precision::kAutocast;
    } else if (arm.precision.policy != Precision::kFull) {
      report.at_least(name, excess, kWorse);
    }
  }
  report.tables.push_back(table);
}

void run(const Lab& lab, Report& report) {
  study_model(cnn_task(lab.data), lab, 1e-3, 500, report);
  study_model(mlp_task(lab.data), lab, 1e-3, 2000, report);
}

}  // namespace

const Experiment kPolicies{
    .name = "policies",
    .title = "What O1, O2 and O3 break",
    .section = "sections 3.1 to 3.3; the levels are those of NVIDIA Apex",
    .claim =
        "f16 storage with f32 masters, a loss scale and f32 accumulation matches f32 training; "
        "without one of them some networks do not train.",
    .method =
        "A CNN and an MLP under every policy, in f16 and bf16, with small steps (where masters "
        "matter) and a loss divided by 2^18 (where the scale matters to f16).",
    .mechanism = "the f32 masters of O2",
    .run = run};

}  // namespace study
