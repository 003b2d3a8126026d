// Tests linear algebra beyond the op table: second derivatives, singular and empty matrices, modes,
// triangles that are not read, texts of errors, copies from a device, 16-bit dtypes.
#include <binade/core/autograd/gradcheck.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/linalg/linalg.h>
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <cmath>

#include <tests/support/error_of.h>

namespace binade::linalg_test {
namespace {

using linalg::matrix_norm;

void expect_error(const std::string& expected, const std::function<void()>& run) {
  const std::string got = error_of(run);
  EXPECT_NE(got.find(expected), std::string::npos) << got << "\nexpected: " << expected;
}

class Linalg : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!linalg::is_available()) {
      GTEST_SKIP() << "this build has no Eigen";
    }
    manual_seed(7);
  }
  ~Linalg() override { kernels::set_threads(0); }

  // Returns a well-conditioned matrix.
  static Tensor regular(const Dims& sizes) {
    return add(randn(sizes, DType::f64), mul(eye(sizes.back(), DType::f64), 6));
  }
};

Tensor even(const Tensor& x) { return mul(add(x, x.transpose(-1, -2)), 0.5); }
Tensor product(const Tensor& a, const Tensor& b) { return matmul(a, b); }
double largest(const Tensor& x) { return x.numel() ? max(abs(x)).item() : 0; }

void expect_close(const Tensor& got, const Tensor& want, double tolerance = 1e-12) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE(largest(sub(got, want)), tolerance);
}

TEST(LinalgWithoutEigen, SaysWhatIsMissingInOneLine) {
  if (linalg::is_available()) {
    EXPECT_EQ(linalg::det(eye(2)).item(), 1);
    return;
  }
  const Tensor a = eye(2);
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"solve", [&] { linalg::solve(a, a); }},
      {"solve_triangular", [&] { linalg::solve_triangular(a, a, {.upper = true}); }},
      {"inv", [&] { linalg::inv(a); }},
      {"det", [&] { linalg::det(a); }},
      {"slogdet", [&] { linalg::slogdet(a); }},
      {"cholesky", [&] { linalg::cholesky(a); }},
      {"qr", [&] { linalg::qr(a); }},
      {"svd", [&] { linalg::svd(a); }},
      {"svdvals", [&] { linalg::svdvals(a); }},
      {"eigh", [&] { linalg::eigh(a); }},
      {"eigvalsh", [&] { linalg::eigvalsh(a); }},
      {"lstsq", [&] { linalg::lstsq(a, a); }},
      {"svdvals", [&] { matrix_norm(a, 2); }},
  };
  for (const auto& [name, call] : calls) {
    const std::string text = error_of(call);
    EXPECT_EQ(text.find(std::string(name) + ": this build has no Eigen"), 0u) << text;
    EXPECT_NE(text.find("libeigen3-dev"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_EQ(matrix_norm(a, 1).item(), 1);  // needs no factorisation
  EXPECT_NEAR(matrix_norm(a).item(), std::sqrt(2.0), 1e-6);
}

TEST_F(Linalg, FactorsMultiplyToTheMatrix) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double unit = 200 * epsilon(dtype);
    for (const Dims& sizes : {Dims{7, 7}, Dims{2, 3, 9, 4}, Dims{3, 4, 9}, Dims{40, 33}}) {
      const Tensor a = randn(sizes, dtype);
      for (const char* mode : {"reduced", "complete"}) {
        const auto [q, r] = linalg::qr(a, mode);
        expect_close(product(q, r), a, unit);
        expect_close(product(q.transpose(-1, -2), q),
                     expand(eye(q.size(-1), dtype), product(q.transpose(-1, -2), q).sizes()), unit);
        expect_close(tril(r, -1), zeros_like(r), 0);
      }
      for (const bool full : {true, false}) {
        const auto [u, s, vh] = linalg::svd(a, full);
        const int64_t k = s.size(-1);
        expect_close(product(mul(narrow(u, -1, 0, k), unsqueeze(s, -2)), narrow(vh, -2, 0, k)), a,
                     unit);
        EXPECT_EQ(u.size(-1), full ? a.size(-2) : k);
        EXPECT_EQ(vh.size(-2), full ? a.size(-1) : k);
        expect_close(linalg::svdvals(a), s, unit);
      }
      const Tensor spd = product(a, a.transpose(-1, -2));
      const auto [l, v] = linalg::eigh(spd);
      expect_close(product(mul(v, unsqueeze(l, -2)), v.transpose(-1, -2)), spd, 20 * unit);
      expect_close(linalg::eigvalsh(spd), l, 20 * unit);
    }
  }
}

