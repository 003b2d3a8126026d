// A run with the user's own step validates with the same step, for any task.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/linear.h>
#include <binade/optim/adamw.h>
#include <gtest/gtest.h>

#include "tests/train/scripted_run.h"

namespace binade::train::validation_step_test {
namespace {

using test::LitPixels;

// Predicts the position of the lit pixel by regression.
class Regression : public nn::Module {
 public:
  Regression() {
    register_module("fc", fc);
    register_module("dropout", dropout);
  }
  Tensor forward(const Tensor& x) override { return dropout(fc(flatten(x, 1))); }
  nn::Linear fc{{.in = 4, .out = 1}};
  nn::Dropout dropout{{.p = 0.05}};
};

struct Calls {
  int64_t training = 0, evaluation = 0, recorded = 0;
};

TrainingStep regression(Calls& calls) {
  return [&calls](nn::Module& model, const data::Batch& batch) {
    ++(model.is_training() ? calls.training : calls.evaluation);
    const Tensor loss =
        mse_loss(model(batch.images), reshape(cast(batch.labels, DType::f32), {batch.size, 1}));
    calls.recorded += !model.is_training() && loss.requires_grad();
    return loss;
  };
}

double mean_squared_error(Regression& model, data::Loader& loader) {
  const NoGradGuard guard;
  model.eval();
  double sum = 0, samples = 0;
  for (const data::Batch& batch : loader.epoch(0)) {
    for (int64_t i = 0; i < batch.size; ++i) {
      const double got = model(slice(batch.images, 0, i, i + 1)).item();
      sum += (got - batch.labels.at(i)) * (got - batch.labels.at(i));
      ++samples;
    }
  }
  return sum / samples;
}

TEST(ValidationStep, IsTheMeanOfTheUsersLoss) {
  manual_seed(5);
  const LitPixels pictures(13);
  data::Loader train(pictures, {.batch = 4, .workers = 0}),
      validation(pictures, {.batch = 5, .workers = 0, .shuffle = false});
  Regression model;
  optim::AdamW adam(model.parameters(), {.lr = 0.05});
  Calls calls;
  Trainer trainer({.model = model, .optimizer = adam},
                  {.epochs = 60, .patience = 60, .progress = false, .step = regression(calls)});
  trainer.fit(train, &validation);
  EXPECT_EQ(trainer.epoch(), 60) << "nothing ends it early";
  EXPECT_EQ(calls.training, 60 * 4);
  EXPECT_EQ(calls.evaluation, 60 * 3 + 2) << "two batches of the sanity check";
  EXPECT_EQ(calls.recorded, 0);
  EXPECT_TRUE(model.is_training());
  const Evaluation evaluation = trainer.validate(validation);
  EXPECT_FALSE(evaluation.has("accuracy"));
  EXPECT_EQ(evaluation.samples, 13);
  EXPECT_NEAR(evaluation.loss, mean_squared_error(model, validation), 1e-5);
  EXPECT_LT(evaluation.loss, 1.0);
}

// The weights with the best loss of the step are restored, not those with the best cross entropy.
TEST(ValidationStep, ChoosesTheBestWeights) {
  test::ScriptedModel model;
  optim::SGD sgd(model.parameters(), {.lr = 1});
  const LitPixels pictures(1);
  data::Loader loader(pictures, {.batch = 1, .workers = 0});
  // After epoch e all weights are -(e + 1); the loss is least after epoch 3.
  const auto step = [&model](nn::Module& net, const data::Batch&) {
    return net.is_training() ? sum(model.weight) : square(mean(model.weight) + 4.0);
  };
  Trainer trainer({.model = model, .optimizer = sgd},
                  {.epochs = 20, .patience = 3, .progress = false, .step = step});
  trainer.fit(loader, &loader);
  EXPECT_EQ(trainer.epoch(), 7);
  EXPECT_EQ(model.weight.at(0), -4);
}

TEST(ValidationStep, PrintsNoAccuracy) {
  const LitPixels pictures(4);
  data::Loader loader(pictures, {.batch = 4, .workers = 0});
  Regression model;
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  Calls calls;
  Trainer trainer({.model = model, .optimizer = sgd}, {.epochs = 1, .step = regression(calls)});
  ::testing::internal::CaptureStdout();
  trainer.fit(loader, &loader);
  const std::string shown = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("validation loss"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("accuracy"), std::string::npos) << shown;
}

TEST(ValidationStep, AStepThatGivesNoLossIsAnError) {
  const LitPixels pictures(4);
  data::Loader loader(pictures, {.batch = 4, .workers = 0});
  Regression model;
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  const auto step = [](nn::Module& net, const data::Batch& batch) {
    const Tensor y = net(batch.images);
    return net.is_training() ? mean(y) : y;
  };
  Trainer trainer({.model = model, .optimizer = sgd},
                  {.epochs = 1, .progress = false, .step = step});
  try {
    trainer.fit(loader, &loader);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("got shape [4, 1] from TrainerOptions::step"),
              std::string::npos)
        << error.what();
  }
}

// Returns the error from one epoch of training with this step; empty: the default step.
std::string error_of_training(const TrainingStep& step) {
  const LitPixels pictures(4);
  data::Loader loader(pictures, {.batch = 4, .workers = 0});
  Regression model;
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  Trainer trainer({.model = model, .optimizer = sgd},
                  {.epochs = 1, .progress = false, .step = step});
  try {
    trainer.fit(loader);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(TrainingStep, WithoutALossIsAnError) {
  const std::string none =
      error_of_training([](nn::Module&, const data::Batch&) { return Tensor(); });
  EXPECT_NE(none.find("training: got no tensor from TrainerOptions::step, expected the mean loss"),
            std::string::npos)
      << none;
  const std::string rows = error_of_training(
      [](nn::Module& net, const data::Batch& batch) { return net(batch.images); });
  EXPECT_NE(rows.find("training: got shape [4, 1] from TrainerOptions::step"), std::string::npos)
      << rows;
}

TEST(TrainingStep, ALossOfShapeOneIsALoss) {
  EXPECT_EQ(error_of_training([](nn::Module& net, const data::Batch& batch) {
              return reshape(mean(square(net(batch.images))), {1});
            }),
            "");
}

TEST(Trainer, ASecondFitAfterTheEndIsAnError) {
  const LitPixels pictures(8);
  data::Loader loader(pictures, {.batch = 4, .workers = 0});
  Regression model;
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  Calls calls;
  Trainer trainer({.model = model, .optimizer = sgd},
                  {.epochs = 2, .progress = false, .step = regression(calls)});
  trainer.fit(loader, &loader);
  {
    const NoGradGuard guard;
    model.fc.weight.fill_(0.5);
  }
  try {
    trainer.fit(loader, &loader);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another fit() after the run ended in epoch 2 of 2"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(model.fc.weight.at(0), 0.5);  // not the best weights of the run before
}

}  // namespace
}  // namespace binade::train::validation_step_test
