// A regression in the Trainer, with the options of a test.
#pragma once
#include "tests/train/loop/toy_tasks.h"

namespace binade::train::toy {

struct ToyRun {
  explicit ToyRun(TrainerOptions options, Ema* ema = nullptr)
      : ToyRun(std::move(options), model, ema) {}
  ToyRun(TrainerOptions options, nn::Module& trained, Ema* ema)
      : adam(trained.parameters(), {.lr = 0.02}),
        trainer({.model = trained, .optimizer = adam, .ema = ema}, prepared(std::move(options))) {}
  static TrainerOptions prepared(TrainerOptions options) {
    options.progress = false;
    options.step = options.step ? options.step : TrainingStep(regression_step);
    return options;
  }
  void fit() { trainer.fit(train, &validation); }

  data::TensorDataset train_rows = rows(40, 1), validation_rows = rows(12, 2);
  data::Loader train{train_rows, {.batch = 8, .workers = 0, .seed = 4}};
  data::Loader validation{validation_rows, {.batch = 5, .workers = 0, .shuffle = true}};
  Regression model;
  optim::AdamW adam;
  Trainer trainer;
};

// A model with a single layer, whose weight is easy to check.
struct Counted : nn::Module {
  nn::Linear fc{*this, "fc", {.in = kInputs, .out = 1}};
  Tensor forward(const Tensor& x) override { return fc(x); }
};

}  // namespace binade::train::toy
