// Eight threads infer with one model, as nn/module.h promises. Under TSan this finds data races;
// the results are the bits of one thread.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>
#include <binade/nn/conv.h>
#include <binade/nn/embedding.h>
#include <binade/nn/list.h>
#include <binade/nn/rnn.h>
#include <binade/nn/sequential.h>
#include <binade/nn/transformer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace inference_threads_test {
namespace {

namespace nn = binade::nn;
using binade::DType;
using binade::Precision;
using binade::Tensor;

// Images and tokens: every kind of layer that has a state, a mode, or a fused pass.
struct Net : nn::Module {
  Net() {
    images.add<nn::Conv2d>({.in = 2, .out = 4, .kernel = 3, .padding = 1});
    images.add<nn::BatchNorm2d>({.channels = 4});
    images.add<nn::ReLU>();
    images.add<nn::Dropout2d>({.p = 0.5});
    images.add<nn::Conv2d>({.in = 4, .out = 8, .kernel = 3, .padding = 1});
    images.add<nn::Flatten>();
    images.add<nn::Linear>({.in = 8 * 16, .out = 8});
    images.add<nn::Lambda>([](const Tensor& x) { return x * 0.5; });
    images.add<nn::LayerNorm>({.normalized_shape = {8}});
    for (int i = 0; i < 2; ++i) {
      blocks.emplace({.embed = 8, .heads = 2, .feedforward = 16, .batch_first = true});
    }
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = reshape(images(x), {1, x.size(0), 8});
    for (nn::TransformerEncoderLayer& block : blocks) {
      h = block(h, {.is_causal = true});
    }
    return dropout(head(gru.run(h).output));
  }
  nn::Sequential images{*this, "images"};
  nn::List<nn::TransformerEncoderLayer> blocks{*this, "blocks"};
  nn::GRU gru{*this, "gru", {.input = 8, .hidden = 6, .batch_first = true}};
  nn::Dropout dropout{*this, "dropout"};
  nn::Linear head{*this, "head", {.in = 6, .out = 3}};
};

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.numel(); ++i) {
    values.push_back(t.at(i));
  }
  return values;
}

class InferenceThreads : public ::testing::TestWithParam<bool> {};

TEST_P(InferenceThreads, ShareOneModel) {
  constexpr int kThreads = 8, kCalls = 6;
  binade::manual_seed(7);
  Net net;
  net.to({}, GetParam() ? Precision::mixed(DType::f16) : Precision::full());
  const Tensor x = binade::randn({5, 2, 4, 4});
  {
    const binade::NoGradGuard guard;
    net(x);  // running statistics that are not 0 and 1
  }
  net.eval();
  std::vector<double> want;
  {
    const binade::NoGradGuard guard;
    want = values_of(net(x));
  }
  std::atomic<int> ready{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // Some threads record a graph of their own, which they never run backward.
      const auto guard = t % 2 ? std::make_unique<binade::NoGradGuard>() : nullptr;
      ++ready;
      while (ready < kThreads) {
        std::this_thread::yield();
      }
      for (int call = 0; call < kCalls; ++call) {
        wrong += values_of(net(x)) != want;
        wrong += net.named_parameters().empty() || net.is_training();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Precisions, InferenceThreads, ::testing::Bool());

}  // namespace
}  // namespace inference_threads_test
