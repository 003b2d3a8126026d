// Tests weights that are kept packed in evaluation: after every change the result has the bits of
// one that was never packed. Packings die with their parameters, are counted, are not larger than
// the weights, and can be turned off. Kernels alone: tests/kernels/gemm/gemm_rows_test.cpp.
#include <binade/core/device/memory.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/packed_weights.h>
#include <binade/nn/activation.h>
#include <binade/nn/conv.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>
#include <binade/nn/rnn.h>
#include <binade/nn/sequential.h>
#include <binade/optim/sgd.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace packed_weights_test {
namespace {

namespace nn = binade::nn;
namespace optim = binade::optim;
using binade::Device;
using binade::DType;
using binade::NoGradGuard;
using binade::packed_weight_stats;
using binade::Precision;
using binade::Tensor;

// A linear layer, both convolution algorithms, a folded batch norm and a recurrent layer.
struct Net : nn::Module {
  Tensor forward(const Tensor& x) override {
    const Tensor images = reshape(wide(x), {x.size(0), 32, 8, 8});
    const Tensor pooled = mean(norm_of(images), {2, 3});
    const Tensor steps = reshape(pooled, {1, x.size(0), 48});
    return head(reshape(lstm.run(steps).output, {x.size(0), 40}));
  }
  Tensor norm_of(const Tensor& images) { return block(pair(images)); }
  nn::Linear wide{*this, "wide", {.in = 24, .out = 2048}};
  nn::Conv2d pair{*this, "pair", {.in = 32, .out = 32, .kernel = 3, .padding = 1}};
  nn::Sequential block{*this, "block"};
  nn::LSTM lstm{*this, "lstm", {.input = 48, .hidden = 40}};
  nn::Linear head{*this, "head", {.in = 40, .out = 200}};
  Net() {
    block.add<nn::Conv2d>({.in = 32, .out = 48, .kernel = 3, .padding = 1, .bias = false});
    block.add<nn::BatchNorm2d>({.channels = 48});
    block.add<nn::ReLU>();
  }
};

std::vector<std::byte> bytes_of(const Tensor& t) {
  const Tensor dense = t.detach().contiguous();
  const std::byte* data = dense.view().data;
  return {data, data + static_cast<size_t>(dense.numel()) * size_of(dense.dtype())};
}

std::vector<std::byte> inference(nn::Module& net, const Tensor& x) {
  const NoGradGuard guard;
  return bytes_of(net(x));
}

std::vector<std::byte> never_packed(nn::Module& net, const Tensor& x) {
  binade::set_packed_weights(false);
  std::vector<std::byte> bytes = inference(net, x);
  binade::set_packed_weights(true);
  return bytes;
}

class PackedWeights : public testing::Test {
 protected:
  void SetUp() override {
    binade::manual_seed(7);
    binade::set_packed_weights(true);
    net = std::make_unique<Net>();
    net->eval();
    x = binade::randn({3, 24});
  }
  // Packs the weights, changes the net, and expects the results of a net that never packed any. The
  // change must matter: the result must differ from the one before.
  void expect_new_values_after(const std::function<void()>& change) {
    const std::vector<std::byte> before = inference(*net, x);
    ASSERT_GT(packed_weight_stats().weights, 0);
    EXPECT_EQ(inference(*net, x), before);
    change();
    const std::vector<std::byte> after = inference(*net, x);
    EXPECT_NE(after, before);
    EXPECT_EQ(after, never_packed(*net, x));
  }
  std::unique_ptr<Net> net;
  Tensor x;
};

TEST_F(PackedWeights, GiveTheSameBits) {
  for (const int64_t rows : {1, 3, 16, 40}) {
    const Tensor batch = binade::randn({rows, 24});
    const std::vector<std::byte> plain = never_packed(*net, batch);
    EXPECT_EQ(inference(*net, batch), plain);  // packs
    EXPECT_EQ(inference(*net, batch), plain);  // uses the packing
    EXPECT_EQ(packed_weight_stats().weights, 6);
  }
}

TEST_F(PackedWeights, AStepOfAnOptimizer) {
  optim::SGD sgd(net->parameters(), {.lr = 0.1});
  expect_new_values_after([&] {
    net->train();
    mean(square((*net)(x))).backward();
    (void)sgd.step();
    net->eval();
  });
}

TEST_F(PackedWeights, AStepWithoutAForwardBetween) {
  optim::SGD sgd(net->parameters(), {.lr = 0.1});
  mean(square((*net)(x))).backward();
  expect_new_values_after([&] { (void)sgd.step(); });
}

TEST_F(PackedWeights, LoadState) {
  Net other;
  expect_new_values_after([&] { net->load_state(other.state()); });
}

TEST_F(PackedWeights, LoadStateIntoAnArena) {
  Net other;
  (void)net->parameters();
  expect_new_values_after([&] { net->load_state(other.state()); });
}

TEST_F(PackedWeights, CopyInPlace) {
  expect_new_values_after([&] {
    const NoGradGuard guard;
    net->pair.weight.copy_(binade::randn(net->pair.weight.sizes()));
  });
  expect_new_values_after([&] {
    const NoGradGuard guard;
    net->wide.weight *= 2;
  });
  expect_new_values_after([&] {
    const NoGradGuard guard;
    net->head.weight[3] = 0.5;
  });
}

TEST_F(PackedWeights, APointerThatIsWrittenAtAnyTime) {
  float* pointer = nullptr;
  expect_new_values_after([&] {
    pointer = net->head.weight.data<float>();
    pointer[5] += 1;
  });
  expect_new_values_after([&] { pointer[6] += 1; });  // long after data()
  (void)inference(*net, x);
  const int64_t without = packed_weight_stats().weights;
  EXPECT_EQ(without, 5) << "all but the one that was written";
  (void)net->wide.weight.data<const float>();
  (void)inference(*net, x);
  EXPECT_EQ(packed_weight_stats().weights, without) << "a pointer to const changes nothing";
}

TEST_F(PackedWeights, APointerToTheStateThatSharesTheMemory) {
  expect_new_values_after([&] {
    for (const auto& [name, value] : net->state()) {
      if (name == "wide.weight") {
        value.data<float>()[0] += 1;
      }
    }
  });
}

TEST_F(PackedWeights, AnotherTensorInPlaceOfTheParameter) {
  expect_new_values_after(
      [&] { net->head.weight = binade::randn(net->head.weight.sizes()).require_grad(); });
}

TEST_F(PackedWeights, MovedIntoAnArenaAndToAnotherDType) {
  const std::vector<std::byte> before = inference(*net, x);
  (void)net->parameters();
  EXPECT_EQ(inference(*net, x), before);
  x = x.to(DType::f64);
  net->to(DType::f64);
  const std::vector<std::byte> wide = inference(*net, x);
  EXPECT_EQ(wide, never_packed(*net, x));
  EXPECT_NE(wide.size(), before.size());
  net->to(Device{}, Precision::half(DType::bf16));
  x = x.to(DType::bf16);
  EXPECT_EQ(inference(*net, x), never_packed(*net, x));
  EXPECT_EQ(inference(*net, x), inference(*net, x));
}

TEST_F(PackedWeights, AreDroppedWhenTrainingResumes) {
  (void)inference(*net, x);
  EXPECT_EQ(packed_weight_stats().weights, 6);
  net->train();
  (void)(*net)(x);
  EXPECT_EQ(packed_weight_stats().weights, 0);
  EXPECT_EQ(packed_weight_stats().bytes, 0);
}

TEST_F(PackedWeights, DieWithTheirParameters) {
  const int64_t before = binade::memory_stats().allocated;
  auto other = std::make_unique<Net>();
  other->eval();
  (void)inference(*other, x);
  EXPECT_EQ(packed_weight_stats().weights, 6);
  other.reset();
  EXPECT_EQ(packed_weight_stats().weights, 0);
  EXPECT_EQ(binade::memory_stats().allocated, before);
}

TEST_F(PackedWeights, AreCountedAndNotLargerThanTheWeights) {
  binade::set_packed_weights(false);
  (void)inference(*net, x);
  const int64_t without = binade::memory_stats().allocated;
  binade::set_packed_weights(true);
  (void)inference(*net, x);
  const binade::PackedWeightStats stats = packed_weight_stats();
  int64_t weights = 0;
  for (const auto& [name, value] : net->named_parameters()) {
    weights += value.numel() * 4;
  }
  EXPECT_GT(stats.bytes, weights / 2);
  EXPECT_LE(stats.bytes, weights);
  const int64_t more = binade::memory_stats().allocated - without;
  EXPECT_GE(more, stats.bytes);
  EXPECT_LE(more, stats.bytes * 5 / 4) << "blocks have four size classes per doubling";
  binade::set_packed_weights(false);
  EXPECT_EQ(binade::memory_stats().allocated, without);
  EXPECT_EQ(packed_weight_stats().weights, 0);
  (void)inference(*net, x);
  EXPECT_EQ(packed_weight_stats().weights, 0);
}

// For ten channels, padding to whole panels would need more memory than the weight.
TEST_F(PackedWeights, LayoutsLargerThanTheWeightAreNotKept) {
  nn::Conv2d conv({.in = 64, .out = 10, .kernel = 3});
  const Tensor images = binade::randn({1, 64, 5, 5});
  const std::vector<std::byte> plain = never_packed(conv, images);
  EXPECT_EQ(inference(conv, images), plain);
  EXPECT_EQ(packed_weight_stats().weights, 0);
}

TEST_F(PackedWeights, AreOfParametersAlone) {
  const NoGradGuard guard;
  const Tensor w = binade::randn({100, 100});
  (void)linear(binade::randn({2, 100}), w);
  EXPECT_EQ(packed_weight_stats().weights, 0) << "a tensor of a moment is not packed";
}

TEST_F(PackedWeights, OfFrozenParameters) {
  net->freeze();
  (void)net->parameters();
  expect_new_values_after([&] {
    const NoGradGuard guard;
    net->wide.weight.fill_(0.25);
  });
}

// Every allocation may fail: then the result is right, or the op throws its error.
TEST_F(PackedWeights, WithoutMemoryForThem) {
  const std::vector<std::byte> plain = never_packed(*net, x);
  for (int64_t n = 1; n < 40; ++n) {
    binade::set_packed_weights(false);
    binade::set_packed_weights(true);
    binade::fail_allocation(n);
    try {
      EXPECT_EQ(inference(*net, x), plain) << n;
    } catch (const binade::OutOfMemory&) {
    }
    binade::fail_allocation(0);
    EXPECT_EQ(inference(*net, x), plain) << n;
  }
}

TEST_F(PackedWeights, EightThreadsShareThem) {
  const std::vector<std::byte> plain = never_packed(*net, x);
  for (int round = 0; round < 3; ++round) {
    binade::set_packed_weights(false);
    binade::set_packed_weights(true);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int call = 0; call < 3; ++call) {
          wrong += inference(*net, x) != plain;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(packed_weight_stats().weights, 6);
  }
}

}  // namespace
}  // namespace packed_weights_test
