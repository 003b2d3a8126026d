// A training whose loss is not finite in one batch, for tests of TrainerOptions::on_nan.
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/linear.h>
#include <binade/optim/sgd.h>
#include <binade/train/trainer.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <algorithm>
#include <cmath>

#include "tests/data/fake_dataset.h"

namespace binade::train {

inline constexpr int64_t kSamples = 24, kBatch = 4, kBatches = kSamples / kBatch;

class DropoutNet : public nn::Module {
 public:
  DropoutNet() {
    register_module("fc", fc);
    register_module("dropout", dropout);
  }
  Tensor forward(const Tensor& x) override { return dropout(fc(flatten(x, 1))); }
  nn::Linear fc{{.in = 48, .out = 10}};
  nn::Dropout dropout{{.p = 0.25}};
};

struct NetRun {
  explicit NetRun(double lr = 0.01) : lr(lr) {
    manual_seed(3);
    model.emplace();
    model->to(kernels::test_device(), Precision::full());
    sgd.emplace(model->parameters(), optim::SGDOptions{.lr = lr});
  }
  void fit(TrainerOptions options, data::Loader* validation = nullptr) {
    options.progress = false;
    Trainer trainer({.model = *model, .optimizer = *sgd}, std::move(options));
    try {
      trainer.fit(loader, validation);
    } catch (const Error& caught) {
      error = caught.what();
    }
    steps = trainer.steps();
  }
  void expect_error(const std::vector<std::string>& parts) const {
    EXPECT_FALSE(error.empty()) << "no error";
    for (const std::string& part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << "'" << part << "' is not in " << error;
    }
  }
  bool is_finite() const {
    return std::isfinite(amax(abs(model->fc.weight.detach())).to(Device{}).item());
  }

  double lr;
  data::test::FakeDataset pictures{kSamples};
  data::Loader loader{pictures,
                      {.batch = kBatch, .workers = 0, .seed = 3, .device = kernels::test_device()}};
  std::optional<DropoutNet> model;
  std::optional<optim::SGD> sgd;
  std::string error;
  int64_t steps = 0;
};

inline bool on_cpu() { return kernels::test_device().is_cpu(); }

// Takes the log of a negative number in the batch with sample 9.
inline TrainingStep bad_in_one_batch(int64_t* bad_step, double scale = 1) {
  auto calls = std::make_shared<int64_t>(0);
  return [=](nn::Module& model, const data::Batch& batch) {
    const int64_t call = (*calls)++;
    Tensor loss = classification_step(model, batch).loss;
    const auto& ids = batch.indices;
    if (std::find(ids.begin(), ids.end(), 9) == ids.end()) {
      return loss;
    }
    *bad_step = *bad_step < 0 ? call : *bad_step;
    return loss * log(sum(square(loss)) * -scale);
  };
}

}  // namespace binade::train
