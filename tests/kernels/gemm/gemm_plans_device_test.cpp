// cuBLASLt's algorithms are kept for the last problems alone. With a stand-in for the library
// (fake_cublaslt.cpp).
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <tests/kernels/support/array_values.h>
#include <tests/kernels/support/plan_limit.h>
#include <tests/kernels/support/recorded_graph.h>
#if defined(BINADE_WITH_CUDA) && defined(BINADE_HOST_EXECUTION)
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/gemm/cublaslt_api_internal.h>
#include <binade/kernels/gemm/cublaslt_gemm_internal.h>

#include <cstdlib>
#include <memory>

namespace binade::kernels::gemm_plans_device_test {
namespace {

class GemmPlans : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device().is_cpu() || !is_named(kCublasLt) || !cublaslt::missing().empty()) {
      GTEST_SKIP() << "BINADE_CUBLASLT_LIBRARY names no stand-in";
    }
    keep_workspaces();
    set_gemm_provider("library");
  }
  void TearDown() override {
    set_gemm_provider("own");
    cudaDeviceSynchronize();
    free_workspaces();
  }

 private:
  // The stand-in calls it, and a static library gives a program only what something refers to.
  cudaError_t (*volatile stand_in_allocates_)(void**, size_t) = cudaMalloc;
};

struct PlannedProduct {
  StridedArray a, b, y;
  View a_view, b_view, y_view;
  explicit PlannedProduct(int64_t k)
      : a(DType::f32, {3, k}), b(DType::f32, {k, 4}), y(DType::f32, {3, 4}) {
    a.randomize(1, true);
    b.randomize(2, true);
    a_view = a.view(), b_view = b.view(), y_view = y.view();
  }
  void run() const {
    const int64_t before = library_gemm_calls();
    gemm({.a = a_view, .b = b_view, .y = y_view});
    EXPECT_EQ(library_gemm_calls(), before + 1);
  }
  void expect_result() const {
    y.each([&](const std::vector<int64_t>& at) {
      double sum = 0;
      for (int64_t k = 0; k < a.sizes()[1]; ++k) {
        sum += a.get({at[0], k}) * b.get({k, at[1]});
      }
      EXPECT_EQ(y.get(at), sum) << a.sizes()[1];
    });
  }
};

TEST_F(GemmPlans, MoreProblemsThanTheLimitWork) {
  const PlanLimit limit(4);
  for (int round = 0; round < 2; ++round) {
    for (int64_t k = 1; k < 12; ++k) {
      PlannedProduct product(k);
      product.run();
      product.expect_result();
      EXPECT_LE(library_gemm_plans(), 4);
    }
  }
  EXPECT_EQ(library_gemm_plans(), 4);
}

// A refusal, too, takes the place of another problem.
TEST_F(GemmPlans, RefusedProblemsCount) {
  const PlanLimit limit(3);
  PlannedProduct refused(20);
  setenv("BINADE_FAKE_CUBLASLT_REFUSES", "execution", 1);
  const int64_t before = library_gemm_calls();
  gemm({.a = refused.a_view, .b = refused.b_view, .y = refused.y_view});
  unsetenv("BINADE_FAKE_CUBLASLT_REFUSES");
  gemm({.a = refused.a_view, .b = refused.b_view, .y = refused.y_view});
  EXPECT_EQ(library_gemm_calls(), before) << "it is remembered";
  for (int64_t k = 21; k < 24; ++k) {
    PlannedProduct(k).run();
  }
  EXPECT_LE(library_gemm_plans(), 3);
  refused.run();  // forgotten, and asked again
  refused.expect_result();
}

TEST_F(GemmPlans, AGraphReplaysAProductWhoseAlgorithmIsNoLongerKept) {
  const PlanLimit limit(2);
  PlannedProduct recorded(30);
  RecordedGraph graph([&] { recorded.run(); });
  for (int64_t k = 31; k < 36; ++k) {
    PlannedProduct(k).run();
  }
  EXPECT_EQ(library_gemm_plans(), 2);
  fill({.y = recorded.y_view, .value = -1});
  graph.replay();
  recorded.expect_result();
}

}  // namespace
}  // namespace binade::kernels::gemm_plans_device_test
#endif
