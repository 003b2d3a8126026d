// Training steps on batches of random numbers.
#include <bench/peers/training.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/optim/adamw.h>
#include <binade/optim/sgd.h>
#include <binade/train/model_file.h>

#include <cmath>

namespace binade::peers {
namespace {

std::unique_ptr<optim::Optimizer> make_optimizer(const ParameterList& parameters,
                                                 const std::string& rule, double lr) {
  if (rule == "adam" || rule == "adam_gan") {
    const double beta1 = rule == "adam" ? 0.9 : 0.5;
    return std::make_unique<optim::Adam>(parameters,
                                         optim::AdamOptions{.lr = lr, .betas = {beta1, 0.999}});
  }
  check(rule == "sgd" || rule == "sgd_decay", "peer_work: got rule '", rule,
        "', expected sgd, sgd_decay, adam or adam_gan");
  const double decay = rule == "sgd_decay" ? 5e-4 : 0;
  return std::make_unique<optim::SGD>(
      parameters, optim::SGDOptions{.lr = lr, .momentum = 0.9, .weight_decay = decay});
}

void append(NamedTensors& all, const std::string& name, const Tensor& tensor) {
  if (tensor.defined()) {
    all.emplace_back(name, tensor);
  }
}

}  // namespace

Training::Training(const TrainingOptions& options) : entry_(*options.row.model) {
  manual_seed(0);
  model_ = entry_.make();
  for (const Phase& phase : entry_.phases) {
    optimizers_.push_back(
        make_optimizer(phase.part(*model_).parameters(), options.row.rule, options.lr));
  }
  for (int64_t i = 0; i < options.batches; ++i) {
    batches_.push_back(entry_.random_batch(options.row.batch));
  }
}

std::vector<Tensor> Training::step() {
  const Batch& batch = batches_[next_];
  next_ = (next_ + 1) % batches_.size();
  std::vector<Tensor> losses;
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    losses.push_back(entry_.phases[i].loss(*model_, batch));
    if (optimizers_.size() > 1) {
      optimizers_[i]->zero_grad();  // removes what another phase left in these parameters
    }
    losses.back().backward();
    check(optimizers_[i]->step() == optim::StepOutcome::applied,
          "peer_work: a step was not applied");
  }
  return losses;
}

std::vector<double> Training::values() {
  std::vector<double> values;
  for (const Tensor& loss : step()) {
    values.push_back(loss.item());
  }
  return values;
}

NamedTensors Training::start() const {
  NamedTensors all = model_->state();
  for (size_t i = 0; i < batches_.size(); ++i) {
    const std::string number = std::to_string(i);
    append(all, "input." + number, batches_[i].input);
    append(all, "target." + number, batches_[i].target);
    append(all, "noise." + number, batches_[i].noise);
  }
  return all;
}

std::vector<double> loss_curve(const CurveOptions& curve) {
  check(curve.steps >= 1 && curve.batch >= 1, "peer_work: got ", curve.steps,
        " steps of batches of ", curve.batch, ", expected at least 1");
  TrainingOptions options{.row = parse_model_row(curve.work), .lr = curve.lr, .batches = 4};
  check(options.row.step == "train", "peer_work: got '", curve.work,
        "', expected work that trains");
  options.row.batch = curve.batch;
  Training training(options);
  train::save_tensors(curve.file, training.start());
  std::vector<double> losses;
  for (int64_t i = 0; i < curve.steps; ++i) {
    for (double loss : training.values()) {
      losses.push_back(loss);
      check(std::isfinite(loss), "peer_work: the loss of step ", i, " is ", loss);
    }
  }
  return losses;
}

}  // namespace binade::peers
