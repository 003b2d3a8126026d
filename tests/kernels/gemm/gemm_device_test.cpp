// Tests every kernel of the gemm ladder and the library on the device under test, by name: exact at
// sizes around tiles and vectors, layouts with and without 16-byte chunks, batches, split k,
// epilogues, repeatability, and the choice between them.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <tests/kernels/gemm/gemm_case.h>
#include <tests/kernels/support/recorded_graph.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/gemm/cublaslt_api_internal.h>
#include <binade/kernels/gemm/cublaslt_gemm_internal.h>

#include <cstdlib>
#endif

namespace binade::kernels::gemm_device_test {
namespace {

class GemmDevice : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (test_device().is_cpu()) {
      GTEST_SKIP() << "providers are for GPUs; the CPU has one gemm";
    }
    set_gemm_provider(GetParam());
  }
  void TearDown() override { set_gemm_provider("own"); }

  // The dtypes for which the provider has its own kernels.
  std::vector<DType> dtypes() const {
    if (std::string_view(GetParam()).starts_with("own:tensor")) {
      return {DType::f16, DType::bf16};
    }
    return {DType::f64, DType::f32, DType::f16, DType::bf16};
  }
};

const std::vector<int> kStraight = {0, 1}, kTransposed = {1, 0};
const std::vector<int>& order(bool transposed) { return transposed ? kTransposed : kStraight; }

TEST_P(GemmDevice, ExactOnIntegersAtOddSizes) {
  for (const DType dtype : dtypes()) {
    for (const int64_t size : {1, 17, 129}) {
      run({size, size, size, dtype});
    }
    for (const int64_t k : {0, 1, 17, 129}) {
      run({1, 17, k, dtype});
      run({17, 1, k, dtype});
    }
    run({255, 33, 33, dtype});
    run({31, 257, 63, dtype});
    run({65, 127, 95, dtype});
  }
}

TEST_P(GemmDevice, TransposesWithAlignedAndOddLeadingDimensions) {
  for (const DType dtype : dtypes()) {
    for (int layout = 0; layout < 8; ++layout) {
      for (const int64_t gap : {0, 1}) {  // a gap of 0 allows 16-byte chunks, 1 does not
        run({72, 40, 48, dtype, gap == 1, layout == 5, false, layout == 6, order(layout & 1),
             order(layout & 2), order(layout & 4), gap});
      }
    }
  }
}

TEST_P(GemmDevice, BatchesAndBroadcastOperands) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const bool odd : {false, true}) {
      const int64_t m = odd ? 19 : 24, n = odd ? 23 : 32, k = odd ? 11 : 16;
      run({.m = m, .n = n, .k = k, .dtype = dtype, .bias = true, .batch = 3});
      run({.m = m, .n = n, .k = k, .dtype = dtype, .a = kTransposed, .b = kTransposed, .batch = 3});
      run({.m = m,
           .n = n,
           .k = k,
           .dtype = dtype,
           .y = kTransposed,
           .gap = 1,
           .batch = 3,
           .share_a = true});
      run({.m = m,
           .n = n,
           .k = k,
           .dtype = dtype,
           .accumulate = true,
           .batch = 3,
           .share_b = true});
      run({.m = m, .n = n, .k = k, .dtype = dtype, .batch = 1});
    }
  }
}

TEST_P(GemmDevice, SplitSumsOfLongK) {
  for (const DType dtype : dtypes()) {
    run({9, 12, 1031, dtype, false});
    run({16, 24, 1024, dtype, true, true, true, true, kTransposed});
    run({.m = 5,
         .n = 7,
         .k = 700,
         .dtype = dtype,
         .bias = true,
         .accumulate = true,
         .y = kTransposed,
         .batch = 2});
  }
}

TEST_P(GemmDevice, Epilogues) {
  for (const DType dtype : dtypes()) {
    for (int flags = 0; flags < 12; ++flags) {
      for (const bool transposed : {false, true}) {
        run({20, 40, 24, dtype, false, (flags & 1) != 0, flags / 4 == 1, (flags & 2) != 0,
             kStraight, kStraight, order(transposed), 0, flags / 4 == 2});
      }
    }
  }
}

TEST_P(GemmDevice, MisalignedBases) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
    StridedArray a(dtype, {41, 49}), b(dtype, {49, 57}), y(dtype, {41, 57});
    a.randomize(1, true);
    b.randomize(2, true);
    const auto inner = [](StridedArray& array) {  // drops the first row and column
      View view = array.view();
      const auto skipped = view.strides[0] + view.strides[1];
      return test_view(view.data + static_cast<size_t>(skipped) * size_of(view.dtype), view.dtype,
                       {view.size(0) - 1, view.size(1) - 1}, view.strides);
    };
    gemm({.a = inner(a), .b = inner(b), .y = inner(y)});
    for (int64_t i = 1; i < 41; ++i) {
      for (int64_t j = 1; j < 57; ++j) {
        double sum = 0;
        for (int64_t p = 1; p < 49; ++p) {
          sum += a.get({i, p}) * b.get({p, j});
        }
        ASSERT_EQ(y.get({i, j}), sum) << i << "," << j << " " << to_string(dtype);
      }
    }
  }
}

