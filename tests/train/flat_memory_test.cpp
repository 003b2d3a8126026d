// Runs many steps of a model whose sequences change length. After a warm-up the allocator takes no
// more memory from the system, and the memory held between steps does not grow.
#include <binade/binade.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace binade::flat_memory_test {
namespace {

constexpr int64_t kWidth = 16, kLongest = 48;

// A block of self-attention over [T, kWidth], made of ops.
class Block : public nn::Module {
 public:
  Block() : qkv_({.in = kWidth, .out = 3 * kWidth}), out_({.in = kWidth, .out = kWidth}) {
    register_module("qkv", qkv_);
    register_module("out", out_);
  }
  Tensor forward(const Tensor& x) override {
    const std::vector<Tensor> parts = split(qkv_(x), kWidth, 1);
    const Tensor scores = matmul(parts[0], transpose(parts[1], 0, 1)) * (1 / std::sqrt(kWidth));
    return x + out_(matmul(dropout(softmax(scores, -1), 0.1), parts[2]));
  }

 private:
  nn::Linear qkv_, out_;
};

class Model : public nn::Module {
 public:
  Model() : head_({.in = kWidth, .out = 2}) {
    register_module("first", first_);
    register_module("second", second_);
    register_module("head", head_);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor h = first_(x);
    return head_(recompute([this](const Tensor& t) { return second_(t); }, h));
  }

 private:
  Block first_, second_;
  nn::Linear head_;
};

TEST(FlatMemory, TenThousandStepsOfChangingLengths) {
  manual_seed(0);
  Model model;
  optim::AdamW adam(model.parameters(), {.lr = 1e-4});
  const auto step = [&](int64_t length) {
    const Tensor x = randn({length, kWidth});
    const Tensor target =
        gt(slice(x, 1, 0, 1), zeros({length, 1})).to(DType::i64).reshape({length});
    const Tensor loss = nn::cross_entropy(model(x), target);
    loss.backward();
    EXPECT_EQ(adam.step(), optim::StepOutcome::applied);
    model.parameters().arena()->clear_gradients();
  };
  for (int64_t length = 1; length <= kLongest; ++length) {
    step(length);
  }
  for (int64_t length = kLongest; length >= 1; --length) {
    step(length);
  }
  reset_peak_memory();
  const MemoryStats before = memory_stats();
  const int64_t saved = saved_bytes().live, nodes = detail::thread_state.live_nodes;
  for (int i = 0; i < 10'000; ++i) {
    step(1 + (i * 29 + i / 7) % kLongest);
    if (i == 5'000) {
      reset_peak_memory();
    }
  }
  const MemoryStats after = memory_stats();
#ifndef BINADE_PLAIN_MALLOC  // with it, every block is a call of malloc
  EXPECT_EQ(after.system_allocations, before.system_allocations);
#endif
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(saved_bytes().live, saved);
  EXPECT_EQ(detail::thread_state.live_nodes, nodes);
}

}  // namespace
}  // namespace binade::flat_memory_test
