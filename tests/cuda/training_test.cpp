// An MLP and a CNN train on the device as on the CPU: from the same weights, batches and random
// numbers the losses agree, in f32 and in mixed f16 and bf16 with a dynamic scaler.
#include <binade/binade.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace binade::training_test {
namespace {

using MakeModel = std::function<std::unique_ptr<nn::Module>()>;

constexpr int64_t kBatch = 8, kSide = 12, kClasses = 10;

// Images of ten classes: a pattern per class and noise.
data::Batch draw_batch(int64_t step) {
  data::Batch batch;
  batch.size = kBatch;
  const Dims sizes{kBatch, 1, kSide, kSide};
  batch.images = empty_strided(sizes, channels_last_strides(sizes), DType::f32);
  batch.labels = empty({kBatch}, DType::i64);
  philox::Stream noise(11, static_cast<uint64_t>(step));
  for (int64_t n = 0; n < kBatch; ++n) {
    const int64_t label = noise.next_below(kClasses);
    batch.labels.data<int64_t>()[n] = label;
    philox::Stream pattern(7, static_cast<uint64_t>(label));
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      const float value = 2 * pattern.next_uniform() - 1 + 0.5f * (noise.next_uniform() - 0.5f);
      batch.images.data<float>()[n * kSide * kSide + i] = value;
    }
  }
  return batch;
}

// Rounding differences grow with the learning rate, so models that must agree closely learn slowly.
struct Recipe {
  Precision precision;
  double bound;  // on the losses, relative
  double lr;
  double learns;  // the last ten losses are below this share of the first ten
};
// Bounds of ../shared/parity/README.md: f32 runs agree closely, half precision weights drift.
const Recipe kSingle{Precision::full(), 1e-4, 1e-4, 0.98};
Recipe half_recipe(DType low) { return {Precision::mixed(low), 0.05, 1e-3, 0.8}; }

std::vector<double> losses(const MakeModel& make, Device device, const Recipe& recipe, int steps) {
  manual_seed(3);
  std::unique_ptr<nn::Module> model = make();
  model->to(device, recipe.precision);
  optim::AdamW adam(model->parameters(), {.lr = recipe.lr, .weight_decay = 0.01});
  optim::LossScaler scaler(optim::LossScalerOptions{.growth_interval = 10});
  std::vector<double> out;
  for (int step = 0; step < steps; ++step) {
    const data::Batch batch = draw_batch(step);
    const Tensor loss = cross_entropy((*model)(batch.images.to(device)), batch.labels.to(device));
    scaler.scale(loss).backward();
    (void)scaler.step(adam, {.clip_norm = 5});
    out.push_back(loss.item());
  }
  return out;
}

void expect_same_training(const MakeModel& make, const Recipe& recipe) {
  constexpr int kSteps = 50;
  const std::vector<double> on_cpu = losses(make, Device{}, recipe, kSteps);
  const std::vector<double> on_device = losses(make, kernels::test_device(), recipe, kSteps);
  for (size_t i = 0; i < kSteps; ++i) {
    ASSERT_NEAR(on_device[i], on_cpu[i], recipe.bound * std::max(1.0, std::abs(on_cpu[i])))
        << to_string(recipe.precision) << " step " << i;
  }
  const double first = std::accumulate(on_device.begin(), on_device.begin() + 10, 0.0);
  const double last = std::accumulate(on_device.end() - 10, on_device.end(), 0.0);
  EXPECT_LT(last, recipe.learns * first) << "it does not learn";
  EXPECT_EQ(losses(make, kernels::test_device(), recipe, 5),
            std::vector<double>(on_device.begin(), on_device.begin() + 5))
      << "a second run differs";
}

std::unique_ptr<nn::Module> make_mlp() {
  return std::make_unique<nn::MLP>(
      nn::MLPOptions{.in = kSide * kSide, .hidden = {64, 48}, .classes = kClasses});
}
std::unique_ptr<nn::Module> make_cnn() {
  return std::make_unique<nn::CNN>(
      nn::CNNOptions{.channels = 1, .classes = kClasses, .height = kSide, .width = kSide});
}

TEST(DeviceTraining, MlpInSinglePrecision) { expect_same_training(make_mlp, kSingle); }
TEST(DeviceTraining, MlpInMixedPrecision) {
  expect_same_training(make_mlp, half_recipe(DType::f16));
}
TEST(DeviceTraining, MlpInBfloat16) { expect_same_training(make_mlp, half_recipe(DType::bf16)); }
TEST(DeviceTraining, CnnInSinglePrecision) { expect_same_training(make_cnn, kSingle); }
TEST(DeviceTraining, CnnInMixedPrecision) {
  expect_same_training(make_cnn, half_recipe(DType::f16));
}

}  // namespace
}  // namespace binade::training_test
