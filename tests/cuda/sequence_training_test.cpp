// A GPT of two layers, an LSTM classifier and a ResNet block train on the device as on the CPU: the
// same losses over 50 steps from the same weights and batches, in fp32.
#include <binade/binade.h>
#include <binade/core/ops/attention.h>
#include <binade/nn/embedding.h>
#include <binade/nn/rnn.h>
#include <binade/nn/transformer.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace binade::sequence_training_test {
namespace {

constexpr int kSteps = 50;
constexpr double kBound = 1e-4, kRate = 3e-3;

struct Batch {
  Tensor x, y;
};

Tensor whole_numbers(philox::Stream& random, const Dims& sizes, uint32_t below) {
  Tensor t = empty(sizes, DType::i64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<int64_t>()[i] = random.next_below(below);
  }
  return t;
}

// Counts up from a random start, so the next token is predictable.
constexpr int64_t kTokens = 11, kLength = 9, kWidth = 16;
Batch token_batch(int64_t step) {
  philox::Stream random(5, static_cast<uint64_t>(step));
  Batch batch{whole_numbers(random, {4, kLength}, kTokens), empty({4 * kLength}, DType::i64)};
  for (int64_t i = 0; i < batch.x.numel(); ++i) {
    int64_t* x = batch.x.data<int64_t>();
    x[i] = i % kLength == 0 ? x[i] : (x[i - 1] + 1) % kTokens;
    batch.y.data<int64_t>()[i] = (x[i] + 1) % kTokens;
  }
  return batch;
}

// The class is the half of the range in which the last token lies.
Batch sequence_batch(int64_t step) {
  philox::Stream random(6, static_cast<uint64_t>(step));
  Batch batch{whole_numbers(random, {8, 6}, kTokens), empty({8}, DType::i64)};
  for (int64_t i = 0; i < 8; ++i) {
    batch.y.data<int64_t>()[i] = batch.x.data<int64_t>()[i * 6 + 5] * 2 / kTokens;
  }
  return batch;
}

Batch image_batch(int64_t step) {
  philox::Stream random(7, static_cast<uint64_t>(step));
  Batch batch{empty({6, 3, 6, 6}), whole_numbers(random, {6}, 3)};
  for (int64_t i = 0; i < batch.x.numel(); ++i) {
    const auto label = static_cast<float>(batch.y.data<int64_t>()[i / 108]);
    batch.x.data<float>()[i] = random.next_uniform() + label * static_cast<float>(i / 36 % 3);
  }
  return batch;
}

class GPT : public nn::Module {
 public:
  GPT() {
    register_module("wte", wte_);
    register_module("wpe", wpe_);
    register_module("first", first_);
    register_module("second", second_);
    register_module("norm", norm_);
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = wte_(x) + slice(wpe_.weight, 0, 0, x.size(1));
    for (nn::TransformerEncoderLayer* layer : {&first_, &second_}) {
      h = layer->encode(h, {.is_causal = true});
    }
    return flatten(linear(norm_(h), wte_.weight), 0, 1);
  }

 private:
  static nn::TransformerEncoderLayerOptions layer() {
    return {.embed = kWidth,
            .heads = 2,
            .feedforward = 24,
            .dropout = 0,
            .activation = nn::FeedforwardActivation::gelu,
            .batch_first = true,
            .norm_first = true};
  }
  nn::Embedding wte_{{.count = kTokens, .width = kWidth}}, wpe_{{.count = 12, .width = kWidth}};
  nn::TransformerEncoderLayer first_{layer()}, second_{layer()};
  nn::LayerNorm norm_{{.normalized_shape = {kWidth}}};
};

class Classifier : public nn::Module {
 public:
  Classifier() {
    register_module("embed", embed_);
    register_module("lstm", lstm_);
    register_module("fc", fc_);
  }
  Tensor forward(const Tensor& x) override {
    return fc_(select(lstm_.run(embed_(x)).state.h, 0, 0));
  }

 private:
  nn::Embedding embed_{{.count = kTokens, .width = 8}};
  nn::LSTM lstm_{{.input = 8, .hidden = 12, .batch_first = true}};
  nn::Linear fc_{{.in = 12, .out = 2}};
};

// relu(bn(conv) -> bn(conv) + x) after a first convolution, then the mean over the image.
class ResNetBlock : public nn::Module {
 public:
  ResNetBlock() {
    register_module("stem", stem_);
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("conv2", conv2_);
    register_module("bn2", bn2_);
    register_module("fc", fc_);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor h = relu(stem_(x));
    return fc_(mean(relu(h + bn2_(conv2_(relu(bn1_(conv1_(h)))))), {2, 3}));
  }

 private:
  nn::Conv2d stem_{{.in = 3, .out = 6, .kernel = 3, .padding = 1}},
      conv1_{{.in = 6, .out = 6, .kernel = 3, .padding = 1, .bias = false}},
      conv2_{{.in = 6, .out = 6, .kernel = 3, .padding = 1, .bias = false}};
  nn::BatchNorm2d bn1_{{.channels = 6}}, bn2_{{.channels = 6}};
  nn::Linear fc_{{.in = 6, .out = 3}};
};

template <class Model>
std::vector<double> losses(const std::function<Batch(int64_t)>& draw, Device device) {
  manual_seed(3);
  Model model;
  model.to(device);
  optim::AdamW adam(model.parameters(), {.lr = kRate, .weight_decay = 0.01});
  std::vector<double> out;
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = draw(step);
    const Tensor loss = cross_entropy(model(batch.x.to(device)), batch.y.to(device));
    loss.backward();
    (void)adam.step();
    out.push_back(loss.item());
  }
  return out;
}

template <class Model>
void expect_same_losses(const std::function<Batch(int64_t)>& draw) {
  const std::vector<double> on_cpu = losses<Model>(draw, Device{});
  const std::vector<double> on_device = losses<Model>(draw, kernels::test_device());
  for (size_t i = 0; i < on_cpu.size(); ++i) {
    ASSERT_NEAR(on_device[i], on_cpu[i], kBound * std::abs(on_cpu[i])) << "step " << i;
  }
  const double first = std::accumulate(on_cpu.begin(), on_cpu.begin() + 10, 0.0);
  const double last = std::accumulate(on_cpu.end() - 10, on_cpu.end(), 0.0);
  EXPECT_LT(last, 0.98 * first) << "it does not learn";
}

TEST(SequenceTraining, GPT) { expect_same_losses<GPT>(token_batch); }
TEST(SequenceTraining, LSTMClassifier) { expect_same_losses<Classifier>(sequence_batch); }
TEST(SequenceTraining, ResNetBlock) { expect_same_losses<ResNetBlock>(image_batch); }

}  // namespace
}  // namespace binade::sequence_training_test
