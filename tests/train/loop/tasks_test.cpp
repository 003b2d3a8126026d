// Compares a regression, a VAE and a GAN in the Trainer with hand-written loops: weights and
// validation must be equal.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/loop/toy_tasks.h"

namespace binade::train::tasks_test {
namespace {

using namespace toy;

constexpr int64_t kRows = 50, kBatch = 8, kEpochs = 3;
constexpr double kTolerance = 1e-6;

struct Data {
  data::TensorDataset train_rows = rows(kRows, 1), validation_rows = rows(21, 2);
  data::Loader train{train_rows, {.batch = kBatch, .workers = 0, .seed = 4}};
  data::Loader validation{validation_rows, {.batch = 6, .workers = 0, .shuffle = false}};
};

struct Values {
  std::vector<double> validation;  // after each epoch
  std::vector<double> weights;
};

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

// The mean of a loss over samples, computed by hand.
template <class Model, class Loss>
double by_hand(Model& model, data::Loader& loader, Loss loss) {
  const NoGradGuard guard;
  model.eval();
  double sum = 0, samples = 0;
  for (const data::Batch& batch : loader.epoch(0)) {
    sum += loss(model, batch).item() * static_cast<double>(batch.size);
    samples += static_cast<double>(batch.size);
  }
  model.train();
  return sum / samples;
}

TrainerOptions options_of(std::vector<double>& validation) {
  return {.epochs = kEpochs,
          .patience = 0,
          .progress = false,
          .sanity_batches = 2,
          .callbacks = {{.validation = [&validation](const RunView& run) {
            validation.push_back(run.value("validation_loss"));
          }}}};
}

// Compares training with one optimizer; `step` trains in both ways.
template <class Model, class Step, class Loss>
void compare(Step step, TrainingStep validation_step, Loss loss, double& validation_difference) {
  Values trainer, hand;
  {
    Data data;
    manual_seed(7);
    Model model;
    optim::AdamW adam(model.parameters(), {.lr = 0.02});
    TrainerOptions options = options_of(trainer.validation);
    options.step = step;
    options.validation_step = std::move(validation_step);
    options.metrics = {};
    Trainer run({.model = model, .optimizer = adam}, options);
    // Only validations are compared: fit() ends with the best weights, not with the last ones.
    run.fit(data.train, &data.validation);
    EXPECT_EQ(run.steps(), kEpochs * ((kRows + kBatch - 1) / kBatch));
  }
  {
    Data data;
    manual_seed(7);
    Model model;
    optim::AdamW adam(model.parameters(), {.lr = 0.02});
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      for (const data::Batch& batch : data.train.epoch(epoch)) {
        StepOutput(step(model, batch)).loss.backward();
        (void)adam.step();
      }
      hand.validation.push_back(by_hand(model, data.validation, loss));
    }
  }
  validation_difference = difference(trainer.validation, hand.validation);
}

TEST(Tasks, RegressionIsAsByHand) {
  double d = 1;
  const auto loss = [](Regression& model, const data::Batch& batch) {
    return mse_loss(model(batch["x"]), batch["y"]);
  };
  compare<Regression>(regression_step, nullptr, loss, d);
  EXPECT_LT(d, kTolerance);
  // Planted mistakes: dropout is active, another loss, and a mean over batches instead of samples.
  const std::pair<const char*, TrainingStep> wrong[] = {
      {"in training mode",
       [](nn::Module& model, const data::Batch& batch) {
         model.train();
         const StepOutput output = regression_step(model, batch);
         model.eval();
         return output;
       }},
      {"another loss",
       [](nn::Module& model, const data::Batch& batch) {
         return l1_loss(model(batch["x"]), batch["y"]);
       }},
      {"unweighted", [](nn::Module& model, const data::Batch& batch) {
         StepOutput output = regression_step(model, batch);
         output.weight = 1;
         return output;
       }}};
  for (const auto& [what, step] : wrong) {
    compare<Regression>(regression_step, step, loss, d);
    EXPECT_GT(d, 1e-4) << what;
  }
}

TEST(Tasks, AVaeIsAsByHand) {
  double d = 1;
  const auto loss = [](Vae& vae, const data::Batch& batch) { return vae_step(vae, batch).loss; };
  compare<Vae>(vae_step, nullptr, loss, d);
  EXPECT_LT(d, kTolerance);
  compare<Vae>(
      vae_step,
      [](Vae& vae, const data::Batch& batch) {
        return vae_step(vae, batch).log[1].second.tensor();
      },
      loss, d);
  EXPECT_GT(d, 1e-4) << "without the divergence";
}

Values gan_by_trainer(const TrainingStep& validation_step, bool& leaves_gradients) {
  Values values;
  Data data;
  manual_seed(7);
  Gan gan;
  optim::AdamW d(gan.discriminator(), {.lr = 0.02}), g(gan.generator.parameters(), {.lr = 0.01});
  TrainerOptions options = options_of(values.validation);
  options.validation_step = validation_step;
  options.callbacks.push_back({.step = [&](const RunView&) {
    for (const Parameter& parameter : gan.parameters()) {
      leaves_gradients |= parameter.value.grad().defined();
    }
  }});
  options.callbacks.push_back(
      {.epoch_end = [&](const RunView&) { values.weights = numbers_of(gan); }});
  Trainer run({.model = gan,
               .phases = {{.name = "discriminator", .optimizer = d, .step = discriminator_loss},
                          {.name = "generator", .optimizer = g, .step = generator_loss}}},
              options);
  run.fit(data.train, &data.validation);
  return values;
}

Values gan_by_hand() {
  Values values;
  Data data;
  manual_seed(7);
  Gan gan;
  optim::AdamW d(gan.discriminator(), {.lr = 0.02}), g(gan.generator.parameters(), {.lr = 0.01});
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (const data::Batch& batch : data.train.epoch(epoch)) {
      discriminator_loss(gan, batch).backward();
      (void)d.step();
      generator_loss(gan, batch).backward();
      (void)g.step();
      d.zero_grad();
    }
    values.validation.push_back(by_hand(gan, data.validation, [](Gan& net, const data::Batch& b) {
      return gan_validation(net, b).loss;
    }));
  }
  values.weights = numbers_of(gan);
  return values;
}

TEST(Tasks, AGanIsAsByHand) {
  bool leaves_gradients = false;
  const Values trainer = gan_by_trainer(gan_validation, leaves_gradients), hand = gan_by_hand();
  EXPECT_LT(difference(trainer.validation, hand.validation), kTolerance);
  EXPECT_LT(difference(trainer.weights, hand.weights), kTolerance);
  EXPECT_FALSE(leaves_gradients) << "the generator's backward goes through the discriminator";
  const Values wrong = gan_by_trainer(
      [](Gan& gan, const data::Batch& batch) { return discriminator_loss(gan, batch); },
      leaves_gradients);
  EXPECT_LT(difference(wrong.weights, hand.weights), kTolerance);
  EXPECT_GT(difference(wrong.validation, hand.validation), 1e-4);
}

}  // namespace
}  // namespace binade::train::tasks_test
