// Compares the finders and the memory forecast with real steps.
#include <binade/binade.h>
#include <binade/core/device/memory_limit.h>
#include <binade/kernels/base/parallel.h>
#include <binade/train/finders/batch_finder.h>
#include <binade/train/finders/noise_scale.h>
#include <binade/train/finders/rate_finder.h>

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/sanitizers.h"
#include "tests/train/loop/toy_run.h"

namespace binade::train::finders_test {
namespace {

// A model with its training step.
struct Case {
  std::shared_ptr<nn::Module> model;
  std::function<data::Batch(int64_t)> batch;
  TrainingStep step;
  int64_t size = 32;    // batch size
  double bound = 0.05;  // relative error allowed for the forecast
};

data::Batch batch_of(const char* name, const Tensor& x, const Tensor& labels) {
  data::Batch batch;
  batch.size = x.size(0);
  batch.set(name, x);
  batch.set("labels", labels);
  return batch;
}

Case pictures(const std::string& name, int64_t channels, int64_t size) {
  return {nn::make_model(name, {channels, size, size, 10}),
          [=](int64_t n) {
            const Tensor x = permute(randn({n, size, size, channels}), {0, 3, 1, 2});
            return batch_of("images", x, randint(10, {n}));
          },
          nullptr};
}

struct SentenceNet : nn::Module {
  nn::Embedding embedding{*this, "embedding", {.count = 50, .width = 32}};
  nn::LSTM lstm{*this, "lstm", {.input = 32, .hidden = 48, .batch_first = true}};
  nn::Linear head{*this, "head", {.in = 48, .out = 10}};
  Tensor forward(const Tensor& tokens) override {
    return head(select(lstm(embedding(tokens)), 1, 11));
  }
};

struct EncoderNet : nn::Module {
  nn::Embedding embedding{*this, "embedding", {.count = 50, .width = 32}};
  nn::TransformerEncoder encoder{
      *this,
      "encoder",
      {.layer = {.embed = 32, .heads = 4, .feedforward = 64, .batch_first = true}, .layers = 2}};
  nn::Linear head{*this, "head", {.in = 32, .out = 10}};
  Tensor forward(const Tensor& tokens) override {
    return head(mean(encoder(embedding(tokens)), {1}));
  }
};

data::Batch sentences(int64_t n) {
  return batch_of("tokens", randint(50, {n, 12}), randint(10, {n}));
}
StepOutput sentence_step(nn::Module& model, const data::Batch& batch) {
  return {.loss = cross_entropy(model(batch["tokens"]), batch["labels"])};
}

Case gpt() {
  return {std::make_shared<nn::Gpt2>(nn::Gpt2Options{
              .vocabulary = 40, .context = 16, .width = 32, .layers = 2, .heads = 4}),
          [](int64_t n) {
            return batch_of("tokens", randint(40, {n, 16}), randint(40, {n, 16}));
          },
          [](nn::Module& model, const data::Batch& batch) {
            const Tensor logits = model(batch["tokens"]);
            return cross_entropy(reshape(logits, {-1, 40}), reshape(batch["labels"], {-1}));
          }};
}

const std::vector<std::pair<std::string, std::function<Case()>>>& cases() {
  static const std::vector<std::pair<std::string, std::function<Case()>>> all{
      {"mlp", [] { return pictures("mlp", 1, 12); }},
      // The model of train_classifier without flags.
      {"cnn",
       [] {
         Case c = pictures("cnn", 3, 32);
         c.size = 64;
         return c;
       }},
      // The forecast is 6 to 8% too high here: between 24 and 32 samples a weight gradient changes
      // how it splits its work, and its workspace is large compared with such a small model.
      {"small cnn",
       [] {
         Case c = pictures("cnn", 3, 16);
         c.bound = 0.08;
         return c;
       }},
      {"resnet18", [] { return pictures("resnet18", 3, 16); }},
      {"gpt", gpt},
      {"lstm",
       [] {
         return Case{std::make_shared<SentenceNet>(), sentences, sentence_step};
       }},
      {"encoder", [] {
         return Case{std::make_shared<EncoderNet>(), sentences, sentence_step};
       }}};
  return all;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name,
                                                 const ParameterList& list) {
  if (name == "sgd") {
    return std::make_unique<optim::SGD>(list, optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
  }
  if (name == "lamb") {
    return std::make_unique<optim::LAMB>(list, optim::LAMBOptions{.lr = 0.001});
  }
  return std::make_unique<optim::AdamW>(list, optim::AdamWOptions{.lr = 0.001});
}

// A model that is ready to train.
struct Ready {
  Ready(const Case& c, const std::string& optimizer_name, bool half) : made(c) {
    if (half) {
      made.model->to(Device{}, Precision::mixed(DType::f16));
      scaler.emplace();
    }
    optimizer = make_optimizer(optimizer_name, made.model->parameters());
  }
  FinderParts parts() {
    return {.model = *made.model,
            .optimizer = *optimizer,
            .scaler = scaler ? &*scaler : nullptr,
            .step = made.step};
  }
  Case made;
  std::optional<optim::LossScaler> scaler;
  std::unique_ptr<optim::Optimizer> optimizer;
};

std::string hash_of(Ready& ready) {
  NamedTensors all = ready.made.model->exact_state();
  for (auto& entry : ready.optimizer->state_tensors()) {
    all.push_back(entry);
  }
  std::string hash = state_hash(all) + text(generator().seed, " ", generator().offset);
  for (const auto& [name, value] : ready.optimizer->state_scalars()) {
    hash += text(" ", name, value);
  }
  return hash + (ready.scaler ? text(" ", ready.scaler->scale()) : std::string());
}

TEST(MemoryForecast, IsWithinFivePercentOfThePeakOfRealSteps) {
  if (testing::kAddressSanitizer) {
    GTEST_SKIP() << "blocks come from malloc, without classes of sizes";
  }
  // With several threads it depends on chance whether their workspaces coincide at the peak.
  const int before = kernels::threads();
  kernels::set_threads(1);
  for (const auto& [name, make] : cases()) {
    for (const char* optimizer : {"sgd", "adamw", "lamb"}) {
      for (const bool half : {false, true}) {
        manual_seed(3);
        Ready ready(make(), optimizer, half);
        const int64_t size = ready.made.size;
        const BatchMaker batches(ready.made.batch(size));
        const MemoryForecast forecast = measure_memory(ready.parts(), batches, size / 4).at(size);
        ready.made.model->train();
        const data::Batch batch = batches.make(size);
        reset_peak_memory();
        for (int i = 0; i < 3; ++i) {
          train_step(ready.parts(), batch);
        }
        const double truth = static_cast<double>(memory_stats().peak);
        const double ratio = static_cast<double>(forecast.peak) / truth;
        EXPECT_NEAR(ratio, 1, ready.made.bound)
            << name << " " << optimizer << (half ? " fp16" : " fp32") << ": " << to_string(forecast)
            << ", truth " << truth;
        std::printf("%s, %s, %s: forecast %.4f of the peak\n", name.c_str(), optimizer,
                    half ? "fp16" : "fp32", ratio);
        EXPECT_FALSE(forecast.saved_by_module.empty());
      }
    }
  }
  kernels::set_threads(before);
}

TEST(Finders, RestoreEverythingBitForBit) {
  for (const bool half : {false, true}) {
    manual_seed(4);
    Ready ready(pictures("cnn", 1, 8), "adamw", half);
    train_step(ready.parts(), ready.made.batch(3));  // makes moments and statistics nonzero
    const std::string before = hash_of(ready);
    const BatchMaker batches(ready.made.batch(5));
    const std::string after_draw = hash_of(ready);
    EXPECT_NE(before, after_draw);  // the hash includes the random generator
    (void)measure_memory(ready.parts(), batches, 2);
    EXPECT_EQ(hash_of(ready), after_draw);
    EXPECT_FALSE(find_batch(ready.parts(), batches, {.most = 8}).trials.empty());
    EXPECT_EQ(hash_of(ready), after_draw);
  }
}

TEST(BatchFinder, TheSizeRunsAndTheNextIsOverTheLimit) {
  if (testing::kAddressSanitizer) {
    GTEST_SKIP() << "blocks come from malloc, without classes of sizes";
  }
  for (const int64_t multiple : {1, 4}) {
    manual_seed(5);
    Ready ready(pictures("cnn", 3, 16), "adamw", true);
    const BatchMaker batches(ready.made.batch(7));
    const int64_t limit = memory_stats().allocated + 12'000'000;
    const FoundBatch found =
        find_batch(ready.parts(), batches, {.limit = limit, .multiple = multiple});
    ASSERT_GT(found.batch, 8) << to_string(found);
    EXPECT_EQ(found.batch % multiple, 0);
    const auto peak_of = [&](int64_t size) {
      ready.made.model->train();
      const data::Batch batch = batches.make(size);
      reset_peak_memory();
      for (int i = 0; i < 20; ++i) {
        train_step(ready.parts(), batch);
      }
      return memory_stats().peak;
    };
    EXPECT_LE(peak_of(found.batch), limit) << to_string(found);
    EXPECT_GT(peak_of(found.batch + multiple), limit) << to_string(found);
  }
}

TEST(BatchFinder, AnErrorOfTheAllocatorIsNoErrorOfTheFinder) {
  if (testing::kAddressSanitizer) {
    GTEST_SKIP() << "the limit is of the caches";
  }
  manual_seed(6);
  Ready ready(pictures("cnn", 3, 16), "sgd", false);
  const BatchMaker batches(ready.made.batch(7));
  train_step(ready.parts(), batches.make(2));
  empty_cache();
  const int64_t before = set_memory_limit(memory_stats().reserved + 20'000'000);
  const FoundBatch found = find_batch(ready.parts(), batches, {.share = 1});
  EXPECT_GT(found.batch, 0) << to_string(found);
  EXPECT_EQ(found.limit_reason, "1 of set_memory_limit()");
  EXPECT_THROW(train_step(ready.parts(), batches.make(8 * found.batch)), OutOfMemory);
  set_memory_limit(before);
  EXPECT_TRUE(error_of([&] {
                find_batch(ready.parts(), batches, {.share = 2});
              }).find("got share 2") != std::string::npos);
}

TEST(BatchFinder, ABatchHasNoMoreSamplesThanTheLoader) {
  toy::ToyRun toy({});
  const FinderParts parts{.model = toy.model, .optimizer = toy.adam, .step = toy::regression_step};
  const FoundBatch found = find_batch(parts, toy.train);
  EXPECT_EQ(found.batch, 40) << to_string(found);
  EXPECT_TRUE(found.is_most);
  EXPECT_NE(to_string(found).find("batch 40, the largest size tried, fits"), std::string::npos);
  EXPECT_EQ(found.trials.size(), 1U);
}

TEST(RateFinder, FindsTheUsefulRatesOfAQuadratic) {
  manual_seed(7);
  toy::ToyRun toy({});
  optim::SGD sgd(toy.model.parameters(), {.lr = 0.125});
  const FinderParts parts{.model = toy.model, .optimizer = sgd, .step = toy::regression_step};
  const std::string before = state_hash(toy.model.state());
  const FoundRate found = find_rate(parts, toy.train, {.least = 1e-5, .most = 100, .steps = 120});
  EXPECT_GT(found.rate, 1e-4);
  EXPECT_LT(found.rate, 2);
  EXPECT_LT(found.rate, found.at_least_loss * 1.0001);
  EXPECT_NE(found.stopped, "");  // 100 diverges
  EXPECT_EQ(sgd.lr(), 0.125);
  EXPECT_EQ(state_hash(toy.model.state()), before);
  EXPECT_NE(to_html(found).find("<svg"), std::string::npos);
  EXPECT_NE(error_of([&] { find_rate(parts, toy.train, {.least = 0}); }).find("0 < least"),
            std::string::npos);
}

TEST(RateFinder, ScalesByTheRules) {
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 1024, 256, RateScaling::linear), 0.4);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 1024, 256, RateScaling::square_root), 0.2);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, 1024, 256, RateScaling::none), 0.1);
  EXPECT_NE(error_of([] { scale_rate(0.1, 0, 1, RateScaling::linear); }), "none");
}

