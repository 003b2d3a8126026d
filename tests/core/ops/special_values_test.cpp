// Tests ops at values that reveal shortcuts: divisions that must round once, NaN, numbers near the
// ends of the range, empty reductions. Runs on the device that BINADE_TEST_DEVICE names.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include <tests/support/error_of.h>

namespace binade::special_values_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloating[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

Device device() {
  const char* name = std::getenv("BINADE_TEST_DEVICE");
  return name ? Device::parse(name) : Device{};
}

Tensor values(std::initializer_list<double> list, DType dtype = DType::f32) {
  return from_values(list, {static_cast<int64_t>(list.size())}, dtype, device());
}

// The gradient of f at x for an upstream gradient whose elements are all `seed`.
Tensor gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& at, double seed = 1) {
  Tensor x = at.detach();
  x.require_grad();
  const Tensor y = f(x);
  backward(y, full(y.sizes(), seed, y.dtype(), y.device()));
  return x.grad();
}

void expect_values(const Tensor& got, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size())) << what;
  const Tensor host = got.to(Device{});
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = host.at(static_cast<int64_t>(i));
    EXPECT_TRUE(value == expected[i] || (std::isnan(value) && std::isnan(expected[i])))
        << what << " element " << i << ": " << value << ", expected " << expected[i];
  }
}

double item(const Tensor& x) { return x.to(Device{}).item(); }

TEST(SpecialValues, DivisionByANumberRoundsOnce) {
  for (DType dtype : kFloating) {
    for (int n = 1; n < 1000; n += device().is_cpu() ? 1 : 37) {
      if (dtype == DType::bf16 && n > 256) {
        break;  // not all of these are bf16 numbers
      }
      const Tensor x = full({3}, n, dtype, device());
      expect_values(x / n, {1, 1, 1}, "n / n");
      expect_values(gradient([n](const Tensor& t) { return t / n; }, x, n), {1, 1, 1}, "gradient");
    }
  }
  expect_values(values({0, 1e-310, -3e-310}, DType::f64) / 1e-310, {0, 1, -3}, "subnormal");
  expect_values(values({0, 1, -1, kNaN}) / 0, {kNaN, INFINITY, -INFINITY, kNaN}, "by zero");
  expect_values(values({60000}, DType::f16) / 120000, {.5}, "a divisor that is no f16 number");
}

TEST(SpecialValues, MeansDivide) {
  for (DType dtype : {DType::f32, DType::f64}) {
    for (int n = 1; n < 400; n += device().is_cpu() ? 1 : 19) {
      const Tensor x = ones({n}, dtype, device());
      EXPECT_EQ(item(mean(x)), 1) << n;
      const Tensor dx = gradient([](const Tensor& t) { return mean(t); }, x, n);
      EXPECT_EQ(item(select(dx, 0, n - 1)), 1) << n;
      EXPECT_EQ(item(mse_loss(x, zeros({n}, dtype, device()))), 1) << n;
      EXPECT_EQ(item(l1_loss(x, zeros({n}, dtype, device()))), 1) << n;
    }
  }
}

TEST(SpecialValues, GradientOfExtremesOfNaN) {
  for (DType dtype : kFloating) {
    const Tensor x = values({1, kNaN, 3, kNaN}, dtype);
    for (auto f : {static_cast<Tensor (*)(const Tensor&)>(max),
                   static_cast<Tensor (*)(const Tensor&)>(min)}) {
      EXPECT_TRUE(std::isnan(item(f(x))));
      expect_values(gradient(f, x), {0, .5, 0, .5}, "max and min share it");
    }
    const Tensor rows = reshape(values({1, kNaN, 3, 2, 5, 5}, dtype), {2, 3});
    for (bool largest : {true, false}) {
      const auto of_rows = [largest](const Tensor& t) {
        return largest ? amax(t, {1}) : amin(t, {1});
      };
      const std::vector<double> last =
          largest ? std::vector<double>{0, .5, .5} : std::vector<double>{1, 0, 0};
      expect_values(gradient(of_rows, rows), {kNaN, kNaN, kNaN, last[0], last[1], last[2]},
                    "amax and amin");
      const auto along = [largest](const Tensor& t) {
        return largest ? max(t, 1).values : min(t, 1).values;
      };
      expect_values(gradient(along, rows), {0, 1, 0, largest ? 0.0 : 1.0, largest ? 1.0 : 0.0, 0},
                    "along a dim");
    }
  }
}

