// Attributes at and beyond the ends of their types: each is an Error that names the op, or gives a
// result that can be read. Nothing overflows, crashes, or computes with a value that was cut off.
#include <binade/binade.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace binade::attribute_limits_test {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kInt64s[] = {
    kLowest,          kLowest + 1,      -(int64_t{1} << 62), -(int64_t{1} << 40),
    int64_t{1} << 40, int64_t{1} << 62, kLargest - 1,        kLargest};
constexpr double kDoubles[] = {NAN, -INFINITY, -1};

template <class Value>
struct Call {
  const char* name;
  std::function<Tensor(Value)> run;
};

// "" if the call gives a result that can be read, else its Error.
template <class Value>
std::string refusal(const Call<Value>& call, Value value) {
  try {
    const Tensor y = call.run(value);
    if (y.numel() > 0) {
      y.at(y.numel() - 1);
    }
    return "";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.find(call.name) != text.npos || text.starts_with("out of memory"))
        << call.name << "(" << value << ") names another op: " << text;
    return text;
  }
}

Tensor image() { return ones({1, 2, 6, 6}); }
Tensor matrix() { return arange(12, DType::f32).reshape({3, 4}); }

Tensor joined(const std::vector<Tensor>& parts) { return parts.empty() ? Tensor() : parts[0]; }

std::vector<Call<int64_t>> windows() {
  return {
      {"conv2d",
       [](int64_t v) {
         return conv2d(image(), ones({2, 2, 3, 3}), {}, {.stride = {v, 1}});
       }},
      {"conv2d",
       [](int64_t v) {
         return conv2d(image(), ones({2, 2, 3, 3}), {}, {.padding = {0, v}});
       }},
      {"conv2d",
       [](int64_t v) {
         return conv2d(image(), ones({2, 2, 3, 3}), {}, {.dilation = {v, 1}});
       }},
      {"conv2d",
       [](int64_t v) {
         return conv2d(image(), ones({2, 2, 3, 3}), {}, {.groups = v});
       }},
      {"conv1d",
       [](int64_t v) {
         return conv1d(ones({1, 2, 6}), ones({2, 2, 3}), {}, {v});
       }},
      {"conv1d",
       [](int64_t v) {
         return conv1d(ones({1, 2, 6}), ones({2, 2, 3}), {}, {1, v});
       }},
      {"conv1d",
       [](int64_t v) {
         return conv1d(ones({1, 2, 6}), ones({2, 2, 3}), {}, {1, 0, v});
       }},
      {"conv_transpose2d",
       [](int64_t v) {
         return conv_transpose2d(image(), ones({2, 2, 3, 3}), {}, {.stride = {v, 1}});
       }},
      {"conv_transpose2d",
       [](int64_t v) {
         return conv_transpose2d(image(), ones({2, 2, 3, 3}), {}, {.padding = {v, 0}});
       }},
      {"conv_transpose2d",
       [](int64_t v) {
         return conv_transpose2d(image(), ones({2, 2, 3, 3}), {}, {.dilation = {1, v}});
       }},
      {"conv_transpose2d",
       [](int64_t v) {
         return conv_transpose2d(image(), ones({2, 2, 3, 3}), {},
                                 {.stride = {2, 2}, .output_padding = {v, 0}});
       }},
      {"max_pool2d",
       [](int64_t v) {
         return max_pool2d(image(), {.kernel = {v, 2}});
       }},
      {"max_pool2d",
       [](int64_t v) {
         return max_pool2d(image(), {.kernel = {2, 2}, .stride = {1, v}});
       }},
      {"max_pool2d",
       [](int64_t v) {
         return max_pool2d(image(), {.kernel = {2, 2}, .padding = {v, 0}});
       }},
      {"max_pool2d",
       [](int64_t v) {
         return max_pool2d(image(), {.kernel = {2, 2}, .dilation = {1, v}});
       }},
      {"max_pool2d",
       [](int64_t v) {
         return max_pool2d(image(), {.kernel = {2, 2}, .stride = {v, v}, .ceil_mode = true});
       }},
      {"avg_pool2d",
       [](int64_t v) {
         return avg_pool2d(image(), {.kernel = {2, v}});
       }},
      {"avg_pool2d",
       [](int64_t v) {
         return avg_pool2d(image(), {.kernel = {2, 2}, .padding = {v, 0}});
       }},
      {"adaptive_avg_pool2d", [](int64_t v) { return adaptive_avg_pool2d(image(), v, 1); }},
      {"interpolate", [](int64_t v) { return interpolate(image(), v, 2); }},
      {"interpolate",
       [](int64_t v) { return interpolate(image(), 2, v, {.mode = Interpolation::bilinear}); }},
      {"affine_grid",
       [](int64_t v) {
         return affine_grid(ones({1, 2, 3}), v, 2);
       }},
      {"affine_grid",
       [](int64_t v) {
         return affine_grid(ones({1, 2, 3}), 2, v, true);
       }},
      {"pad",
       [](int64_t v) {
         return pad(matrix(), {v, 0});
       }},
      {"pad",
       [](int64_t v) {
         return pad(matrix(), {v, v});
       }},
      {"pad",
       [](int64_t v) {
         return pad(image(), {0, 0, v, 1}, {.mode = PadMode::reflect});
       }},
  };
}

