// A Trainer run whose validation losses and gradients are chosen by the test.
#pragma once
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/error.h>
#include <binade/optim/sgd.h>
#include <binade/train/trainer.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace binade::train::test {

using Losses = std::vector<double>;

// Pictures of 1 x 4 pixels. The label's pixel is lit; at every third index, the next one is.
class LitPixels : public data::Dataset {
 public:
  explicit LitPixels(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  data::Sample get(int64_t index) const override {
    data::Sample sample{data::make_image(1, 4, 1), index % 4};
    sample.image.pixels[static_cast<size_t>((index + (index % 3 == 0)) % 4)] = 255;
    return sample;
  }
  int64_t class_count() const override { return 4; }
  std::vector<std::string> class_names() const override { return {"0", "1", "2", "3"}; }
  int channels() const override { return 1; }
  std::string describe(int64_t index) const override { return text("lit/", index); }

 private:
  int64_t size_;
};

// The n-th evaluation gives the n-th scripted loss for label 0. Without a script, the pixels are
// the logits.
class ScriptedModel : public nn::Module {
 public:
  explicit ScriptedModel(Losses script = {})
      : weight(zeros({4})), counter(zeros({1})), script_(std::move(script)) {
    register_parameter("weight", weight);
    register_buffer("counter", counter);
  }
  Tensor forward(const Tensor& x) override {
    evaluated_in_training |= is_training();
    if (script_.empty()) {
      return flatten(x, 1);
    }
    const Tensor logits = zeros({x.size(0), 2});
    // log(1 + (exp(loss) - 1)) is the cross entropy.
    slice(logits, 1, 1, 2).fill_(std::log(std::expm1(script_.at(evaluations_++))));
    return logits;
  }

  Tensor weight, counter;
  bool evaluated_in_training = false;

 private:
  Losses script_;
  size_t evaluations_ = 0;
};

// The gradient of every weight is 1, and the buffer counts the calls. Validation uses the script.
inline TrainingStep unit_step(ScriptedModel& model) {
  return [&model](nn::Module& net, const data::Batch& batch) {
    if (!net.is_training()) {
      return classification_step(net, batch).loss;
    }
    {
      NoGradGuard guard;
      model.counter.fill_(model.counter.item() + 1);
    }
    return sum(model.weight);
  };
}

// Collects the texts of warnings during its lifetime.
class Warnings {
 public:
  Warnings()
      : before_(set_warning_handler([this](const std::string& text) { all += text + "\n"; })) {}
  ~Warnings() { set_warning_handler(before_); }
  std::string all;

 private:
  WarningHandler before_;
};

// A run of one step of size 1 per epoch: after epoch e all weights are -(e + 1).
struct ScriptedRun {
  ScriptedRun(const Losses& script, TrainerOptions options)
      : model(script),
        optimizer(model.parameters(), {.lr = 1}),
        trainer({.model = model, .optimizer = optimizer}, with_step(std::move(options))) {}

  TrainerOptions with_step(TrainerOptions options) {
    options.step = unit_step(model);
    options.progress = false;
    options.sanity_batches = 0;  // it would use up the script
    return options;
  }
  void fit() { trainer.fit(train, &validation); }
  // The epoch to which the model's parameters and buffers belong, or -1.
  int64_t epoch_of_weights() const {
    const double steps = model.counter.item();
    for (int i = 0; i < 4; ++i) {
      if (model.weight.at(i) != -steps) {
        return -1;
      }
    }
    return static_cast<int64_t>(steps) - 1;
  }

  LitPixels pictures{1};
  data::Loader train{pictures, {.batch = 1, .workers = 0}};
  data::Loader validation{pictures, {.batch = 1, .workers = 0}};
  ScriptedModel model;
  optim::SGD optimizer;
  Trainer trainer;
};

}  // namespace binade::train::test