TEST(SpecialValues, NormsKeepNaN) {
  for (DType dtype : kFloating) {
    const Tensor x = values({kNaN, 1, 2}, dtype);
    expect_values(rms_norm(x, {3}), {kNaN, kNaN, kNaN}, "rms_norm");
    expect_values(layer_norm(x, {3}), {kNaN, kNaN, kNaN}, "layer_norm");
    expect_values(gradient([](const Tensor& t) { return rms_norm(t, {3}); }, x), {kNaN, kNaN, kNaN},
                  "rms_norm backward");
    expect_values(gradient([](const Tensor& t) { return norm(t); }, x), {kNaN, kNaN, kNaN},
                  "norm backward");
    expect_values(gradient([](const Tensor& t) { return std(t); }, x), {kNaN, kNaN, kNaN},
                  "std backward");
  }
}

TEST(SpecialValues, RangeOfStdAndNorm) {
  for (double scale : {1e25, 1e-25, 1e37, 1e-36, 1e-41}) {
    const bool subnormal = scale < 1e-38;
    const Tensor x = values({1 * scale, 2 * scale, 4 * scale});
    const Tensor stored = x.to(Device{});
    const double a = stored.at(0), b = stored.at(1), c = stored.at(2), m = (a + b + c) / 3;
    const double deviation =
        std::sqrt(((a - m) * (a - m) + (b - m) * (b - m) + (c - m) * (c - m)) / 2);
    const double length = std::sqrt(a * a + b * b + c * c);
    const double tolerance = subnormal ? 2e-4 : 1e-6;
    EXPECT_NEAR(item(std(x)) / deviation, 1, tolerance) << scale;
    EXPECT_NEAR(item(norm(x)) / length, 1, tolerance) << scale;
    const Tensor dx = gradient([](const Tensor& t) { return norm(t); }, x).to(Device{});
    EXPECT_NEAR(dx.at(1), b / length, subnormal ? 2e-4 : 1e-6) << scale;
    if (!subnormal) {
      const Tensor ds = gradient([](const Tensor& t) { return std(t); }, x).to(Device{});
      EXPECT_NEAR(ds.at(2), (c - m) / (2 * deviation), 1e-6) << scale;
    }
  }
}

// The norm of f16 vectors may exceed f16, and eps is 0 there.
TEST(SpecialValues, NormalizeOfF16) {
  for (const double x : {0.0, 6e-8, 1.0, 6e4}) {
    const Tensor y = normalize(values({x, x}, DType::f16), 2, 0);
    EXPECT_EQ(y.dtype(), DType::f16);
    EXPECT_NEAR(item(select(y, 0, 1)), x > 0 ? std::sqrt(0.5) : 0, 1e-3) << x;
  }
}

TEST(SpecialValues, NothingToReduce) {
  for (DType dtype : kFloating) {
    const Tensor none = zeros({0}, dtype, device()), rows = zeros({2, 0}, dtype, device());
    EXPECT_TRUE(std::isnan(item(mean(none))));
    EXPECT_EQ(item(sum(none)), 0);
    EXPECT_EQ(item(prod(none)), 1);
    EXPECT_EQ(item(norm(none)), 0);
    EXPECT_TRUE(std::isnan(item(var(none))));
    EXPECT_EQ(item(logsumexp(none)), -INFINITY);
    expect_values(mean(rows, {1}), {kNaN, kNaN}, "mean of empty rows");
    EXPECT_EQ(mean(rows, {0}).numel(), 0);
    EXPECT_EQ(gradient([](const Tensor& t) { return mean(t); }, none).numel(), 0);
    EXPECT_EQ(gradient([](const Tensor& t) { return mean(t, {0}); }, rows).numel(), 0);
    for (auto f : {mse_loss, l1_loss}) {
      EXPECT_TRUE(std::isnan(item(f(none, none, Reduction::mean))));
      EXPECT_EQ(item(f(none, none, Reduction::sum)), 0);
    }
    EXPECT_TRUE(std::isnan(item(bce_with_logits(none, none))));
    EXPECT_TRUE(std::isnan(item(smooth_l1_loss(none, none))));
    EXPECT_TRUE(std::isnan(item(huber_loss(none, none))));
    EXPECT_TRUE(std::isnan(item(kl_div(none, none))));
    const Tensor logits = zeros({0, 3}, dtype, device());
    const Tensor targets = zeros({0}, DType::i64, device());
    EXPECT_TRUE(std::isnan(item(cross_entropy(logits, targets))));
    EXPECT_TRUE(std::isnan(item(cross_entropy(logits, logits))));
    EXPECT_TRUE(std::isnan(item(nll_loss(logits, targets))));
    EXPECT_NE(error_of([&] { (void)amax(none); }), "none");
    EXPECT_NE(error_of([&] { (void)max(none); }), "none");
  }
  const Tensor integers = zeros({3}, DType::i64, device());
  EXPECT_EQ(error_of([&] { (void)mean(integers); }),
            "mean: got dtype i64, expected a floating dtype; convert with to()");
}

