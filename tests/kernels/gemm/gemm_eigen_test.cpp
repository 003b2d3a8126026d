// Tests the provider "eigen" of gemm on the CPU: the same cases as our own product, and the same
// bits at any thread count. It also checks our own product on sizes of real layers.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <gtest/gtest.h>
#include <tests/kernels/gemm/gemm_case.h>

#include <array>
#include <cmath>

namespace binade::kernels::gemm_eigen_test {
namespace {

bool has_eigen() {
  try {
    set_gemm_provider("eigen");
    return true;
  } catch (const Error&) {
    return false;
  }
}

class GemmByEigen : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_eigen()) {
      GTEST_SKIP() << "this build has no Eigen";
    }
  }
  void TearDown() override {
    set_gemm_provider("own");
    set_threads(0);
  }
};

TEST_F(GemmByEigen, EveryDTypeLayoutAndEpilogue) {
  const std::vector<int> straight = {0, 1}, transposed = {1, 0};
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (int layout = 0; layout < 8; ++layout) {
      const auto order = [&](int bit) { return layout & bit ? transposed : straight; };
      for (const int64_t gap : {0, 3}) {
        run({37, 45, 53, dtype, true, false, false, false, order(1), order(2), order(4), gap});
        run({61, 18, 33, dtype, false, true, true, true, order(1), order(2), order(4), gap});
      }
      GemmCase c{5,        70,       131,     dtype, false, true, false, layout % 2 == 0,
                 order(1), order(2), order(4)};
      c.gelu = true;
      run(c);
    }
  }
}

TEST_F(GemmByEigen, OddSizesAndBatches) {
  for (const int64_t m : {1, 3, 33}) {
    for (const int64_t n : {1, 17, 47}) {
      for (const int64_t k : {0, 1, 7, 129}) {
        run({m, n, k});
      }
    }
  }
  for (const bool share : {false, true}) {
    GemmCase c{9, 40, 21, share ? DType::f16 : DType::f32};
    c.batch = 3;
    c.share_a = share;
    run(c);
    c.share_b = true;
    c.accumulate = true;
    run(c);
  }
}

std::vector<float> product_at(int threads, int64_t m, int64_t n, int64_t k) {
  StridedArray a(DType::f32, {m, k}), b(DType::f32, {k, n}), y(DType::f32, {m, n});
  a.randomize(1, false);
  b.randomize(2, false);
  set_threads(threads);
  gemm({.a = a.view(), .b = b.view(), .y = y.view()});
  std::vector<float> values;
  for (const double value : y.values()) {
    values.push_back(static_cast<float>(value));
  }
  return values;
}

TEST_F(GemmByEigen, SameBitsAtAnyThreadCount) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{301, 77, 130}, {20, 517, 90}, {64, 64, 700}}) {
    const std::vector<float> one = product_at(1, m, n, k);
    for (const int threads : {2, 3, 4}) {
      EXPECT_EQ(product_at(threads, m, n, k), one) << m << " " << n << " " << k << " " << threads;
    }
  }
}

// Both sum the same products, each in its own order.
TEST_F(GemmByEigen, OurOwnProductAgrees) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{256, 128, 784}, {64, 512, 512}}) {
    set_gemm_provider("eigen");
    const std::vector<float> eigen = product_at(2, m, n, k);
    set_gemm_provider("own");
    const std::vector<float> own = product_at(2, m, n, k);
    double most = 0, off = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      most = std::max(most, std::fabs(double(eigen[i])));
      off = std::max(off, std::fabs(double(own[i]) - double(eigen[i])));
    }
    EXPECT_LE(off, 8 * 0x1p-23 * std::sqrt(double(k)) * most);
    EXPECT_NE(own, eigen) << "the provider was not used";
  }
}

TEST_F(GemmByEigen, RowSums) {
  StridedArray a(DType::f32, {40, 70}), b(DType::f32, {70, 9}), y(DType::f32, {40, 9}),
      sums(DType::f32, {40});
  a.randomize(1, true);
  b.randomize(2, true);
  cpu::gemm_with_row_sums({.a = a.view(), .b = b.view(), .y = y.view()}, sums.view());
  for (int64_t i = 0; i < 40; ++i) {
    double sum = 0, product = 0;
    for (int64_t k = 0; k < 70; ++k) {
      sum += a.get({i, k});
      product += a.get({i, k}) * b.get({k, 4});
    }
    EXPECT_EQ(sums.get({i}), sum);
    EXPECT_EQ(y.get({i, 4}), product);
  }
}

TEST(GemmProvider, SaysWhatABuildWithoutEigenLacks) {
  if (has_eigen()) {
    EXPECT_EQ(gemm_provider(), "eigen");
    set_gemm_provider("own");
    return;
  }
  try {
    set_gemm_provider("eigen");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("libeigen3-dev"), std::string::npos) << error.what();
  }
  EXPECT_NE(gemm_provider(), "eigen");
}

}  // namespace
}  // namespace binade::kernels::gemm_eigen_test
