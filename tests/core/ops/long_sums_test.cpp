// Compares results and gradients that lose digits or range in f32 if a sum, mean or power is
// computed carelessly with the same op in f64. The program uses the baseline instruction set, where
// an accumulator adds the most terms. It runs on the device that BINADE_TEST_DEVICE names.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

namespace binade::long_sums_test {
namespace {

[[maybe_unused]] const int kForced = setenv("BINADE_FORCE_ISA", "baseline", 0);

Device device() {
  const char* name = std::getenv("BINADE_TEST_DEVICE");
  return name ? Device::parse(name) : Device{};
}

using Function = std::function<Tensor(const Tensor& x)>;

// Returns n values: `first` for the first n / parts, then `second`. Equal terms round alike.
Tensor steps(int64_t n, int64_t parts, double first, double second) {
  const Tensor front =
      cast(lt(arange(n, DType::f32, device()), static_cast<double>(n / parts)), DType::f32);
  return front * (first - second) + second;
}

double largest(const Tensor& x) { return max(abs(x)).to(Device{}).item(); }

Tensor gradient_of(const Function& f, const Tensor& at) {
  Tensor x = at.detach();
  x.require_grad();
  const Tensor y = f(x);
  backward(y, ones(y.sizes(), y.dtype(), y.device()));
  return x.grad().to(Device{});
}

// Bounds the largest difference between f in f32 and in f64 relative to the largest value, for the
// results and for the gradients, which contain one more rounded sum.
void expect_digits(const char* name, const Function& f, const Tensor& x, double tolerance,
                   const Tensor& seed = {}) {
  std::vector<Tensor> results, gradients;
  for (DType dtype : {DType::f32, DType::f64}) {
    Tensor input = cast(x, dtype).detach();
    input.require_grad();
    const Tensor y = f(input);
    backward(y, seed.defined() ? reshape(cast(seed, dtype), y.sizes())
                               : full(y.sizes(), .1, dtype, device()));
    results.push_back(cast(y.detach(), DType::f64));
    gradients.push_back(cast(input.grad(), DType::f64));
  }
  const auto error = [](const std::vector<Tensor>& got) {
    return largest(got[0] - got[1]) / largest(got[1]);
  };
  EXPECT_LE(error(results), tolerance) << name;
  EXPECT_LE(error(gradients), 4 * tolerance) << name << " gradient";
}

TEST(LongSums, RowsOfAMillion) {
  const int64_t n = device().is_cpu() ? 1'000'000 : 5000;
  const Tensor x = reshape(steps(n, 2, .1, .3), {1, n}), dy = steps(n, 4, .3, .1);
  const Tensor target = zeros({1}, DType::i64).to(device());
  const Tensor other = reshape(steps(n, 3, .1, .3), {1, n});
  const auto like = [](const Tensor& t, const Tensor& x) { return cast(t, x.dtype()); };
  const auto expect = [&](const char* name, const Function& f) {
    expect_digits(name, f, x, 1e-5, f(x).numel() == n ? dy : Tensor());
  };
  expect("softmax", [](const Tensor& x) { return softmax(x); });
  expect("log_softmax", [](const Tensor& x) { return log_softmax(x); });
  expect("layer_norm", [n](const Tensor& x) { return layer_norm(x, {n}); });
  expect("rms_norm", [n](const Tensor& x) { return rms_norm(x, {n}); });
  expect("cosine", [&](const Tensor& x) { return cosine_similarity(x, like(other, x)); });
  for (const double smoothing : {0., .1}) {
    expect("cross_entropy", [&](const Tensor& x) {
      return cross_entropy(x, target, {.label_smoothing = smoothing});
    });
    expect("cross_entropy of probabilities", [&](const Tensor& x) {
      return cross_entropy(x, like(other, x) / (static_cast<double>(n) * .2),
                           {.label_smoothing = smoothing});
    });
  }
}

TEST(LongSums, PoolingOfAMillionElements) {
  const int64_t side = device().is_cpu() ? 1000 : 300, n = side * side;
  const Tensor image = reshape(steps(n, 2, .1, .3), {1, 1, side, side});
  const Pool2dOptions whole{.kernel = {side, side}};
  const auto expect = [](const char* name, const Function& f, const Tensor& x) {
    expect_digits(name, f, x, 1e-5);
  };
  expect(
      "avg_pool2d", [&](const Tensor& x) { return avg_pool2d(x, whole); }, image);
  const auto to_one = [](const Tensor& x) { return adaptive_avg_pool2d(x, 1, 1); };
  expect("adaptive_avg_pool2d", to_one, image);
  expect("channels last", to_one, channels_last(cat({image, image, image, image, image}, 1)));
  expect(
      "to a large image", [side](const Tensor& x) { return adaptive_avg_pool2d(x, side, side); },
      full({1, 1, 1, 1}, .3, DType::f32, device()));
}

TEST(LongSums, SpreadBesideALargeMeanOrNearZero) {
  const Tensor far = arange(100, DType::f32, device()) / 16 + 1e6;
  const Tensor odd = stack({far, neg(far)});
  for (const bool unbiased : {false, true}) {
    const auto std_of = [&](const Tensor& x) { return std(x, {-1}, unbiased); };
    expect_digits(
        "var", [&](const Tensor& x) { return var(x, {-1}, unbiased); }, odd, 1e-5);
    expect_digits("std", std_of, odd, 1e-5);
    // Subnormal results have few digits.
    expect_digits("small std", std_of, from_values({0., 2e-42, 3e-42}, {3}, DType::f32, device()),
                  .01);
  }
  Tensor equal = full({5}, 3, DType::f32, device());
  equal.require_grad();
  backward(std(equal));
  EXPECT_EQ(largest(equal.grad()), 0);
}

// The power of a small share of the norm must not use a higher exponent than the result's.
TEST(LongSums, NormsOfEveryOrder) {
  const Tensor x = from_values({1, -1e-15, 2e-10, -3, 0, 1e-3}, {6}, DType::f32, device());
  for (const double p : {-2., -.5, .5, 1.5, 3., 4., 7.}) {
    const Tensor terms = p < 0 ? x + 4 : x;
    for (const double scale : {1., 1e-20, 1e20}) {
      const Function f = [p](const Tensor& x) { return norm(x, p); };
      expect_digits("norm", f, terms * scale, 2e-5);
      const Tensor small = gradient_of(f, terms * scale),
                   wide = gradient_of(f, cast(terms * scale, DType::f64));
      for (int64_t i = 0; i < x.numel(); ++i) {
        const double expected = wide.at(i);
        EXPECT_NEAR(small.at(i), expected, 1e-4 * std::fabs(expected) + 1e-44) << p << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace binade::long_sums_test
