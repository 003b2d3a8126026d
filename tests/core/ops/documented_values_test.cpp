// Compares ops with the examples of PyTorch's documentation and with numpy (cov, corrcoef,
// searchsorted, histogram, linalg.pinv), and the losses with their formulas. Runs on the device
// that BINADE_TEST_DEVICE names.
#include <binade/core/autograd/gradcheck.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include <tests/support/error_of.h>

namespace binade::documented_values_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Device device() {
  const char* name = std::getenv("BINADE_TEST_DEVICE");
  return name ? Device::parse(name) : Device{};
}

Tensor made(std::initializer_list<double> list, const Dims& sizes, DType dtype = DType::f64) {
  return from_values(list, sizes, dtype, device());
}

void expect_close(const Tensor& got, const Dims& sizes, const std::vector<double>& want,
                  double tolerance = 1e-12) {
  ASSERT_EQ(got.sizes(), sizes);
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double value = got.at(i), expected = want[static_cast<size_t>(i)];
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(value) : std::fabs(value - expected) <= tolerance)
        << "element " << i << " is " << value << ", expected " << expected;
  }
}

std::vector<double> gradient_of(const std::function<Tensor(const Tensor&)>& f, const Tensor& at) {
  Tensor x = at.detach();
  x.require_grad();
  sum(f(x)).backward();
  return x.grad().to(Device{}).to_vector<double>();
}

