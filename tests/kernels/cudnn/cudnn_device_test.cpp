// Tests cuDNN as the provider of convolution, norms and attention on the device under test, with a
// stand-in for the library (fake_cudnn.cpp) that checks every argument and computes the results,
// and with a file that does not exist. Its graphs are selected by the providers' names and compared
// with loops in double.
#include <tests/kernels/conv/conv2d_case.h>
#include <tests/kernels/cudnn/cudnn_fixture.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/attention/cudnn_attention_internal.h>
#include <binade/kernels/base/tuning.h>
#include <binade/kernels/conv/cudnn_conv2d_internal.h>
#include <binade/kernels/cudnn/cudnn_graph_internal.h>
#include <binade/kernels/norm/cudnn_norm_internal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace binade::kernels::cudnn_device_test {
namespace {

class CudnnConv2d : public CudnnTest {
 protected:
  // Runs the three directions and expects the library to compute `by_library` of them.
  static void run_by_library(const ConvCase& k, int by_library = 3) {
    const int64_t before = library_conv2d_calls();
    run(k, MathMode::precise);
    EXPECT_EQ(library_conv2d_calls() - before, by_library);
  }
};

TEST_F(CudnnConv2d, GeometryDtypesAndFusedEpilogues) {
  for (const DType dtype : kDTypes) {
    run_by_library({2, 5, 7, 6, 9, 3, 3, geometry(1, 1), dtype, true, true, true});
    run_by_library({2, 6, 9, 8, 4, 3, 2, geometry(2, 1), dtype, true, true});
    run_by_library({1, 3, 11, 9, 5, 3, 3, {{2, 1}, {0, 2}, {1, 3}, 1}, dtype, true, false, true});
    run_by_library({2, 8, 5, 6, 12, 3, 3, geometry(1, 1, 1, 4), dtype, true, true, true});
    run_by_library({3, 4, 5, 5, 4, 1, 1, {}, dtype, false});
    run_by_library({2, 3, 9, 7, 6, 3, 3, geometry(1, 1), dtype, false, true, true});
  }
}

TEST_F(CudnnConv2d, EveryLayoutReachesTheLibrary) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& x : {kChannelsLast, kPlain, kOdd}) {
      for (const auto& w : {kChannelsLast, kPlain, kOdd}) {
        for (const auto& y : {kChannelsLast, kPlain, kOdd}) {
          run_by_library(
              {2, 4, 5, 6, 6, 3, 2, geometry(1, 1), dtype, true, true, true, x, w, y, 0});
        }
      }
    }
    run_by_library({2, 5, 4, 7, 3, 3, 3, geometry(1, 1), dtype, true, true, true, kChannelsLast,
                    kChannelsLast, kChannelsLast, 3});
    run_by_library(
        {2, 1, 4, 7, 1, 3, 3, geometry(1, 1), dtype, true, true, false, kPlain, kPlain, kPlain});
    run_by_library({3, 4, 1, 1, 6, 1, 1, {}, dtype, true, true, false, kPlain, kPlain, kPlain});
  }
}

// Without an engine that keeps NaN through relu, our relu runs; without an engine that fuses a
// bias, our whole convolution runs.
TEST_F(CudnnConv2d, WhatTheLibraryHasNoEngineForIsOurs) {
  const ConvCase k{2, 3, 6, 5, 4, 3, 3, geometry(1, 1), DType::f16, true, true, true};
  setenv(kRefuses, "strict_nan", 1);
  run_by_library({2, 3, 6, 5, 8, 3, 3, geometry(1, 1), DType::f16, true, true, true});
  setenv(kRefuses, "relu", 1);
  run_by_library(k);
  setenv(kRefuses, "bias", 1);
  run_by_library({2, 3, 7, 5, 4, 3, 3, geometry(1, 1), DType::f16, true, true, true}, 1);
  setenv(kRefuses, "all", 1);
  run_by_library({2, 3, 8, 5, 4, 3, 3, geometry(1, 1), DType::f16, true, true, true}, 0);
  run_by_library({0, 3, 8, 5, 4, 3, 3, geometry(1, 1), DType::f16, true, true, true}, 0);
}