TEST_F(Linalg, CholeskyAndEighReadOneTriangle) {
  const Tensor a = add(even(randn({3, 3}, DType::f64)), mul(eye(3, DType::f64), 4));
  const Tensor lower = add(tril(a), triu(full({3, 3}, NAN, DType::f64), 1));
  const Tensor upper = add(triu(a), tril(full({3, 3}, NAN, DType::f64), -1));
  const Tensor l = linalg::cholesky(where(isnan(lower), 99.0, lower));
  expect_close(product(l, l.transpose(0, 1)), a);
  const Tensor u = linalg::cholesky(where(isnan(upper), 99.0, upper), {.upper = true});
  expect_close(product(u.transpose(0, 1), u), a);
  expect_close(linalg::eigvalsh(lower), linalg::eigvalsh(upper, "U"));
}

TEST_F(Linalg, SolvesForVectorsAndFromTheRight) {
  const Tensor a = regular({2, 3, 3}), vectors = randn({2, 3}, DType::f64),
               b = randn({2, 4, 3}, DType::f64);
  expect_close(squeeze(product(a, unsqueeze(linalg::solve(a, vectors), -1)), -1), vectors);
  expect_close(product(linalg::solve(a, b, {.left = false}), a), b);
  const Tensor one = randn({3}, DType::f64);
  EXPECT_EQ(linalg::solve(a, one).sizes(), (Dims{2, 3}));
  const Tensor t = triu(a);
  expect_close(product(linalg::triangular_solve(a, b, {.upper = true, .left = false}), t), b);
}

TEST_F(Linalg, LeastSquares) {
  const Tensor a = randn({5, 3}, DType::f64), b = randn({5, 2}, DType::f64);
  const auto [x, residuals, rank] = linalg::lstsq(a, b);
  const Tensor off = sub(product(a, x), b);
  EXPECT_LE(largest(product(a.transpose(0, 1), off)), 1e-12);  // normal equations
  expect_close(residuals, sum(mul(off, off), {0}));
  EXPECT_EQ(rank.item(), 3);
  const Tensor c = randn({5, 1}, DType::f64), d = randn({1, 3}, DType::f64);
  const linalg::Lstsq low = linalg::lstsq(product(c, d), b);
  EXPECT_EQ(low.rank.item(), 1);
  EXPECT_EQ(low.residuals.sizes(), Dims{0});
  expect_close(low.solution, product(d.transpose(0, 1),
                                     div(div(product(c.transpose(0, 1), b), sum(mul(c, c)).item()),
                                         sum(mul(d, d)).item())));
  EXPECT_EQ(linalg::lstsq(a, b, {.rcond = 2}).rank.item(), 0);
  EXPECT_EQ(linalg::lstsq(a, narrow(b, 1, 0, 1).reshape({5})).solution.sizes(), Dims{3});
}

TEST_F(Linalg, DeterminantsOfSingularMatricesHaveCofactors) {
  Tensor a = Tensor::from({1., 2., 3., 4., 5., 6., 7., 8., 9.}, {3, 3});
  a.require_grad();
  linalg::det(a).backward();
  expect_close(a.grad(), Tensor::from({-3., 6., -3., 6., -12., 6., -3., 6., -3.}, {3, 3}), 1e-13);
  const auto [sign, logabsdet] = linalg::slogdet(zeros({2, 2}, DType::f64));
  EXPECT_EQ(sign.item(), 0);
  EXPECT_EQ(logabsdet.item(), -INFINITY);
  Tensor b = ones({2, 2}, DType::f64);
  b.require_grad();
  expect_error("singular", [&] { linalg::slogdet(b).logabsdet.backward(); });
  EXPECT_NEAR(linalg::slogdet(mul(eye(400, DType::f64), -1e-3)).logabsdet.item(),
              400 * std::log(1e-3), 1e-9);
}

