// The parts of a run: model, optimizers, schedules, averages of the weights.
//
// An optimizer is made before the Trainer, or by it: then the Trainer can first move the model
// (TrainerOptions::device) and convert it (TrainerOptions::precision).
//
//   train::Trainer a({.model = net, .optimizer = adam, .schedule = &cosine}, {...});
//   train::Trainer b({.model = net,
//                     .optimizer = [](const ParameterList& p) {
//                       return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-3});
//                     },
//                     .schedule = [](optim::Optimizer& o) {
//                       return optim::WarmupCosine(o, {.warmup = 100, .total = 5000});
//                     }},
//                    {.precision = Precision::mixed(DType::f16), .device = Device::parse("cuda")});
#pragma once
#include <binade/optim/loss_scaler.h>
#include <binade/optim/plateau.h>
#include <binade/train/ema.h>
#include <binade/train/step.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace binade::train {

// An optimizer, or a function of the model's parameters that makes one.
class OptimizerPart {
 public:
  using Make = std::function<std::unique_ptr<optim::Optimizer>(const ParameterList& parameters)>;
  OptimizerPart() = default;                                              // none
  OptimizerPart(optim::Optimizer& optimizer) : optimizer_(&optimizer) {}  // NOLINT
  template <class F>
  requires(std::is_invocable_r_v<std::unique_ptr<optim::Optimizer>, F&, const ParameterList&>)
      OptimizerPart(F make)  // NOLINT
      : make_(std::move(make)) {}

  bool is_given() const { return optimizer_ || make_; }
  optim::Optimizer* existing() const { return optimizer_; }  // null if it is to be made
  const Make& make() const { return make_; }

 private:
  optim::Optimizer* optimizer_ = nullptr;
  Make make_;
};

// A part that follows an optimizer: a pointer to it, null for none, or a function that makes one.
template <class T>
class OptimizerFollower {
 public:
  using Make = std::function<std::unique_ptr<T>(optim::Optimizer& optimizer)>;
  OptimizerFollower(T* existing = nullptr) : existing_(existing) {}  // NOLINT
  template <class F>
  requires(std::convertible_to<std::invoke_result_t<F&, optim::Optimizer&>, T>)
      OptimizerFollower(F make)  // NOLINT
      : make_([make = std::move(make)](optim::Optimizer& optimizer) mutable {
          return std::make_unique<T>(make(optimizer));
        }) {}

  T* existing() const { return existing_; }
  const Make& make() const { return make_; }

 private:
  T* existing_ = nullptr;
  Make make_;
};
using SchedulePart = OptimizerFollower<optim::Schedule>;
using PlateauPart = OptimizerFollower<optim::ReduceLROnPlateau>;

// An Ema, null for none, or the options of one that the Trainer makes.
class EmaPart {
 public:
  EmaPart(Ema* existing = nullptr) : existing_(existing) {}  // NOLINT
  EmaPart(const EmaOptions& options) : options_(options) {}  // NOLINT
  Ema* existing() const { return existing_; }
  const std::optional<EmaOptions>& options() const { return options_; }

 private:
  Ema* existing_ = nullptr;
  std::optional<EmaOptions> options_;
};

// One of several optimizers that take turns in a step, such as generator and discriminator of a
// GAN. The phases of a step run in their order, each on the batch (with accumulation: on all of its
// micro-batches, before the next phase begins): forward, backward, update. While a phase runs, only
// the parameters of its own optimizer get gradients; all others below the model are frozen, so the
// generator's backward leaves no gradients in the discriminator.
//
//   .phases = {{.name = "discriminator", .optimizer = adam_d, .step = train_discriminator},
//              {.name = "generator", .optimizer = adam_g, .step = train_generator}}
//
// Accumulation, clipping, loss scaling, schedules, on_nan, checkpoints and state_hash hold for each
// of them. metrics.jsonl has train_NAME_loss per phase; train_loss is their sum.
struct TrainingPhase {
  std::string name;                     // letters, digits and _, used once
  OptimizerPart optimizer;              // of its own
  TrainingStep step;                    // the loss of this phase
  optim::LossScaler* scaler = nullptr;  // of its own
  SchedulePart schedule = {};
  int64_t every = 1;  // runs in every n-th step only
};

// Scaler, schedules and Ema are optional. Give either an optimizer or phases.
struct TrainingParts {
  nn::Module& model;
  OptimizerPart optimizer = {};
  optim::LossScaler* scaler = nullptr;
  SchedulePart schedule = {};
  // Gets the monitored value (TrainerOptions::monitor) each time there is one, or the training loss
  // at the end of each epoch if nothing is monitored. With phases it belongs to the first one.
  PlateauPart plateau = {};
  // Updated after each step. Validation, test and predict() use the averages. At the end of fit()
  // the model gets the averages of the best validation, or without validation the last ones.
  EmaPart ema = {};
  std::vector<TrainingPhase> phases = {};
};

}  // namespace binade::train