TEST(Joining, AsDocumented) {
  const Tensor a = made({1, 2, 3}, {3}), b = made({4, 5, 6}, {3});
  expect_close(hstack({a, b}), {6}, {1, 2, 3, 4, 5, 6});
  expect_close(vstack({a, b}), {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor column = reshape(a, {3, 1}), other = reshape(b, {3, 1});
  expect_close(hstack({column, other}), {3, 2}, {1, 4, 2, 5, 3, 6});
  expect_close(vstack({column, other}), {6, 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(error_of([&] {
              hstack({a, column});
            }),
            "hstack: got f64 [3, 1] beside f64 [3], expected equal dtypes and ranks; convert with "
            "to(), add a dimension with unsqueeze()");
}

TEST(NanReductions, AsDocumented) {
  expect_close(nansum(made({1, 2, kNaN, 4}, {4})), {}, {7});
  const Tensor x = made({kNaN, 1, 2, 1, 2, 3}, {2, 3});
  expect_close(nanmean(x), {}, {1.8});
  expect_close(nanmean(x, {0}), {3}, {1, 1.5, 2.5});
  expect_close(nanmean(made({kNaN, kNaN}, {2})), {}, {kNaN});
  EXPECT_EQ(nansum(made({3, 4}, {2}, DType::i32)).dtype(), DType::i64);
  const auto mean_of = [](const Tensor& t) { return nanmean(t, {0}); };
  EXPECT_EQ(gradient_of(mean_of, x), (std::vector<double>{0, .5, .5, 1, .5, .5}));
  // Their sum is beyond f16.
  EXPECT_EQ(nanmean(made({60000, kNaN, 40000}, {3}, DType::f16)).item(), 49984);
}

TEST(Covariance, AsNumpyHasIt) {
  const Tensor x = made({.5, 2, -1, 3.25, 1, -2, .25, 4, 3, 3.5, -1, 0}, {3, 4});
  const Tensor f = made({1, 3, 0, 2}, {4}, DType::i64), a = made({.5, 1, .25, 2}, {4});
  expect_close(cov(x), {3, 3},
               {3.390625, 1.796875, 0.9895833333333333, 1.796875, 6.140625, -2.90625,
                0.9895833333333333, -2.90625, 4.895833333333333});
  expect_close(cov(select(x, 0, 1), {.correction = 0}), {}, {4.60546875});
  expect_close(cov(x, {.fweights = f, .aweights = a}), {3, 3},
               {0.8277777777777776, 2.216666666666667, -1.5083333333333333, 2.216666666666667, 10.3,
                -6.05, -1.5083333333333333, -6.05, 3.675});
  expect_close(cov(x, {.aweights = a}), {3, 3},
               {2.6714285714285717, 3.1339285714285716, -1.1857142857142857, 3.1339285714285716,
                10.727678571428573, -5.946428571428572, -1.1857142857142857, -5.946428571428572,
                4.707142857142857});
  expect_close(corrcoef(x), {3, 3},
               {1, 0.393796360688717, 0.2428841528461479, 0.393796360688717, 1, -0.5300457658416234,
                0.2428841528461479, -0.5300457658416234, 1});
  expect_close(corrcoef(made({0, 1, 2, 2, 1, 0}, {2, 3})), {2, 2}, {1, -1, -1, 1});
  // One observation has no variance: 0 / 0. A constant has no correlation.
  expect_close(cov(made({3}, {1})), {}, {kNaN});
  expect_close(corrcoef(made({2, 2, 2}, {3})), {}, {kNaN});
  EXPECT_EQ(cov(zeros({0, 3}, DType::f32, device())).sizes(), (Dims{0, 0}));
}

TEST(Searches, AsDocumented) {
  const Tensor rows = made({1, 3, 5, 7, 9, 2, 4, 6, 8, 10}, {2, 5}, DType::i64);
  const Tensor row = select(rows, 0, 0), v = made({3, 6, 9, 3, 6, 9}, {2, 3}, DType::i64);
  expect_close(searchsorted(rows, v), {2, 3}, {1, 3, 4, 1, 2, 4});
  expect_close(searchsorted(rows, v, true), {2, 3}, {2, 3, 5, 1, 3, 4});
  expect_close(searchsorted(row, v), {2, 3}, {1, 3, 4, 1, 3, 4});
  expect_close(bucketize(v, row), {2, 3}, {1, 3, 4, 1, 3, 4});
  expect_close(bucketize(v, row, true), {2, 3}, {2, 3, 5, 2, 3, 5});
  const Tensor s = made({-1, 0, .5, .5, 3}, {5}), w = made({-2, -1, .25, .5, 3, kNaN}, {6});
  expect_close(searchsorted(s, w), {6}, {0, 0, 2, 2, 4, 5});
  expect_close(searchsorted(s, w, true), {6}, {0, 1, 2, 4, 5, 5});
  expect_close(searchsorted(row, full({}, 6.5, DType::f32, device())), {}, {3});  // promoted
}

TEST(Histogram, AsDocumentedAndAsNumpyHasIt) {
  expect_close(histc(made({1, 2, 1}, {3}), 4, 0, 3), {4}, {0, 2, 1, 0});
  const Tensor x = made({.1, 2.5, 1, 1, 0, 3, -1, 2.999, 1.5}, {9});
  expect_close(histc(x, 4, 0, 3), {4}, {2, 2, 1, 3});
  expect_close(histc(x, 6), {6}, {1, 2, 0, 3, 0, 3});
  expect_close(histc(made({kNaN, 1}, {2}), 2, 0, 3), {2}, {1, 0});
  expect_close(histc(made({2, 2}, {2}), 4), {4}, {0, 0, 2, 0});  // of 1 to 3
  // 3000 is more than f16 counts one by one.
  const Tensor many = histc(zeros({3001}, DType::f16, device()), 1);
  EXPECT_EQ(many.dtype(), DType::f32);
  EXPECT_EQ(many.at(0), 3001);
}

TEST(Histogram, RangesNearTheEndsOfTheDtype) {
  const auto counts = [](std::initializer_list<double> x, DType dtype, double low = 0,
                         double high = 0) {
    return histc(made(x, {static_cast<int64_t>(x.size())}, dtype), 4, low, high);
  };
  // high - low and (x - low) * bins are infinite.
  expect_close(counts({-3e38, 3e38}, DType::f32), {4}, {1, 0, 0, 1});
  expect_close(counts({-3e38, 0, 3e38}, DType::f32, -3e38, 3e38), {4}, {1, 0, 1, 1});
  expect_close(counts({-1.7e308, 0, 1.7e308}, DType::f64), {4}, {1, 0, 1, 1});
  // 1e20 + 1 = 1e20.
  expect_close(counts({1e20, 1e20}, DType::f32), {4}, {0, 0, 2, 0});
  expect_close(counts({-3e38}, DType::f32), {4}, {0, 0, 1, 0});
  expect_close(counts({1.7e308}, DType::f64), {4}, {0, 0, 1, 0});
  // In f32 both bounds are 0: as if none were given.
  expect_close(counts({0, 2, 4}, DType::f32, 0, 1e-50), {4}, {1, 0, 1, 1});
}

TEST(RunningExtremes, TiesNanAndGradients) {
  const Tensor x = made({1, 3, 3, 2, kNaN, 5}, {6});
  const auto [values, indices] = cummax(x, 0);
  expect_close(values, {6}, {1, 3, 3, 3, kNaN, kNaN});
  expect_close(indices, {6}, {0, 1, 2, 2, 4, 4});
  const auto least = [](const Tensor& t) { return cummin(t, -1).values; };
  EXPECT_EQ(gradient_of(least, made({2, 4, 1, 1, 3}, {5})), (std::vector<double>{2, 0, 1, 2, 0}));
  expect_close(cummax(made({7}, {}), 0).indices, {}, {0});
}

TEST(RunningLogSums, InfinitiesAndNan) {
  const double inf = std::numeric_limits<double>::infinity(), log2 = std::numbers::ln2;
  const auto y_of = [](const Tensor& x) { return logcumsumexp(x, 0).to_vector<double>(); };
  const auto f = [](const Tensor& x) { return logcumsumexp(x, 0); };
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = made({-inf, -inf, 1, inf, -2}, {5}, dtype);
    EXPECT_EQ(y_of(x), (std::vector<double>{-inf, -inf, 1, inf, inf}));
    // The gradients are those of the largest elements, also where these are infinite.
    EXPECT_EQ(gradient_of(f, x), (std::vector<double>{2, 1, 1, 2, 0}));
    const Tensor nan = logcumsumexp(made({1, kNaN, inf}, {3}, dtype), 0);
    EXPECT_EQ(nan.at(0), 1);
    EXPECT_TRUE(std::isnan(nan.at(1)) && std::isnan(nan.at(2)));
    // exp(1000) is infinite; exp(-1000) is 0.
    for (double shift : {1000., -1000.}) {
      const Tensor far = made({shift, shift}, {2}, dtype);
      EXPECT_EQ(y_of(far)[0], shift);
      EXPECT_NEAR(y_of(far)[1], shift + log2, dtype == DType::bf16 ? 4 : .5);
      EXPECT_NEAR(gradient_of(f, far)[0], 1.5, 1e-12);
      EXPECT_NEAR(gradient_of(f, far)[1], .5, 1e-12);
    }
  }
}

TEST(Windows, AreThoseOfAConvolution) {
  const Tensor x = randn({2, 3, 10, 12}).to(DType::f64).to(device()),
               w = randn({2, 3, 4, 5}).to(DType::f64).to(device());
  const Tensor columns = unfold(x, {.kernel = {4, 5}, .padding = {1, 0}, .stride = {2, 1}});
  ASSERT_EQ(columns.sizes(), (Dims{2, 60, 40}));
  const Tensor product = matmul(reshape(w, {2, 60}), columns);
  const Tensor y = fold(product, 5, 8, {});
  const Tensor wanted = conv2d(x, w, {}, {.stride = {2, 1}, .padding = {1, 0}});
  ASSERT_EQ(y.sizes(), wanted.sizes());
  EXPECT_LT(max(abs(sub(y, wanted))).item(), 1e-12);
  // Overlapping windows add up: fold(unfold(x)) is x times the number of windows of each pixel.
  const UnfoldOptions overlap = {.kernel = 3};
  EXPECT_TRUE(equal(unfold(x, {.kernel = 3, .padding = 1}),
                    unfold(x, {.kernel = {3, 3}, .padding = {1, 1}})));
  const Tensor count = fold(unfold(ones_like(x), overlap), 10, 12, overlap);
  EXPECT_EQ(count.at(0), 1);
  EXPECT_EQ(max(count).item(), 9);
  const Tensor again = fold(unfold(x, overlap), 10, 12, overlap);
  EXPECT_LT(max(abs(sub(again, mul(x, count)))).item(), 1e-12);
}

TEST(Pixels, ShuffleAndBack) {
  const Tensor x = reshape(arange(8, DType::f64).to(device()), {8, 1, 1});
  expect_close(pixel_shuffle(x, 2), {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_close(pixel_unshuffle(pixel_shuffle(x, 2), 2), {8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
}

TEST(Pseudoinverse, AsNumpyHasItAlsoWhereTheRankIsLow) {
  if (!linalg::is_available()) {
    GTEST_SKIP() << "skipped: this build has no Eigen";
  }
  expect_close(linalg::pinv(made({1, 2, 0, 0, 1, -1}, {2, 3})), {3, 2},
               {1. / 3, -1. / 3, 1. / 3, 1. / 6, 1. / 3, -5. / 6});
  const Tensor low = made({1, 2, 2, 4, 3, 6}, {3, 2});
  expect_close(linalg::pinv(low), {2, 3}, {1. / 70, 2. / 70, 3. / 70, 2. / 70, 4. / 70, 6. / 70});
  // rcond drops the smaller singular value of diag(4, 1).
  expect_close(linalg::pinv(diag(made({4, 1}, {2})), {.rcond = 0.3}), {2, 2}, {.25, 0, 0, 0});
  // All singular values are equal, where svd has no gradient.
  const std::vector<double> g =
      gradient_of([](const Tensor& t) { return linalg::pinv(t); }, eye(2).to(DType::f64));
  EXPECT_EQ(g, (std::vector<double>{-1, -1, -1, -1}));
}

TEST(Losses, Triplet) {
  const Tensor a = made({0, 0, 3, 0}, {2, 2}), p = made({3, 4, 3, 1}, {2, 2}),
               n = made({6, 8, 3, 7}, {2, 2});
  const auto loss = [&](const TripletMarginLossOptions& options) {
    return triplet_margin_loss(a, p, n, options);
  };
  expect_close(loss({.reduction = Reduction::none, .eps = 0}), {2}, {0, 0});
  expect_close(loss({.reduction = Reduction::none, .margin = 7, .eps = 0}), {2}, {2, 1});
  expect_close(loss({.margin = 7, .eps = 0, .swap = true}), {}, {(5 - 5 + 7 + 1 - 6 + 7) / 2.});
  EXPECT_EQ(error_of([&] { triplet_margin_loss(a, p, n, {.margin = 0}); }),
            "triplet_margin_loss: got margin 0, expected more than 0");
}

TEST(Losses, MarginsHaveTheirSlopeAtTheKink) {
  const Tensor x = made({.5, 2, 1, -1}, {4}), signs = made({1, -1, -1, 1}, {4}, DType::i64);
  expect_close(hinge_embedding_loss(x, signs, 1, Reduction::none), {4}, {.5, 0, 0, -1});
  const auto hinge = [&](const Tensor& t) {
    return hinge_embedding_loss(t, signs, 1, Reduction::sum);
  };
  EXPECT_EQ(gradient_of(hinge, x), (std::vector<double>{1, 0, -1, 1}));  // as clamp_min has it
  const Tensor y = made({0, 1, 1, 1}, {4});
  expect_close(margin_ranking_loss(x, y, signs, .25, Reduction::none), {4}, {0, 1.25, .25, 2.25});
  const auto ranking = [&](const Tensor& t) {
    return margin_ranking_loss(x, y, t, .25, Reduction::sum);
  };
  EXPECT_EQ(gradient_of(ranking, signs.to(DType::f64)), (std::vector<double>{0, -1, 0, 2}));
}

TEST(Losses, CosineEmbedding) {
  const Tensor a = made({1, 0, 1, 1, 0, 2}, {3, 2}), b = made({0, 2, 1, 0, 0, 3}, {3, 2});
  const Tensor signs = made({1, -1, -1}, {3}, DType::i64);
  expect_close(cosine_embedding_loss(a, b, signs, .5, Reduction::none), {3},
               {1, std::numbers::sqrt2 / 2 - .5, .5});
  // 1e-12 is added to the squares of the norms.
  const Tensor tiny = made({1e-6, 0}, {1, 2}), one = made({1}, {1});
  expect_close(cosine_embedding_loss(tiny, made({1, 0}, {1, 2}), one), {},
               {1 - std::numbers::sqrt2 / 2});
  EXPECT_EQ(
      error_of([&] { cosine_embedding_loss(a, b, narrow(signs, 0, 0, 2)); }).substr(0, 90),
      "cosine_embedding_loss: got inputs of shapes [3, 2] and [3, 2] and a target of shape [2], e");
}

TEST(Losses, SignsOfEveryDtype) {
  const Tensor x = made({3, 5}, {2}), y = made({4, 4}, {2}), rows = made({1, 0, 0, 2}, {2, 2});
  for (DType dtype : {DType::u8, DType::i32, DType::i64, DType::f16, DType::f32}) {
    const Tensor one = made({1, 1}, {2}, dtype);
    expect_close(hinge_embedding_loss(x, one), {}, {4});
    expect_close(margin_ranking_loss(x, y, one), {}, {.5});
    expect_close(cosine_embedding_loss(rows, rows, one), {}, {0});
  }
  const Tensor other = made({255, 1}, {2}, DType::u8);  // not -1
  expect_close(hinge_embedding_loss(x, other, 4, Reduction::none), {2}, {3 + 1, 5});
  expect_close(cosine_embedding_loss(rows, rows, other, -1, Reduction::none), {2}, {0, 0});
}

TEST(Losses, AnInfiniteVariance) {
  const Tensor x = made({1, 2}, {2}), t = made({0, 4}, {2});
  const double inf = std::numeric_limits<double>::infinity();
  const auto loss = [&](const Tensor& var) {
    return gaussian_nll_loss(x, t, var, {.reduction = Reduction::none});
  };
  const Tensor y = loss(made({1, inf}, {2}));
  EXPECT_EQ(y.at(0), .5);
  EXPECT_EQ(y.at(1), inf);
  EXPECT_EQ(gradient_of(loss, made({1, inf}, {2})), (std::vector<double>{0, 0}));
}

TEST(Losses, GaussianAndPoisson) {
  const Tensor x = made({1, 2}, {2}), t = made({0, 4}, {2}), var = made({4, 0}, {2});
  expect_close(gaussian_nll_loss(x, t, var, {.reduction = Reduction::none, .eps = .5}), {2},
               {.5 * (std::log(4) + .25), .5 * (std::log(.5) + 8)});
  // The variance below eps has the slope that eps has: (1 / v - 4 / v^2) / 2.
  const auto of_var = [&](const Tensor& v) {
    return gaussian_nll_loss(x, t, v, {.reduction = Reduction::sum, .eps = .5});
  };
  const std::vector<double> slopes = gradient_of(of_var, var);
  EXPECT_NEAR(slopes[0], .5 * (.25 - 1. / 16), 1e-12);
  EXPECT_NEAR(slopes[1], .5 * (2 - 16), 1e-12);
  expect_close(poisson_nll_loss(x, t, {.reduction = Reduction::none}), {2},
               {std::exp(1), std::exp(2) - 8});
  const double stirling = 4 * std::log(4) - 4 + .5 * std::log(2 * std::numbers::pi * 4);
  expect_close(
      poisson_nll_loss(x, t,
                       {.reduction = Reduction::none, .log_input = false, .full = true, .eps = 0}),
      {2}, {1, 2 - 4 * std::log(2) + stirling});
  // Counts of 0 have no Stirling term and no NaN in their gradient.
  for (double g :
       gradient_of([&](const Tensor& n) { return poisson_nll_loss(x, n, {.full = true}); },
                   made({0, 1}, {2}))) {
    EXPECT_TRUE(std::isfinite(g));
  }
  const Tensor low = gaussian_nll_loss(made({1}, {1}, DType::f16), made({3}, {1}, DType::f16),
                                       made({1}, {1}, DType::f16));
  EXPECT_EQ(low.dtype(), DType::f32);
  EXPECT_EQ(low.item(), 2);
}

TEST(Losses, ANegativeVarianceIsAnErrorOrNan) {
  const Tensor x = ones({2}, DType::f32, device()), var = made({1, -1}, {2}, DType::f32);
  if (device().is_cpu()) {
    EXPECT_EQ(error_of([&] { gaussian_nll_loss(x, x, var); }),
              "gaussian_nll_loss: got a negative element in var, expected variances of at least 0");
  } else {
    EXPECT_TRUE(std::isnan(gaussian_nll_loss(x, x, var).item()));
  }
}

// The gradients of all of these are themselves differentiable.
TEST(Gradients, HaveGradients) {
  const Tensor x = made({.5, 2, -1, 3.25, 1, -2}, {2, 3}).to(Device{});
  const auto check_twice = [&](const std::function<Tensor(const Tensor&)>& f) {
    Tensor leaf = x.detach();
    leaf.require_grad();
    EXPECT_NO_THROW(gradgradcheck([&](const auto& in) { return f(in[0]); }, {leaf}));
  };
  check_twice([](const Tensor& t) { return cov(t); });
  check_twice([](const Tensor& t) { return cummax(t, 1).values; });
  check_twice([](const Tensor& t) { return unfold(reshape(t, {1, 2, 3}), {.kernel = {1, 2}}); });
  check_twice([](const Tensor& t) { return nanmean(t, {1}); });
  check_twice([](const Tensor& t) { return poisson_nll_loss(t, ones_like(t)); });
  if (linalg::is_available()) {
    check_twice([](const Tensor& t) { return linalg::pinv(t); });
  }
}

}  // namespace
}  // namespace binade::documented_values_test