TEST_F(Linalg, SecondDerivatives) {
  const auto check_twice = [](const char* name, const Dims& sizes,
                              const std::function<Tensor(const Tensor&)>& f) {
    SCOPED_TRACE(name);
    Tensor x = randn(sizes, DType::f64);
    x.require_grad();
    EXPECT_EQ(error_of([&] {
                gradgradcheck([&](const std::vector<Tensor>& in) { return f(in[0]); }, {x},
                              {.eps = 1e-5, .rtol = 1e-5, .atol = 1e-6, .directions = 2});
              }),
              "none");
  };
  const Tensor shift = mul(eye(3, DType::f64), 6), gaps = diag(Tensor::from({3., 9., 15.}));
  const Tensor b = randn({3, 2}, DType::f64), c = randn({5, 2}, DType::f64);
  const auto flat = [](const Tensor& x, const Tensor& y) {
    return cat({reshape(x, {-1}), reshape(y, {-1})}, 0);
  };
  check_twice("solve", {3, 3}, [&](auto& x) { return linalg::solve(add(x, shift), b); });
  check_twice("triangular", {3, 3}, [&](auto& x) {
    return linalg::solve_triangular(add(x, shift), b, {.upper = true, .unitriangular = true});
  });
  check_twice("inv", {2, 3, 3}, [&](auto& x) { return linalg::inv(add(x, shift)); });
  check_twice("det", {3, 3}, [&](auto& x) { return linalg::det(add(x, shift)); });
  check_twice("slogdet", {3, 3}, [&](auto& x) { return linalg::slogdet(add(x, shift)).logabsdet; });
  check_twice("cholesky", {3, 3}, [&](auto& x) { return linalg::cholesky(add(even(x), shift)); });
  for (const Dims& sizes : {Dims{3, 3}, Dims{4, 3}, Dims{2, 3}}) {
    check_twice("qr", sizes, [&](auto& x) {
      const Tensor spread = narrow(cat({gaps, zeros({1, 3}, DType::f64)}, 0), 0, 0, x.size(0));
      const auto [q, r] = linalg::qr(add(x, spread));
      return flat(q, r);
    });
    check_twice("svd", sizes, [&](auto& x) {
      const Tensor spread = narrow(cat({gaps, zeros({1, 3}, DType::f64)}, 0), 0, 0, x.size(0));
      const auto [u, s, vh] = linalg::svd(add(x, spread), false);
      return flat(flat(mul(u, u), s), mul(vh, vh));
    });
  }
  check_twice("eigh", {3, 3}, [&](auto& x) {
    const auto [l, v] = linalg::eigh(add(even(x), gaps));
    return flat(l, mul(v, v));
  });
  check_twice("lstsq", {5, 3}, [&](auto& x) { return linalg::lstsq(x, c).solution; });
  check_twice("nuc", {4, 3}, [&](auto& x) { return matrix_norm(x, "nuc"); });
}

TEST_F(Linalg, ErrorsNameTheMatrixAndWhatToDo) {
  const Tensor good = eye(2, DType::f64), bad = ones({2, 2}, DType::f64);
  const Tensor batch = reshape(stack({good, good, good, bad}), {2, 2, 2, 2});
  expect_error("solve: got a singular matrix at batch index [1, 1]", [&] {
    linalg::solve(batch, ones({2, 1}, DType::f64));
  });
  expect_error("inv: got a singular matrix at batch index [1, 1]", [&] { linalg::inv(batch); });
  expect_error("cholesky: got a matrix that is not positive definite at batch index [1, 1]",
               [&] { linalg::cholesky(sub(batch, mul(bad, 0.0))); });
  expect_error("inv: got a singular matrix, expected", [&] { linalg::inv(bad); });
  expect_error("solve_triangular: got a matrix with a 0 on its diagonal",
               [&] { linalg::solve_triangular(sub(good, good), good, {.upper = false}); });
  expect_error("eigh: got a matrix with NaN", [&] { linalg::eigh(full({2, 2}, NAN)); });
  expect_error("svd: got a matrix with NaN", [&] { linalg::svd(full({3, 2}, INFINITY)); });
  expect_error("lstsq: got a matrix with NaN", [&] {
    linalg::lstsq(full({2, 2}, NAN), ones({2, 1}));
  });
  expect_error("qr: got mode \"full\", expected", [&] { linalg::qr(bad, "full"); });
  expect_error("matrix_norm: got order 3, expected", [&] { matrix_norm(bad, 3); });
  expect_error("inv: got shape [2, 3], expected square", [] { linalg::inv(ones({2, 3})); });
  expect_error("solve: got shapes [2, 2] and [3, 1], expected as many rows", [] {
    linalg::solve(eye(2), ones({3, 1}));
  });
  Tensor a = randn({3, 2}, DType::f64);
  a.require_grad();
  expect_error("use full_matrices = false", [&] { sum(linalg::svd(a).u).backward(); });
  expect_error("use mode reduced", [&] { sum(linalg::qr(a, "complete").q).backward(); });
  EXPECT_EQ(linalg::cholesky(full({0, 0}, 0)).sizes(), (Dims{0, 0}));
}