TEST_P(GemmDevice, SpecialValuesReachTheirElementsOnly) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    StridedArray a(dtype, {20, 24}), b(dtype, {24, 32}), y(dtype, {20, 32});
    a.randomize(1, true);
    b.randomize(2, true);
    a.set({3, 5}, NAN);
    b.set({5, 7}, INFINITY);
    gemm({.a = a.view(),
          .b = b.view(),
          .y = y.view(),
          .epilogue = {.activation = Activation::relu}});
    y.each([&](const std::vector<int64_t>& at) {
      const double value = y.get(at);
      if (at[0] == 3) {
        EXPECT_TRUE(std::isnan(value));
      } else if (at[1] != 7) {
        EXPECT_TRUE(std::isfinite(value) && value >= 0);
      }
    });
  }
}

TEST_P(GemmDevice, RepeatsBitForBit) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    std::vector<std::byte> first;
    for (int i = 0; i < 2; ++i) {
      StridedArray a(dtype, {40, 900}), b(dtype, {900, 24}, {1, 0}), y(dtype, {40, 24});
      a.randomize(1, false);
      b.randomize(2, false);
      gemm({.a = a.view(), .b = b.view(), .y = y.view()});
      first = first.empty() ? y.bytes() : first;
      EXPECT_EQ(first, y.bytes());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Provider, GemmDevice,
                         testing::Values("own", "own:naive", "own:tiled", "own:simt", "own:simt_64",
                                         "own:simt_128", "own:tensor", "own:tensor_64",
                                         "own:tensor_128", "library"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST(GemmProvider, NamesAreKeptAndWrongOnesRefused) {
  set_gemm_provider("own:tiled");
  EXPECT_EQ(gemm_provider(), "own:tiled");
  EXPECT_EQ(gemm_variant(), KernelVariant::tiled);
  try {
    set_gemm_provider("own:wmma");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("\"own:wmma\""), std::string::npos) << message;
    EXPECT_NE(message.find("own:tensor_128, library, auto"), std::string::npos) << message;
  }
  EXPECT_EQ(gemm_provider(), "own:tiled");
  set_gemm_provider("auto");
  EXPECT_EQ(gemm_variant(), KernelVariant::timed);
  set_gemm_provider("own");
}

#if defined(BINADE_WITH_CUDA) && defined(BINADE_HOST_EXECUTION)
TEST(GemmProvider, LibraryCallsAreCounted) {
  if (test_device().is_cpu()) {
    GTEST_SKIP() << "the library is for GPUs";
  }
  const int64_t before = library_gemm_calls();
  run({8, 8, 8});
  EXPECT_EQ(library_gemm_calls(), before);
  set_gemm_provider("library");
  run({8, 8, 8});
  set_gemm_provider("own");
  EXPECT_EQ(library_gemm_calls(), before + 1);
}

// Runs with a stand-in for the library (fake_cublaslt.cpp), or with a file that does not exist.
class GemmLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device().is_cpu() || !is_named(kCublasLt)) {
      GTEST_SKIP() << "BINADE_CUBLASLT_LIBRARY names no stand-in";
    }
    set_gemm_provider("library");
  }
  void TearDown() override { set_gemm_provider("own"); }
};

TEST_F(GemmLibrary, KeepsNanInEveryEpilogue) {
  if (!cublaslt::missing().empty()) {
    GTEST_SKIP() << cublaslt::missing();
  }
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const Activation activation :
         {Activation::none, Activation::relu, Activation::gelu_tanh}) {
      for (const bool with_bias : {false, true}) {
        StridedArray a(dtype, {4, 8}), b(dtype, {8, 16}), y(dtype, {4, 16}), bias(dtype, {16});
        a.randomize(1, true);
        b.randomize(2, true);
        bias.randomize(3, true);
        a.set({1, 2}, NAN);
        const int64_t before = library_gemm_calls();
        const View bias_view = with_bias ? bias.view() : kNoView;
        gemm({.a = a.view(),
              .b = b.view(),
              .y = y.view(),
              .epilogue = {.bias = bias_view, .activation = activation}});
        const bool is_own = activation == Activation::gelu_tanh && dtype != DType::f32;
        EXPECT_EQ(library_gemm_calls(), before + (is_own ? 0 : 1));
        for (int64_t j = 0; j < 16; ++j) {
          EXPECT_TRUE(std::isnan(y.get({1, j}))) << to_string(dtype) << " " << int(activation);
          EXPECT_FALSE(std::isnan(y.get({0, j})));
          EXPECT_TRUE(activation != Activation::relu || y.get({0, j}) >= 0);
        }
      }
    }
  }
}

