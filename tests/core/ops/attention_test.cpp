// The memory that attention saves for backward grows with the length of a sequence, not with its
// square. Dropout of the weights equals dropout in the composed form.
#include <binade/core/ops.h>
#include <binade/core/ops/attention.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <cmath>

namespace binade::attention_test {
namespace {

// Bytes that a forward saves besides its inputs and result, its peak of saved bytes, and the peak
// of allocated bytes in forward and backward.
struct Bytes {
  int64_t saved, peak, allocated;
};

Bytes bytes_of(int64_t length, double dropout) {
  Tensor x[3];
  for (Tensor& t : x) {
    t = randn({2, length, 8});
    t.require_grad();
  }
  reset_peak_saved_bytes();
  reset_peak_memory();
  const int64_t before = saved_bytes().live, allocated = memory_stats().allocated;
  const Tensor y =
      scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true, .dropout = dropout});
  const int64_t saved = saved_bytes().live - before;
  y.backward(randn(y.sizes()));
  return {saved, saved_bytes().peak - before, memory_stats().peak - allocated};
}

TEST(Attention, SavedBytesGrowWithTheLength) {
  for (double dropout : {0.0, 0.1}) {
    const Bytes once = bytes_of(512, dropout), four_times = bytes_of(2048, dropout);
    EXPECT_GT(once.saved, 0);
    EXPECT_LE(four_times.saved, 4 * once.saved + 1024);
    EXPECT_LE(four_times.peak, 4 * once.peak + 1024);
    EXPECT_LT(four_times.allocated, 2048 * 2048) << "a byte for each of one head's weights";
  }
}

// With equal seeds the masks equal those of dropout(softmax(scores)): same results, gradients and
// number of draws.
TEST(Attention, DropoutIsThatOfTheMatrixOfWeights) {
  const Tensor inputs[] = {randn({2, 3, 9, 4}, DType::f64), randn({3, 7, 4}, DType::f64),
                           randn({2, 1, 7, 5}, DType::f64), randn({9, 7}, DType::f64)};
  const Tensor upstream = randn({2, 3, 9, 5}, DType::f64);
  const auto results = [&](bool composed) {
    std::vector<Tensor> x, out;
    for (const Tensor& input : inputs) {
      x.push_back(input.detach());
      x.back().require_grad();
    }
    manual_seed(5);
    const Tensor y =
        composed
            ? matmul(
                  dropout(softmax(add(mul(matmul(x[0], transpose(x[1], -1, -2)), 0.5), x[3])), 0.3),
                  x[2])
            : scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3], .dropout = 0.3});
    y.backward(upstream);
    out.push_back(y.detach());
    for (const Tensor& t : x) {
      out.push_back(t.grad());
    }
    out.push_back(randn({3}, DType::f64));
    return out;
  };
  const std::vector<Tensor> got = results(false), expected = results(true);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LT(amax(abs(sub(got[i], expected[i]))).item(), 1e-12) << i;
  }
}

TEST(Attention, DropsTheShareThatItSays) {
  manual_seed(6);
  const Tensor y = scaled_dot_product_attention(zeros({100, 1}), zeros({500, 1}), ones({500, 1}),
                                                {.dropout = 0.25});
  EXPECT_NEAR(mean(y).item(), 1, 4 * std::sqrt(0.25 / 0.75 / 50000));
}

// q, k and v that are parts of one matrix, with batch and length in both orders, give the same bits
// as copies of them; their gradient then needs no concatenation.
TEST(Attention, PartsOfOneMatrixGetPartsOfOneGradient) {
  const int64_t heads = 3, size = 4;
  const Tensor input = randn({2, 5, 3 * heads * size});
  const Tensor upstream = randn({2, heads, 5, size});
  for (const bool batch_first : {true, false}) {
    std::vector<Tensor> results[2];
    for (const bool copied : {false, true}) {
      Tensor x = batch_first ? input.detach() : contiguous(transpose(input, 0, 1)).detach();
      x.require_grad();
      Tensor part[3];
      int i = 0;
      for (const Tensor& t : split(mul(x, 2), heads * size, -1)) {
        part[i] = permute(reshape(t, {t.size(0), t.size(1), heads, size}),
                          batch_first ? Dims{0, 2, 1, 3} : Dims{1, 2, 0, 3});
        part[i] = copied ? contiguous(part[i]) : part[i];
        ++i;
      }
      const Tensor y = scaled_dot_product_attention(part[0], part[1], part[2]);
      y.backward(upstream);
      results[copied] = {contiguous(y.detach()), x.grad()};
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(amax(abs(sub(results[0][i], results[1][i]))).item(), 0) << i;
    }
  }
}

// Covers parts of which only some require a gradient, and a matrix with more parts.
TEST(Attention, PartsThatAreNotPackedQkv) {
  for (const int64_t parts : {3, 4}) {
    Tensor x = randn({2, 5, parts * 8});
    x.require_grad();
    Tensor dense[2];
    for (const bool copied : {false, true}) {
      std::vector<Tensor> p = split(x, 8, -1);
      for (Tensor& t : p) {
        t = permute(reshape(t, {2, 5, 2, 4}), {0, 2, 1, 3});
        t = copied ? contiguous(t) : t;
      }
      const Tensor y = scaled_dot_product_attention(parts == 3 ? p[0].detach() : p[0], p[1], p[2]);
      dense[copied] = grad({sum(mul(y, y))}, {x})[0];
    }
    EXPECT_EQ(amax(abs(sub(dense[0], dense[1]))).item(), 0) << parts;
    EXPECT_GT(amax(abs(dense[0])).item(), 0);
  }
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
}  // namespace binade::attention_test
