// Models of First light train on the device as on the CPU: the same losses from the same weights,
// batches and random numbers, in fp32 and in fp16 mixed precision with a dynamic scaler.
#include <binade/binade.h>
#include <gtest/gtest.h>
#include <tests/kernels/test_device.h>

#include <cmath>
#include <functional>

namespace binade {
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

std::vector<double> losses(const MakeModel& make, Device device, const Precision& precision,
                           int steps) {
  manual_seed(3);
  std::unique_ptr<nn::Module> model = make();
  model->to(device, precision);
  optim::AdamW adam(model->parameters(), {.lr = 1e-3, .weight_decay = 0.01});
  optim::LossScaler scaler(optim::ScalerOptions{.growth_interval = 10});
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

void expect_same_training(const MakeModel& make, const Precision& precision, double bound) {
  constexpr int kSteps = 50;
  const std::vector<double> on_cpu = losses(make, Device{}, precision, kSteps);
  const std::vector<double> on_device = losses(make, kernels::test_device(), precision, kSteps);
  for (size_t i = 0; i < kSteps; ++i) {
    ASSERT_NEAR(on_device[i], on_cpu[i], bound * std::max(1.0, std::abs(on_cpu[i])))
        << to_string(precision) << " step " << i;
  }
  EXPECT_LT(on_device.back(), 0.5 * on_device.front()) << "it does not learn";
  EXPECT_EQ(losses(make, kernels::test_device(), precision, 5),
            std::vector<double>(on_device.begin(), on_device.begin() + 5))
      << "a second run differs";
}

std::unique_ptr<nn::Module> make_mlp() {
  return std::make_unique<nn::Mlp>(
      nn::MlpOptions{.in = kSide * kSide, .hidden = {64, 48}, .classes = kClasses});
}
std::unique_ptr<nn::Module> make_cnn() {
  return std::make_unique<nn::Cnn>(
      nn::CnnOptions{.channels = 1, .classes = kClasses, .height = kSide, .width = kSide});
}

// Bounds of ../shared/parity/README.md: f32 runs agree closely, half precision weights drift.
constexpr double kSingle = 1e-4, kHalf = 0.05;

TEST(DeviceTraining, MlpInSinglePrecision) {
  expect_same_training(make_mlp, Precision::full(), kSingle);
}
TEST(DeviceTraining, MlpInMixedPrecision) {
  expect_same_training(make_mlp, Precision::mixed(DType::f16), kHalf);
}
TEST(DeviceTraining, MlpInBfloat16) {
  expect_same_training(make_mlp, Precision::mixed(DType::bf16), kHalf);
}
TEST(DeviceTraining, CnnInSinglePrecision) {
  expect_same_training(make_cnn, Precision::full(), kSingle);
}
TEST(DeviceTraining, CnnInMixedPrecision) {
  expect_same_training(make_cnn, Precision::mixed(DType::f16), kHalf);
}

}  // namespace
}  // namespace binade
