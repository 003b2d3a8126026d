// Faults in a whole training step: a failed allocation at any point of the step gives one typed
// error. It leaks nothing and changes nothing, and repeating the step gives the same bits.
#include "device_kernels.h"

#include <binade/binade.h>

namespace binade::training_faults_test {
namespace {

using TrainingFaultsTest = DeviceTest;

constexpr int64_t kBatch = 6, kSide = 8, kClasses = 4;
constexpr int kStepsBefore = 2, kStepsAfter = 2;

struct Training {
  Training() {
    manual_seed(5);
    model.add<nn::Conv2d>({.in = 1, .out = 8, .kernel = 3, .padding = 1});
    model.add<nn::BatchNorm2d>({.channels = 8});
    model.add<nn::ReLU>();
    model.add<nn::MaxPool2d>({.kernel = 2});
    model.add<nn::Flatten>();
    model.add<nn::Linear>({.in = 8 * kSide * kSide / 4, .out = kClasses});
    model.to(kDevice, Precision::mixed(DType::f16));
    adam = std::make_unique<optim::AdamW>(model.parameters(), optim::AdamWOptions{.lr = 0.01});
    scaler.to(kDevice);
    philox::Stream random(9, 0);
    const Dims sizes{kBatch, 1, kSide, kSide};
    Tensor x = empty_strided(sizes, channels_last_strides(sizes), DType::f32);
    Tensor y = empty({kBatch}, DType::i64);
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.data<float>()[i] = 2 * random.next_uniform() - 1;
    }
    for (int64_t i = 0; i < kBatch; ++i) {
      y.data<int64_t>()[i] = random.next_below(kClasses);
    }
    images = x.to(kDevice);
    labels = y.to(kDevice);
  }
  void step() {
    const Tensor loss = nn::cross_entropy(model(images), labels);
    scaler.scale(loss).backward();
    (void)scaler.step(*adam, {.clip_norm = 1});
  }
  // A hash of parameters, moments and scaler. Running statistics are left out: forward changes
  // them.
  std::string hash() const {
    NamedTensors all = model.named_parameters();
    for (auto& entry : adam->state_tensors()) {
      all.push_back(std::move(entry));
    }
    return train::state_hash(all) + text(" ", scaler.scale(), " ", adam->step_count());
  }
  nn::Sequential model;
  std::unique_ptr<optim::AdamW> adam;
  optim::LossScaler scaler{optim::LossScalerOptions{.init_scale = 1024}};
  Tensor images, labels;
};

int64_t requests() { return memory_stats(kDevice).requests; }

TEST_F(TrainingFaultsTest, EveryAllocationOfAStepMayFail) {
  std::string expected;
  int64_t in_a_step = 0;
  {
    Training training;
    for (int i = 0; i < kStepsBefore + kStepsAfter; ++i) {
      const int64_t before = requests();
      training.step();
      in_a_step = requests() - before;
    }
    expected = training.hash();
  }
  ASSERT_GT(in_a_step, 25);
  for (int64_t n = 1; n <= in_a_step; ++n) {
    Training training;
    for (int i = 0; i < kStepsBefore; ++i) {
      training.step();
    }
    synchronize(kDevice);
    const int64_t allocated = memory_stats(kDevice).allocated;
    fail_allocation(kDevice, n);
    EXPECT_THROW(training.step(), OutOfMemory) << "allocation " << n;
    fail_allocation(kDevice, 0);
    training.adam->zero_grad();
    synchronize(kDevice);
    EXPECT_EQ(memory_stats(kDevice).allocated, allocated) << "allocation " << n;
    for (int i = 0; i < kStepsAfter; ++i) {
      training.step();
    }
    ASSERT_EQ(training.hash(), expected) << "allocation " << n << " of " << in_a_step;
  }
}

}  // namespace
}  // namespace binade::training_faults_test
