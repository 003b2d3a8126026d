#include <bench/peers/models.h>
#include <bench/peers/training.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/sgd.h>
#include <binade/train/model_file.h>

#include <cmath>

namespace binade::peers {
namespace {

// The same few samples repeat. With this learning rate they are not learnt during timing: otherwise
// gradients would become subnormal, which is slower.
constexpr double kTimedRate = 1e-5;

std::unique_ptr<nn::Module> mlp() { return nn::make_model("mlp", {1, 28, 28, 10}); }
std::unique_ptr<nn::Module> resnet18() { return nn::make_model("resnet18", {3, 32, 32, 10}); }
std::unique_ptr<nn::Module> char_gpt() { return std::make_unique<CharGPT>(); }

struct Entry {
  const char* name;
  TrainingOptions options;
};
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {"mlp", {mlp, {1, 28, 28}, 10, false, 64, Rule::sgd_momentum, kTimedRate}},
      {"mlp_adam", {mlp, {1, 28, 28}, 10, false, 64, Rule::adam, kTimedRate}},
      {"mnist_cnn", {make_mnist_cnn, {1, 28, 28}, 10, false, 64, Rule::sgd_momentum, kTimedRate}},
      {"resnet18", {resnet18, {3, 32, 32}, 10, false, 32, Rule::sgd_momentum_decay, kTimedRate}},
      {"char_gpt", {char_gpt, {128}, 65, true, 16, Rule::adam, kTimedRate}},
  };
  return all;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const ParameterList& parameters, Rule rule,
                                                 double lr) {
  if (rule == Rule::adam) {
    return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = lr});
  }
  const double decay = rule == Rule::sgd_momentum_decay ? 5e-4 : 0;
  return std::make_unique<optim::SGD>(
      parameters, optim::SGDOptions{.lr = lr, .momentum = 0.9, .weight_decay = decay});
}

Tensor random_classes(const Dims& sizes, int64_t classes) {
  const Tensor where = rand(sizes);
  const Tensor drawn = empty(sizes, DType::i64);
  for (int64_t i = 0; i < drawn.numel(); ++i) {
    drawn.data<int64_t>()[i] = static_cast<int64_t>(where.data<float>()[i] * float(classes));
  }
  return drawn;
}

Dims with_batch(int64_t batch, const Dims& sample) {
  Dims sizes{batch};
  for (int64_t size : sample) {
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

Training::Training(const TrainingOptions& options) {
  manual_seed(0);
  model_ = options.model();
  optimizer_ = make_optimizer(model_->parameters(), options.rule, options.lr);
  const Dims sizes = with_batch(options.batch, options.input);
  for (int64_t i = 0; i < options.batches; ++i) {
    if (options.characters) {
      inputs_.push_back(random_classes(sizes, options.classes));
      targets_.push_back(random_classes({inputs_[0].numel()}, options.classes));
    } else {
      inputs_.push_back(channels_last(randn(sizes)));
      targets_.push_back(random_classes({options.batch}, options.classes));
    }
  }
}

Tensor Training::step() {
  const Tensor loss = cross_entropy((*model_)(inputs_[next_]), targets_[next_]);
  loss.backward();
  check(optimizer_->step() == optim::StepOutcome::applied, "peer_work: a step was not applied");
  next_ = (next_ + 1) % inputs_.size();
  return loss;
}

NamedTensors Training::start() const {
  NamedTensors all = model_->state();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    all.emplace_back("input." + std::to_string(i), inputs_[i]);
    all.emplace_back("target." + std::to_string(i), targets_[i]);
  }
  return all;
}

bool is_training(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (entry.name == name) {
      return true;
    }
  }
  return false;
}

TrainingOptions training_options(const std::string& name) {
  std::string names;
  for (const Entry& entry : entries()) {
    if (entry.name == name) {
      return entry.options;
    }
    names += std::string(" ") + entry.name;
  }
  fail("peer_work: got '", name, "', expected work that trains:", names);
}

std::vector<double> loss_curve(const CurveOptions& curve) {
  check(curve.steps >= 1 && curve.batch >= 1, "peer_work: got ", curve.steps,
        " steps of batches of ", curve.batch, ", expected at least 1");
  TrainingOptions options = training_options(curve.work);
  options.lr = curve.lr;
  options.batch = curve.batch;
  options.batches = 4;
  Training training(options);
  train::save_tensors(curve.file, training.start());
  std::vector<double> losses;
  for (int64_t i = 0; i < curve.steps; ++i) {
    losses.push_back(training.step().item());
    check(std::isfinite(losses.back()), "peer_work: the loss of step ", i, " is ", losses.back());
  }
  return losses;
}

}  // namespace binade::peers
