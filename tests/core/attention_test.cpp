// What attention keeps for its backward grows with the length of a sequence, not with its square.
#include <binade/core/create.h>
#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <gtest/gtest.h>

namespace binade {
namespace {

// Bytes that a forward keeps beside its inputs and result, and that it uses at most.
struct Bytes {
  int64_t saved, peak;
};

Bytes bytes_of(int64_t length) {
  Tensor x[3];
  for (Tensor& t : x) {
    t = randn({2, length, 8});
    t.require_grad();
  }
  reset_peak_saved_bytes();
  const int64_t before = saved_bytes().live;
  const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true});
  const int64_t saved = saved_bytes().live - before;
  y.backward(randn(y.sizes()));
  return {saved, saved_bytes().peak - before};
}

TEST(Attention, SavedBytesGrowWithTheLength) {
  const Bytes once = bytes_of(512), four_times = bytes_of(2048);
  EXPECT_GT(once.saved, 0);
  EXPECT_LE(four_times.saved, 4 * once.saved + 1024);
  EXPECT_LE(four_times.peak, 4 * once.peak + 1024);
  EXPECT_LT(four_times.saved, 2 * 2048 * 2048 * 4 / 10) << "as much as a matrix of scores";
}

TEST(Attention, HasNoSecondDerivative) {
  Tensor q = randn({2, 3, 4});
  q.require_grad();
  const Tensor y = scaled_dot_product_attention(q, q, q);
  EXPECT_THROW(
      {
        backward(y, randn(y.sizes()), {.create_graph = true});
        sum(q.grad()).backward();
      },
      Error);
}

}  // namespace
}  // namespace binade