TEST(SpecialValues, RunningVarianceFarBelowEps) {
  for (double scale : {1e-6, 1.0, 1e4}) {
    const Tensor x = reshape(values({1 * scale, 2 * scale, 4 * scale}), {3, 1});
    const Tensor mean = zeros({1}, DType::f32, device()), var = ones({1}, DType::f32, device());
    (void)batch_norm(x, {}, {}, mean, var, {.training = true, .momentum = 1});
    EXPECT_NEAR(item(var) / (scale * scale * 7 / 3), 1, 1e-6) << scale;
    EXPECT_NEAR(item(mean) / (scale * 7 / 3), 1, 1e-6) << scale;
  }
}

TEST(SpecialValues, BatchNormOfEvaluationNeedsStatistics) {
  const Tensor x = randn({4, 3}, DType::f32, device());
  EXPECT_EQ(error_of([&] { (void)batch_norm(x, {}, {}, {}, {}, {.training = false}); }),
            "batch_norm: got training = false without running_mean and running_var, expected both; "
            "to normalise by the batch without them, set training = true");
  EXPECT_EQ(batch_norm(x, {}, {}, {}, {}).sizes(), x.sizes());
}

TEST(SpecialValues, PoolingOfLargeWindows) {
  for (DType dtype : kFloating) {
    const Tensor x = cast(reshape(arange(32 * 32, DType::f32, device()), {1, 1, 32, 32}), dtype);
    const auto pool = [](const Tensor& t) {
      return max_pool2d(t, {.kernel = {16, 16}, .stride = {16, 16}});
    };
    EXPECT_EQ(item(sum(gradient(pool, x))), 4);
    const Tensor small = reshape(values({0, 1, 2, 3}, dtype), {1, 1, 2, 2});
    const Pool2dOptions beyond{.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true};
    expect_values(max_pool2d(small, beyond), {3}, "max");
    expect_values(avg_pool2d(small, beyond), {1.5}, "average");
    expect_values(gradient([&](const Tensor& t) { return max_pool2d(t, beyond); }, small),
                  {0, 0, 0, 1}, "max backward");
    expect_values(gradient([&](const Tensor& t) { return avg_pool2d(t, beyond); }, small),
                  {.25, .25, .25, .25}, "average backward");
    const Pool2dOptions padding{.kernel = {2, 2},
                                .stride = {1, 1},
                                .padding = {1, 1},
                                .dilation = {3, 3},
                                .ceil_mode = true};
    expect_values(max_pool2d(small, padding), {-INFINITY}, "only padding");
    expect_values(gradient([&](const Tensor& t) { return max_pool2d(t, padding); }, small),
                  {0, 0, 0, 0}, "only padding, backward");
  }
}

TEST(SpecialValues, MessagesNameTheOpAndWhatItGot) {
  const Tensor image = ones({1, 2, 3, 4}, DType::f32, device());
  EXPECT_EQ(error_of([&] {
              (void)max_pool2d(image, {.kernel = {5, 5}});
            }),
            "max_pool2d: got input size 3 with padding 0, expected at least 5 with padding for "
            "kernel 5 with dilation 1");
  EXPECT_EQ(error_of([&] {
              (void)avg_pool2d(image, {.kernel = {2147483697, 1}, .stride = {1, 1}});
            }),
            "avg_pool2d: got kernel 2147483697, stride 1, dilation 1, expected 1 to 2^31");
  const Tensor integers = zeros({2}, DType::u8, device());
  EXPECT_EQ(error_of([&] { (void)mean(integers); }),
            "mean: got dtype u8, expected a floating dtype; convert with to()");
  EXPECT_EQ(error_of([&] {
              (void)cross_entropy(ones({2, 3}, DType::f32, device()),
                                  zeros({2}, DType::i64, device()),
                                  {.weight = ones({4}, DType::f32, device())});
            }),
            "cross_entropy: got a weight of shape [4] and dtype f32, expected [3] of a floating "
            "dtype, one factor per class");
}

