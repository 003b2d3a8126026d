#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/train/loop/run_parts_internal.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace binade::train {
namespace {

bool is_word(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

void check_parts(const TrainingParts& parts, const TrainerOptions& options) {
  check(parts.optimizer.is_given() != !parts.phases.empty(), "trainer: got ",
        parts.optimizer.is_given() ? "an optimizer and phases" : "no optimizer",
        ", expected TrainingParts::optimizer, or phases that have one each");
  if (parts.phases.empty()) {
    return;
  }
  check(!options.step && !parts.scaler && !parts.schedule.existing() && !parts.schedule.make(),
        "trainer: got phases, and a step, a scaler or a schedule for the whole run; expected them "
        "in the phases that they are for");
  std::set<std::string> names;
  std::set<const void*> used;
  for (const TrainingPhase& phase : parts.phases) {
    check(is_word(phase.name) && names.insert(phase.name).second, "trainer: got a phase named '",
          phase.name, "', expected a name of letters, digits and _ that no other phase has");
    check(phase.step && phase.optimizer.is_given() && phase.every >= 1, "trainer: the phase ",
          phase.name, " has ",
          !phase.step                   ? "no step"
          : !phase.optimizer.is_given() ? "no optimizer"
                                        : "an `every` below 1",
          ", expected a step, an optimizer and an `every` of at least 1");
    for (const void* part : {static_cast<const void*>(phase.optimizer.existing()),
                             static_cast<const void*>(phase.scaler)}) {
      check(!part || used.insert(part).second, "trainer: the phase ", phase.name, " has the ",
            part == phase.scaler ? "loss scaler" : "optimizer",
            " of another phase, expected its own");
    }
  }
}

std::string describe(const std::optional<Precision>& precision) {
  return to_string(precision.value_or(Precision::full()));
}

// Moves and converts the model. `made`: no optimizer exists yet.
void prepare_model(nn::Module& model, const TrainerOptions& options, bool made) {
  const Device before = model.device(), device = options.device.value_or(before);
  const Precision precision =
      options.precision.value_or(model.precision().value_or(Precision::full()));
  const bool other_precision =
      options.precision && !(precision == model.precision().value_or(Precision::full()));
  if (device == before && !other_precision) {
    return;
  }
  check(made, "trainer: got a model in ", describe(model.precision()), " on ", to_string(before),
        ", and an optimizer of it, for a run in ", describe(precision), " on ", to_string(device),
        "; move the model before the optimizer is made, or give the Trainer a function that makes "
        "the optimizer");
  const NamedTensors parameters = model.named_parameters();
  const bool f64 = !parameters.empty() && parameters[0].second.dtype() == DType::f64;
  model.to(device, precision);
  if (f64 && !options.precision) {
    model.to(DType::f64);
  }
}

bool needs_scaler(const nn::Module& model) {
  const Precision precision = model.precision().value_or(Precision::full());
  return precision.policy != Precision::kFull && precision.low == DType::f16;
}

// Makes the part that follows the optimizer, or takes the existing one.
template <class T>
T* resolve(const OptimizerFollower<T>& part, optim::Optimizer& optimizer, std::unique_ptr<T>& own) {
  if (part.make()) {
    own = part.make()(optimizer);
    return own.get();
  }
  return part.existing();
}

// Warns of f16 gradients without a loss scale, since small ones silently become 0.
void warn_of_no_scaler(const Phase& phase, const nn::Module& model) {
  if (!phase.scaler && needs_scaler(model)) {
    warn(text("trainer: the model", phase.words(), " is in ", describe(model.precision()),
              " and has no loss scaler: gradients below 2^-25 become 0 and one that overflows is "
              "an error; give TrainingParts::scaler (LossScaler::fixed(1) if that is meant), or "
              "use bf16"));
  }
}

std::unique_ptr<Phase> resolve(const TrainingPhase& part, nn::Module& model,
                               const TrainerOptions& options) {
  auto phase = std::make_unique<Phase>();
  phase->name = part.name;
  phase->step = part.step;
  phase->every = part.every;
  phase->optimizer = part.optimizer.existing();
  if (part.optimizer.make()) {
    phase->own_optimizer = part.optimizer.make()(model.parameters());
    check(phase->own_optimizer != nullptr, "trainer: the function that makes the optimizer",
          phase->words(), " returned none");
    phase->optimizer = phase->own_optimizer.get();
  }
  if (options.low_updates != LowUpdates::nearest) {
    phase->optimizer->set_low_updates(options.low_updates, options.low_updates_seed);
  }
  phase->scaler = part.scaler;
  if (options.precision && !part.scaler && needs_scaler(model)) {
    phase->own_scaler = std::make_unique<optim::LossScaler>();
    phase->scaler = phase->own_scaler.get();
  }
  warn_of_no_scaler(*phase, model);
  phase->schedule = resolve(part.schedule, *phase->optimizer, phase->own_schedule);
  phase->applied_before = phase->optimizer->step_count();
  return phase;
}

}  // namespace

ParameterList Phase::parameters() const {
  std::vector<Parameter> all;
  for (size_t i = 0; i < optimizer->group_count(); ++i) {
    const ParameterList& group = optimizer->parameters(i);
    all.insert(all.end(), group.begin(), group.end());
  }
  return {optimizer->parameters(0).arena(), std::move(all)};
}

RunParts::RunParts(const TrainingParts& parts, const TrainerOptions& options) : model(parts.model) {
  check_parts(parts, options);
  std::vector<TrainingPhase> all = parts.phases;
  if (all.empty()) {
    all.push_back({.name = "",
                   .optimizer = parts.optimizer,
                   .step = options.step ? options.step : TrainingStep(classification_step),
                   .scaler = parts.scaler,
                   .schedule = parts.schedule});
  }
  const bool made = std::none_of(all.begin(), all.end(), [](const TrainingPhase& phase) {
    return phase.optimizer.existing() != nullptr;
  });
  prepare_model(model, options, made);
  for (const TrainingPhase& phase : all) {
    phases.push_back(resolve(phase, model, options));
  }
  plateau = resolve(parts.plateau, optimizer(), own_plateau);
  ema = parts.ema.existing();
  if (parts.ema.options()) {
    own_ema = std::make_unique<Ema>(model, *parts.ema.options());
    ema = own_ema.get();
  }
}

bool RunParts::has_scaler() const {
  return std::any_of(phases.begin(), phases.end(),
                     [](const auto& phase) { return phase->scaler != nullptr; });
}

int64_t RunParts::skipped(int64_t steps) const {
  int64_t all = 0;
  for (const auto& phase : phases) {
    all += phase->skipped(steps);
  }
  return all;
}

NamedTensors RunParts::optimizer_tensors() const {
  NamedTensors all;
  for (const auto& phase : phases) {
    for (auto& [name, tensor] : phase->optimizer->state_tensors()) {
      all.emplace_back(phase->name.empty() ? name : phase->name + "/" + name, tensor);
    }
  }
  return all;
}

NamedTensors RunParts::evaluated_state() const { return ema ? ema->averages() : model.state(); }

}  // namespace binade::train