TEST_F(CudnnConv2d, NanPassesThroughBiasAndRelu) {
  for (const char* refused : {"", "strict_nan"}) {
    setenv(kRefuses, refused, 1);
    const int64_t side = refused[0] ? 5 : 4;
    StridedArray x(DType::f32, {1, 2, side, side}, kChannelsLast), w(DType::f32, {3, 2, 1, 1});
    StridedArray y(DType::f32, {1, 3, side, side}, kChannelsLast), bias(DType::f32, {3});
    x.randomize(1, true);
    w.randomize(2, true);
    bias.randomize(3, true);
    x.set({0, 1, 2, 1}, NAN);
    const View bias_view = bias.view();
    conv2d_forward({.x = x.view(),
                    .w = w.view(),
                    .y = y.view(),
                    .epilogue = {.bias = bias_view, .activation = Activation::relu}});
    y.each([&](const std::vector<int64_t>& at) {
      EXPECT_EQ(std::isnan(y.get(at)), at[2] == 2 && at[3] == 1);
      EXPECT_FALSE(y.get(at) < 0);
    });
  }
}

TEST_F(CudnnConv2d, AKnownProblemMakesNoPlanAndMemoryThatIsNotAlignedRunsAsOwn) {
  StridedArray x(DType::f16, {1, 1, 6, 41}), w(DType::f16, {2, 1, 3, 3}, kChannelsLast);
  StridedArray y(DType::f16, {1, 2, 4, 8}, kChannelsLast);
  x.randomize(1, true);
  w.randomize(2, true);
  const View whole = x.view();
  std::vector<int64_t> made, called;
  for (const int64_t first : {0, 8, 1, 4, 0}) {
    const View part = test_view(whole.data + first * 2, DType::f16, {1, 1, 6, 10});
    conv2d_forward({.x = part, .w = w.view(), .y = y.view()});
    made.push_back(cudnn::plans_made());
    called.push_back(library_conv2d_calls());
    double sum = 0;
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t s = 0; s < 3; ++s) {
        const int64_t at = first + r * 10 + s;
        sum += x.get({0, 0, at / 41, at % 41}) * w.get({0, 0, r, s});
      }
    }
    EXPECT_EQ(y.get({0, 0, 0, 0}), sum) << first;
  }
  EXPECT_EQ(made, std::vector<int64_t>(5, made[0]));
  const int64_t first = called[0];
  EXPECT_EQ(called, (std::vector<int64_t>{first, first + 1, first + 1, first + 1, first + 2}));
}

TEST_F(CudnnConv2d, WhatTheLibraryRefusesToExecuteRunsAsOwnFromThenOn) {
  const ConvCase k{1, 16, 7, 5, 16, 3, 3, geometry(1, 1), DType::f16, true, true, true};
  const int64_t before = library_conv2d_calls();
  setenv(kRefuses, "execution", 1);
  run(k, MathMode::precise);
  setenv(kRefuses, "", 1);
  run(k, MathMode::precise);
  EXPECT_EQ(library_conv2d_calls(), before);
}

TEST_F(CudnnTest, OperandsOfTwoToThePowerOf31ElementsAreRefused) {
  alignas(16) float memory[4] = {};
  const Dims sizes{2, int64_t{1} << 30, 1, 1};
  cudnn::Problem problem{
      .name = "test",
      .device = test_device(),
      .dtype = DType::f32,
      .operands = {{cudnn::kFloat, sizes, {int64_t{1} << 30, 1, 1, 1}, memory}},
      .options = {},
      .build = [](cudnn::Graph&, const cudnn::Problem&) { throw cudnn::Refusal{"it was asked"}; }};
  std::string why;
  EXPECT_FALSE(cudnn::run(problem, why));
  EXPECT_NE(why.find("2^31"), std::string::npos) << why;
  problem.operands[0].strides[0] -= 2;  // the last element's index is just below 2^31 - 1
  EXPECT_FALSE(cudnn::run(problem, why));
  EXPECT_NE(why.find("it was asked"), std::string::npos) << why;
}