std::vector<Call<int64_t>> places() {
  const Tensor index = Tensor::from(std::vector<int64_t>{0, 2, 1});
  return {
      {"slice", [](int64_t v) { return slice(matrix(), 0, v, 3); }},
      {"slice", [](int64_t v) { return slice(matrix(), 0, 0, v); }},
      {"slice", [](int64_t v) { return slice(matrix(), 1, 0, 4, v); }},
      {"select", [](int64_t v) { return select(matrix(), 0, v); }},
      {"roll", [](int64_t v) { return roll(matrix(), {v}, {0}); }},
      {"roll",
       [](int64_t v) {
         return roll(matrix(), {v, v}, {0, 1});
       }},
      {"flip", [](int64_t v) { return flip(matrix(), {v}); }},
      {"roll", [](int64_t v) { return roll(matrix(), {1}, {v}); }},
      {"sum", [](int64_t v) { return sum(matrix(), {v}); }},
      {"var", [](int64_t v) { return var(matrix(), {v}); }},
      {"permute",
       [](int64_t v) {
         return permute(matrix(), {v, 0});
       }},
      {"reshape",
       [](int64_t v) {
         return reshape(matrix(), {v, 2});
       }},
      {"expand",
       [](int64_t v) {
         return expand(matrix(), {v, 4});
       }},
      {"expand",
       [](int64_t v) {
         return expand(ones({3, 1}), {3, v});
       }},
      {"repeat",
       [](int64_t v) {
         return repeat(matrix(), {v, 1});
       }},
      {"tile", [](int64_t v) { return tile(matrix(), {v}); }},
      {"repeat_interleave", [](int64_t v) { return repeat_interleave(matrix(), v, 0); }},
      {"repeat_interleave",
       [](int64_t v) {
         return repeat_interleave(matrix(), Tensor::from(std::vector{v, v, v}), 0);
       }},
      {"tril", [](int64_t v) { return tril(matrix(), v); }},
      {"triu", [](int64_t v) { return triu(matrix(), v); }},
      {"diagonal", [](int64_t v) { return diagonal(matrix(), v); }},
      {"diag_embed", [](int64_t v) { return diag_embed(ones({3}), v); }},
      {"split", [](int64_t v) { return joined(split(matrix(), v, 0)); }},
      {"split",
       [](int64_t v) {
         return joined(split(matrix(), {v, 3 - (v & 3)}, 0));
       }},
      {"chunk", [](int64_t v) { return joined(chunk(matrix(), v, 0)); }},
      {"topk", [](int64_t v) { return topk(matrix(), v).values; }},
      {"diff", [](int64_t v) { return diff(matrix(), v); }},
      {"one_hot", [=](int64_t v) { return one_hot(index, v); }},
      {"bincount", [=](int64_t v) { return bincount(index, {}, v); }},
      {"bincount", [](int64_t v) { return bincount(Tensor::from(std::vector{v})); }},
      {"one_hot", [](int64_t v) { return one_hot(Tensor::from(std::vector{v})); }},
      {"multinomial", [](int64_t v) { return multinomial(ones({4}), v, true); }},
      {"multinomial", [](int64_t v) { return multinomial(ones({4}), v); }},
      {"embedding", [=](int64_t v) { return embedding(matrix(), index, v); }},
      {"embedding_bag",
       [=](int64_t v) {
         return embedding_bag(matrix(), reshape(index, {1, 3}), {}, {}, {.padding_idx = v});
       }},
      {"embedding_bag",
       [=](int64_t v) {
         return embedding_bag(matrix(), index, Tensor::from(std::vector<int64_t>{0, 1, v}));
       }},
      {"group_norm", [](int64_t v) { return group_norm(image(), v); }},
      {"layer_norm", [](int64_t v) { return layer_norm(matrix(), {v}); }},
      {"cross_entropy",
       [=](int64_t v) { return cross_entropy(matrix(), index, {.ignore_index = v}); }},
      {"nll_loss", [=](int64_t v) { return nll_loss(matrix(), index, {.ignore_index = v}); }},
      {"ctc_loss",
       [](int64_t v) {
         const Tensor one = Tensor::from(std::vector<int64_t>{1});
         return ctc_loss(ones({2, 1, 3}), one.reshape({1, 1}), one, one, {.blank = v});
       }},
      {"eye", [](int64_t v) { return eye(v, 2); }},
      {"arange", [](int64_t v) { return arange(v); }},
      {"arange", [](int64_t v) { return arange(v, v + (v < 0 ? 3 : -3), v < 0 ? 1 : -1); }},
      {"linspace", [](int64_t v) { return linspace(0, 1, v); }},
      {"logspace", [](int64_t v) { return logspace(0, 1, v); }},
      {"randperm", [](int64_t v) { return randperm(v); }},
      {"full", [](int64_t v) { return full({v}, 1); }},
      {"zeros",
       [](int64_t v) {
         return zeros({2, v});
       }},
      {"empty",
       [](int64_t v) {
         return empty({v, v});
       }},
  };
}