// With y = w + noise, the gradient of mean((w - y)^2) has the mean 2 (w - mean y) and the variance
// 4 var(y) per sample.
struct Mean : nn::Module {
  nn::Parameter w{*this, "w", zeros({1})};
  Tensor forward(const Tensor& y) override { return w - y; }
};

TEST(NoiseScale, IsTheRatioOfVarianceAndSquaredGradient) {
  manual_seed(8);
  const Tensor y = randn({4096, 1}) * 3.0 + 1.5;
  const data::TensorDataset rows({{"y", y}});
  data::Loader loader(rows, {.batch = 8, .workers = 0, .seed = 2});
  Mean model;
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  const NoiseScale noise = measure_noise_scale(
      {.model = model,
       .optimizer = sgd,
       .step = [](nn::Module& m, const data::Batch& batch) { return mean(square(m(batch["y"]))); }},
      loader, {.micro_batches = 16, .repeats = 32});
  EXPECT_EQ(noise.repeats, 32);
  EXPECT_NEAR(noise.variance, 4 * 9, 4);
  EXPECT_NEAR(noise.gradient_norm, 2 * 1.5, 0.3);
  EXPECT_NEAR(noise.scale, 4.0, 1.0);  // 36 / 9
  EXPECT_EQ(model.w.item(), 0);
}

}  // namespace
}  // namespace binade::train::finders_test