// "auto" times the library like other candidates, and the table says what was chosen and why.
TEST_F(CudnnTest, AutoDecidesOncePerProblemAndSaysWhy) {
  const std::string path = testing::TempDir() + "cudnn-tuning-" + std::to_string(getpid());
  std::remove(path.c_str());
  set_tuning_file(path);
  set_conv2d_provider("auto");
  const ConvCase k{1, 16, 5, 5, 16, 3, 3, geometry(1, 1), DType::f16, true, true, true};
  run(k, MathMode::precise);
  ASSERT_EQ(tuning_table().size(), 3u);
  for (const TuningEntry& entry : tuning_table()) {
    EXPECT_NE(entry.reason.find("library "), std::string::npos) << entry.reason;
    EXPECT_NE(entry.reason.find("own:direct (one thread per element)"), std::string::npos);
    add_tuning(entry.problem, "library");
  }
  const int64_t before = library_conv2d_calls();
  run(k, MathMode::precise);
  EXPECT_EQ(library_conv2d_calls(), before + 3);
  setenv(kRefuses, "all", 1);
  run({1, 16, 6, 5, 16, 3, 3, geometry(1, 1), DType::f16}, MathMode::precise);
  bool told = false;
  for (const TuningEntry& entry : tuning_table()) {
    told = told || entry.reason.find("library (cuDNN: it offers no engine)") != std::string::npos;
  }
  EXPECT_TRUE(told) << "the table names what the library refused";
  set_tuning_file("");
  std::remove(path.c_str());
}

class StartOfCudnn : public CudnnTest {};

// Runs in a process whose stand-in cannot make a handle; skipped elsewhere.
TEST_F(StartOfCudnn, ALibraryThatLoadsAndDoesNotStartIsNotedOnce) {
  const char* refuses = std::getenv(kRefuses);
  if (!refuses || std::string(refuses) != "start") {
    GTEST_SKIP() << "the stand-in starts";
  }
  static int count = 0;
  static std::string last;
  set_notice_sink([](const std::string& notice) { ++count, last = notice; });
  run({1, 3, 4, 5, 4, 3, 3, geometry(1, 1), DType::f32, true, true, true}, MathMode::precise);
  EXPECT_EQ(library_conv2d_calls(), 0);
  EXPECT_EQ(count, 1);
  EXPECT_NE(last.find("cuDNN does not start"), std::string::npos) << last;
}

class MissingCudnn : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device().is_cpu() || !is_named(kCudnn) || cudnn::missing().empty()) {
      GTEST_SKIP() << "BINADE_CUDNN_LIBRARY names no missing file";
    }
  }
  void TearDown() override {
    set_conv2d_provider("own");
    set_tuning_file("");
  }
};

TEST_F(MissingCudnn, TheProviderLibraryIsAnErrorThatNamesTheFile) {
  StridedArray x(DType::f32, {1, 1, 2, 2}), w(DType::f32, {1, 1, 1, 1}), y = x;
  set_conv2d_provider("library");
  try {
    conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view()});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const char* part : {"conv2d: got the provider \"library\"", "cuDNN was not loaded",
                             "/no/such/file", "BINADE_CUDNN_LIBRARY", "\"own\""}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

int notices = 0;
std::string last_notice;

TEST_F(MissingCudnn, AutoRunsOwnKernelsAndSaysSoInOneLine) {
  set_notice_sink([](const std::string& notice) { ++notices, last_notice = notice; });
  const std::string path = testing::TempDir() + "missing-tuning-" + std::to_string(getpid());
  set_tuning_file(path);
  set_conv2d_provider("auto");
  for (const int64_t side : {4, 5}) {
    run({1, 3, side, 5, 4, 3, 3, geometry(1, 1), DType::f32, true, true, true}, MathMode::precise);
  }
  EXPECT_EQ(library_conv2d_calls(), 0);
  EXPECT_EQ(notices, 1);
  EXPECT_NE(last_notice.find("cuDNN was not loaded"), std::string::npos) << last_notice;
  EXPECT_EQ(last_notice.find('\n'), std::string::npos);
  EXPECT_EQ(tuning_table().size(), 6u);
  for (const TuningEntry& entry : tuning_table()) {
    EXPECT_NE(entry.reason.find("library (cuDNN was not loaded)"), std::string::npos);
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace binade::kernels::cudnn_device_test
#endif