std::vector<Call<double>> numbers() {
  const Tensor index = Tensor::from(std::vector<int64_t>{0, 2, 1});
  return {
      {"dropout", [](double v) { return dropout(matrix(), v); }},
      {"scaled_dot_product_attention",
       [](double v) {
         const Tensor q = ones({1, 2, 4});
         return scaled_dot_product_attention(q, q, q, {.dropout = v});
       }},
      {"cross_entropy",
       [=](double v) { return cross_entropy(matrix(), index, {.label_smoothing = v}); }},
      {"layer_norm", [](double v) { return layer_norm(matrix(), {4}, {}, {}, v); }},
      {"rms_norm", [](double v) { return rms_norm(matrix(), {4}, {}, v); }},
      {"group_norm", [](double v) { return group_norm(image(), 1, {}, {}, v); }},
      {"instance_norm", [](double v) { return instance_norm(image(), {}, {}, v); }},
      {"batch_norm",
       [](double v) { return batch_norm(image(), {}, {}, {}, {}, {.training = true, .eps = v}); }},
      {"batch_norm",
       [](double v) {
         return batch_norm(image(), {}, {}, {}, {}, {.training = true, .momentum = v});
       }},
      {"huber_loss", [](double v) { return huber_loss(matrix(), matrix(), v); }},
      {"smooth_l1_loss", [](double v) { return smooth_l1_loss(matrix(), matrix(), v); }},
      {"quantile", [](double v) { return quantile(matrix(), v); }},
      {"normalize", [](double v) { return normalize(matrix(), 2, 1, v); }},
      {"cosine_similarity", [](double v) { return cosine_similarity(matrix(), matrix(), 1, v); }},
      {"bernoulli", [](double v) { return bernoulli(full({3}, v)); }},
      {"multinomial", [](double v) { return multinomial(full({3}, v), 1); }},
  };
}

TEST(AttributeLimits, WindowsAreRefusedOrWork) {
  for (const Call<int64_t>& call : windows()) {
    for (const int64_t value : kInt64s) {
      refusal(call, value);
    }
  }
}

TEST(AttributeLimits, SizesAndPlacesAreRefusedOrWork) {
  for (const Call<int64_t>& call : places()) {
    for (const int64_t value : kInt64s) {
      refusal(call, value);
    }
  }
}

TEST(AttributeLimits, NumbersWithoutMeaningAreRefused) {
  for (const Call<double>& call : numbers()) {
    for (const double value : kDoubles) {
      EXPECT_NE(refusal(call, value), "") << call.name << "(" << value << ")";
    }
  }
}

}  // namespace
}  // namespace binade::attribute_limits_test