// An algorithm that was chosen for an aligned bias must not be used for an unaligned one.
TEST_F(GemmLibrary, ABiasOfAnotherAlignmentIsAnotherProblem) {
  if (!cublaslt::missing().empty()) {
    GTEST_SKIP() << cublaslt::missing();
  }
  StridedArray a(DType::f16, {8, 8}), b(DType::f16, {8, 8}), y(DType::f16, {8, 8});
  StridedArray terms(DType::f16, {16});
  a.randomize(1, true);
  b.randomize(2, true);
  terms.randomize(3, true);
  for (const int64_t first : {0, 1, 2, 0, 3}) {
    View bias = terms.view();
    bias = test_view(bias.data + first * 2, DType::f16, {8});
    gemm({.a = a.view(), .b = b.view(), .y = y.view(), .epilogue = {.bias = bias}});
    double sum = terms.get({first});
    for (int64_t k = 0; k < 8; ++k) {
      sum += a.get({0, k}) * b.get({k, 0});
    }
    EXPECT_EQ(y.get({0, 0}), sum) << first;
  }
}

constexpr const char* kFails = "BINADE_FAKE_CUBLASLT_REFUSES";

// A product that the library refuses to execute runs on our kernel from then on; one for which it
// failed to answer is asked for again.
TEST_F(GemmLibrary, ARefusalLastsAndAFailureToAnswerDoesNot) {
  if (!cublaslt::missing().empty()) {
    GTEST_SKIP() << cublaslt::missing();
  }
  struct Product {
    StridedArray a, b, y{DType::f32, {8, 24}};
    explicit Product(int64_t k) : a(DType::f32, {8, k}), b(DType::f32, {k, 24}) {
      a.randomize(1, true);
      b.randomize(2, true);
      y.randomize(3, true);
    }
    // Adds to the old value of y.
    void run() {
      double sum = y.get({7, 23});
      for (int64_t k = 0; k < a.sizes()[1]; ++k) {
        sum += a.get({7, k}) * b.get({k, 23});
      }
      gemm({.a = a.view(), .b = b.view(), .y = y.view(), .epilogue = {.accumulate = true}});
      EXPECT_EQ(y.get({7, 23}), sum);
    }
  };
  Product refused(41), unanswered(42);
  const int64_t before = library_gemm_calls();
  setenv(kFails, "execution", 1);
  refused.run();
  setenv(kFails, "question", 1);
  unanswered.run();
  unsetenv(kFails);
  EXPECT_EQ(library_gemm_calls(), before);
  refused.run();
  EXPECT_EQ(library_gemm_calls(), before);
  unanswered.run();
  EXPECT_EQ(library_gemm_calls(), before + 1);
}

// The first product of a shape, even of the process, may happen during a capture.
TEST_F(GemmLibrary, ACaptureRecordsAProductThatIsNew) {
  if (!cublaslt::missing().empty()) {
    GTEST_SKIP() << cublaslt::missing();
  }
  StridedArray a(DType::f32, {5, 6}), b(DType::f32, {6, 7}), y(DType::f32, {5, 7});
  a.randomize(1, true);
  b.randomize(2, true);
  const View a_view = a.view(), b_view = b.view(), y_view = y.view();
  const int64_t before = library_gemm_calls();
  RecordedGraph graph([&] { gemm({.a = a_view, .b = b_view, .y = y_view}); });
  EXPECT_EQ(library_gemm_calls(), before + 1);
  fill({.y = y_view, .value = -1});
  graph.replay();
  y.each([&](const std::vector<int64_t>& at) {
    double sum = 0;
    for (int64_t k = 0; k < 6; ++k) {
      sum += a.get({at[0], k}) * b.get({k, at[1]});
    }
    EXPECT_EQ(y.get(at), sum);
  });
}

// Runs in a process whose stand-in cannot make a handle; skipped elsewhere.
TEST_F(GemmLibrary, ALibraryThatLoadsAndDoesNotStartIsNotedOnce) {
  const char* fails = std::getenv(kFails);
  if (!fails || std::string(fails) != "start") {
    GTEST_SKIP() << "the stand-in starts";
  }
  static int count = 0;
  static std::string last;
  set_notice_sink([](const std::string& notice) { ++count, last = notice; });
  run({8, 24, 40});
  run({8, 24, 41});
  EXPECT_EQ(library_gemm_calls(), 0);
  EXPECT_EQ(count, 1);
  EXPECT_NE(last.find("cuBLASLt does not start"), std::string::npos) << last;
}

TEST_F(GemmLibrary, AMissingFileIsAnErrorWithItsPathAndNotAnotherResult) {
  if (cublaslt::missing().empty()) {
    GTEST_SKIP() << "the library is there";
  }
  StridedArray a(DType::f32, {2, 2}), b(DType::f32, {2, 2}), y(DType::f32, {2, 2});
  try {
    gemm({.a = a.view(), .b = b.view(), .y = y.view()});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const char* part : {"provider \"library\"", "cuBLASLt was not loaded", "/no/such/file",
                             "BINADE_CUBLASLT_LIBRARY", "\"own\""}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
  set_gemm_provider("auto");  // chooses among the available ones
  run({8, 8, 8});
  set_gemm_provider("own");
  run({8, 8, 8});
}
#endif

}  // namespace
}  // namespace binade::kernels::gemm_device_test