TEST(SpecialValues, RollAndGroupNormRefuseWhatIsNotThere) {
  EXPECT_EQ(error_of([] { (void)roll(ones({}, DType::f32, device()), {1}, {0}); }),
            "roll: got dims [0] for a 0-d tensor, expected no dims");
  EXPECT_EQ(item(roll(ones({}, DType::f32, device()), {1})), 1);
  EXPECT_EQ(error_of([] {
              (void)group_norm(ones({2, 4, 0, 3}, DType::f32, device()), 2);
            }),
            "group_norm: got x of shape [2, 4, 0, 3], expected [N, C, ...] with at least one value "
            "per channel");
}

TEST(SpecialValues, InPlaceChangesRefuseUndefinedTensors) {
  const Tensor x = zeros({2}, DType::f32, device());
  EXPECT_EQ(error_of([&] { x.copy_(Tensor()); }),
            "copy_: got an undefined source, expected a tensor that broadcasts to [2]");
  EXPECT_EQ(error_of([&] { Tensor().copy_(x); }), "copy_: got an undefined tensor");
  EXPECT_EQ(error_of([] { Tensor().fill_(1); }), "fill_: got an undefined tensor");
}

TEST(SpecialValues, OpsOfTwoInputsNameThemselvesWhereADtypeIsWrong) {
  const Tensor integers = ones({2}, DType::i64, device()), truth = eq(integers, integers);
  EXPECT_EQ(error_of([&] { (void)logaddexp(integers, integers); }),
            "logaddexp: got dtype i64, expected a floating dtype; convert with to()");
  EXPECT_EQ(error_of([&] { (void)add(truth, truth); }),
            "add: got dtype bool, expected a floating dtype, i64, i32 or u8; convert with to()");
}

TEST(SpecialValues, AProductOfOneElementHasTheGradientOfACopy) {
  const double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : kFloating) {
    for (const double value : {kNaN, inf, 0.0, 3.0}) {
      expect_values(gradient([](const Tensor& x) { return prod(x); }, values({value}, dtype), 2),
                    {2}, "prod");
      expect_values(
          gradient([](const Tensor& x) { return cumprod(x, 0); }, values({value}, dtype), 2), {2},
          "cumprod");
    }
  }
}

// Rows of equal values, of one large value among equal ones, and of a ramp, at a distance of 1e4
// from 0: the results must be finite, and a softmax must sum to 1.
TEST(SpecialValues, NormalizationsFarFromZero) {
  for (DType dtype : {DType::f64, DType::f32}) {
    for (const int64_t count : {1, 7, 1000, device().is_cpu() ? 1'000'000 : 5000}) {
      for (const double offset : {1e4, -1e4}) {
        const Tensor ramp = arange(count, dtype, device());
        const Tensor peak = cast(eq(ramp, 0.0), dtype) * 1e4;
        for (const Tensor& shape :
             {ramp * 0.0, peak, neg(peak), ramp / static_cast<double>(count)}) {
          const Tensor x = reshape(shape + offset, {1, count});
          const Tensor y = softmax(x);
          EXPECT_NEAR(item(sum(y)), 1, 4 * epsilon(dtype) * std::sqrt(double(count)));
          const Tensor norm = layer_norm(x, {count});
          const Tensor target = zeros({1}, DType::i64).to(device());
          for (const Tensor& result :
               {log_softmax(x), logsumexp(x), norm, var(x, {}, false), cross_entropy(x, target)}) {
            EXPECT_EQ(item(sum(result - result)), 0)
                << to_string(dtype) << " " << count << " " << offset;
          }
          // The mean is rounded to the dtype, and its error is multiplied by rstd.
          const double rstd = 1 / std::sqrt(item(var(x, {}, false)) + 1e-5);
          EXPECT_NEAR(item(mean(norm)), 0, 2 * epsilon(dtype) * 2e4 * rstd)
              << to_string(dtype) << " " << count << " " << offset;
        }
      }
    }
  }
}