TEST_F(Linalg, EmptyMatricesAndBatches) {
  EXPECT_EQ(linalg::det(zeros({2, 0, 0})).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(linalg::solve(zeros({0, 0}), zeros({0, 3})).sizes(), (Dims{0, 3}));
  EXPECT_EQ(linalg::solve(zeros({0, 2, 2}), zeros({2, 3})).sizes(), (Dims{0, 2, 3}));
  const auto [q, r] = linalg::qr(zeros({3, 0}), "complete");
  expect_close(q, eye(3), 0);
  EXPECT_EQ(r.sizes(), (Dims{3, 0}));
  const auto [u, s, vh] = linalg::svd(zeros({0, 2}));
  EXPECT_EQ(u.sizes(), (Dims{0, 0}));
  expect_close(vh, eye(2), 0);
  EXPECT_EQ(s.sizes(), Dims{0});
  expect_close(linalg::lstsq(zeros({0, 2}), zeros({0, 3})).solution, zeros({2, 3}), 0);
  EXPECT_EQ(matrix_norm(zeros({0, 3}), 2).item(), 0);
  EXPECT_EQ(matrix_norm(zeros({2, 0, 3}), "nuc").sizes(), Dims{2});
}

TEST_F(Linalg, GradientsOfSingularValuesAtZeroAreFinite) {
  Tensor a = zeros({3, 2}, DType::f64);
  a.require_grad();
  matrix_norm(a, "nuc").backward();
  EXPECT_TRUE(all(isfinite(a.grad())).item());
}

TEST_F(Linalg, SixteenBitsAreComputedInFloatAndRoundedOnce) {
  const Tensor x = add(randn({4, 4}), mul(eye(4), 6)).to(DType::f16);
  const Tensor y = linalg::inv(x);
  EXPECT_EQ(y.dtype(), DType::f16);
  EXPECT_TRUE(equal(y, linalg::inv(x.to(DType::f32)).to(DType::f16)));
  const PrecisionScope scope(Precision::autocast(DType::f16));
  EXPECT_EQ(linalg::inv(x).dtype(), DType::f32);
  const linalg::Lstsq fit = linalg::lstsq(add(randn({5, 3}), 1), randn({5, 2}));
  EXPECT_EQ(fit.residuals.dtype(), DType::f32);
}

TEST_F(Linalg, SameBitsAtAnyThreadCount) {
  const Tensor a = randn({37, 20, 20});
  const auto results = [&](int threads) {
    kernels::set_threads(threads);
    const auto [q, r] = linalg::qr(a);
    const auto [u, s, vh] = linalg::svd(a);
    return std::vector<Tensor>{linalg::inv(a), q, r, u, s, vh, linalg::eigh(a).eigenvectors};
  };
  const std::vector<Tensor> one = results(1), four = results(4);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(equal(one[i], four[i])) << i;
  }
}

TEST_F(Linalg, ADeviceCopiesToTheHostAndSaysSo) {
  const Device device = kernels::test_device();
  if (device.is_cpu()) {
    GTEST_SKIP() << "no device";
  }
  const Tensor a = add(randn({2, 3, 3}), mul(eye(3), 5));
  Tensor there = a.to(device);
  there.require_grad();
  HostSyncGuard guard(HostSyncGuard::record);
  const Tensor y = linalg::inv(there);
  EXPECT_EQ(y.device(), device);
  ASSERT_FALSE(guard.found().empty());
  EXPECT_EQ(guard.found()[0].what, "inv");
  EXPECT_NE(guard.found()[0].file.find("linalg_test"), std::string::npos);
  {
    const AllowHostSyncGuard allow;
    expect_close(y.to(Device{}), linalg::inv(a), 0);
    sum(y).backward();
    EXPECT_EQ(there.grad().device(), device);
  }
}

}  // namespace
}  // namespace binade::linalg_test
