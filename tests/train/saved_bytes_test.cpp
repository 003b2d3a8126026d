// Measures the memory that a training step of the MNIST net saves for backward: f16 about halves
// it, and evaluation saves nothing.
#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/models.h>

#include <gtest/gtest.h>

namespace binade::train::saved_bytes_test {
namespace {

constexpr int64_t kBatch = 64;

Tensor images() { return randn({kBatch, 1, 28, 28}); }

int64_t peak_of_training_step(const Precision& precision) {
  manual_seed(0);
  nn::CNN model;
  model.to(Device::parse("cpu"), precision);
  model.train();
  reset_peak_saved_bytes();
  const int64_t before = saved_bytes().live;
  backward(cross_entropy(model(images()), zeros({kBatch}, DType::i64)));
  EXPECT_EQ(saved_bytes().live, before) << "a backward keeps nothing";
  return saved_bytes().peak - before;
}

TEST(SavedBytesTest, MixedStepKeepsAtMostFiftyFivePercent) {
  const int64_t full = peak_of_training_step(Precision::full());
  const int64_t mixed = peak_of_training_step(Precision::mixed(DType::f16));
  const double share = static_cast<double>(mixed) / static_cast<double>(full);
  std::printf("saved for backward: f32 %lld bytes, mixed f16 %lld bytes, %.3f of it\n",
              static_cast<long long>(full), static_cast<long long>(mixed), share);
  // At least the inputs of the three convolutions are saved.
  EXPECT_GE(full, kBatch * (784 + 32 * 196 + 64 * 49) * 4);
  EXPECT_LE(share, 0.55);
}

TEST(SavedBytesTest, EvaluationKeepsNothing) {
  for (const Precision& precision : {Precision::full(), Precision::mixed(DType::f16)}) {
    nn::CNN model;
    model.to(Device::parse("cpu"), precision);
    model.eval();
    const NoGradGuard no_grad;
    reset_peak_saved_bytes();
    const int64_t before = saved_bytes().live;
    const Tensor logits = model(images());
    EXPECT_EQ(logits.size(0), kBatch);
    EXPECT_EQ(saved_bytes().peak, before);
    EXPECT_EQ(saved_bytes().live, before);
  }
}

}  // namespace
}  // namespace binade::train::saved_bytes_test