TEST(SpecialValues, RowsWithoutElementsAreNormalized) {
  for (DType dtype : kFloating) {
    for (const bool rms : {false, true}) {
      Tensor x = empty({3, 2, 0}, dtype, device()), w = empty({0}, compute_dtype(dtype), device());
      x.require_grad();
      w.require_grad();
      const Tensor y = rms ? rms_norm(x, {0}, w) : layer_norm(x, {0}, w);
      EXPECT_EQ(y.sizes(), (Dims{3, 2, 0}));
      backward(y, empty_like(y));
      EXPECT_EQ(x.grad().sizes(), x.sizes());
      EXPECT_EQ(w.grad().sizes(), w.sizes());
    }
  }
}

TEST(SpecialValues, ErrorsShowWhatTheUserWrote) {
  const Tensor pixels = zeros({3}, DType::u8, device()), mask = eq(pixels, 0);
  for (const auto& [name, f] :
       {std::pair<const char*, std::function<void()>>{"add:", [&] { (void)(pixels + 300); }},
        {"mul:", [&] { (void)(pixels * 300); }},
        {"neg:", [&] { (void)(-mask); }}}) {
    EXPECT_EQ(error_of(f).rfind(name, 0), 0u) << error_of(f);
  }
  EXPECT_EQ(
      error_of([] {
        matmul(zeros({2, 4, 5}), zeros({3, 5, 6}));
      }),
      "matmul: got shapes [2, 4, 5] and [3, 5, 6], expected batches [2] and [3] that broadcast "
      "(equal sizes or 1, aligned at the last batch dimension)");
  Tensor x = zeros({2});
  x.require_grad();
  EXPECT_EQ(error_of([&] { backward(mul(x, 2), Tensor()); }),
            "backward: got an undefined seed, expected a tensor of shape [2], the gradient of the "
            "result");
}

TEST(SpecialValues, NaNOfALogitIsNotHiddenByCtcLoss) {
  for (const int64_t times : {1, 5}) {
    for (const bool zero_infinity : {false, true}) {
      const Tensor x = full({times, 1, 3}, kNaN, DType::f32, device());
      const Tensor length = full({1}, double(times), DType::i64, device());
      const Tensor one = ones({1}, DType::i64, device()),
                   target = ones({1, 1}, DType::i64, device());
      const auto loss = [&](const Tensor& t) {
        return ctc_loss(t, target, length, one, {.zero_infinity = zero_infinity});
      };
      EXPECT_TRUE(std::isnan(item(loss(x))));
      expect_values(gradient(loss, x), std::vector<double>(size_t(3 * times), kNaN), "gradient");
    }
  }
  const Tensor nothing = empty({0}, DType::i64, device());
  const Tensor none = zeros({4, 0, 3}, DType::f32, device());
  const Tensor targets = empty({0, 2}, DType::i64, device());
  EXPECT_TRUE(std::isnan(item(ctc_loss(none, targets, nothing, nothing))));
  EXPECT_EQ(item(ctc_loss(none, targets, nothing, nothing, {.reduction = Reduction::sum})), 0);
}

TEST(SpecialValues, BoundsOfPiecewiseOps) {
  for (DType dtype : kFloating) {
    const Tensor x = values({-3, 1, 3, kNaN}, dtype);
    expect_values(gradient([](const Tensor& t) { return hardswish(t); }, values({-3, 3}, dtype)),
                  {0, 1}, "hardswish");
    const std::vector<double> nan(4, kNaN);
    expect_values(clamp(x, kNaN, 2.), nan, "clamp from NaN");
    expect_values(clamp(x, -2., kNaN), nan, "clamp to NaN");
    expect_values(clamp(x, {}, kNaN), nan, "clamp to NaN only");
    expect_values(gradient([](const Tensor& t) { return clamp(t, kNaN, 2.); }, x), {0, 0, 0, 0},
                  "clamp from NaN");
    expect_values(clamp(x, -2., 2.), {-2, 1, 2, kNaN}, "clamp");
  }
}

}  // namespace
}  // namespace binade::special_values_test
