// Tests the provider "auto": each problem is timed once, and a file keeps the table.
#include <binade/kernels/base/tuning.h>
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <binade/kernels/gemm/gemm_provider.h>
#include <tests/kernels/gemm/gemm_case.h>
#include <tests/kernels/support/array_values.h>
#include <tests/kernels/support/plan_limit.h>
#include <unistd.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/tuning_internal.h>
#endif

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace binade::kernels::tuning_device_test {
namespace {

class Tuning : public testing::Test {
 protected:
  void SetUp() override {
    set_tuning_file("");
    path_ = testing::TempDir() + "tuning-" + std::to_string(getpid());
    std::remove(path_.c_str());
  }
  void TearDown() override {
    set_gemm_provider("own");
    set_conv2d_provider("own");
    set_tuning_file("");
    std::remove(path_.c_str());
  }
  std::string path_;
};

TEST_F(Tuning, AProductIsTimedOnceAndRight) {
  if (test_device().is_cpu()) {
    GTEST_SKIP() << "the CPU has one implementation";
  }
  set_tuning_file(path_);  // without a file the emulated device times nothing
  set_gemm_provider("auto");
  run({17, 33, 40});
  ASSERT_EQ(tuning_table().size(), 1u);
  const TuningEntry first = tuning_table()[0];
  EXPECT_NE(first.problem.find("gemm"), std::string::npos) << first.problem;
  EXPECT_NE(first.choice.find_first_not_of(' '), std::string::npos);
  add_tuning(first.problem, "own:simt_64");  // a second timing would replace it
  run({17, 33, 40});
  EXPECT_EQ(tuning_choice(first.problem), "own:simt_64");
  EXPECT_EQ(tuning_table().size(), 1u);
  run({17, 33, 41});
  EXPECT_EQ(tuning_table().size(), 2u);
}

TEST_F(Tuning, TheTableSaysWhyAndHopelessVariantsAreNotTimed) {
  if (test_device().is_cpu()) {
    GTEST_SKIP() << "the CPU has one implementation";
  }
  set_tuning_file(path_);
  set_gemm_provider("auto");
  run({.m = 16, .n = 24, .k = 32, .dtype = DType::f16});
  ASSERT_EQ(tuning_table().size(), 1u);
  const TuningEntry entry = tuning_table()[0];
  for (const char* part :
       {"own ", " us", "own:tensor_64", "not timed: own:simt_64 (tensor cores"}) {
    EXPECT_NE(entry.reason.find(part), std::string::npos) << entry.reason;
  }
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, entry.problem + "\t" + entry.choice + "\t" + entry.reason);
  set_tuning_file(path_);  // read the file again
  ASSERT_EQ(tuning_table().size(), 1u);
  EXPECT_EQ(tuning_table()[0].reason, entry.reason);
  EXPECT_EQ(tuning_table()[0].choice, entry.choice);
}

// "auto" is the default. Without a file the emulated device, whose times mean nothing, runs own
// kernels.
TEST_F(Tuning, NothingIsTimedOnTheEmulatedDeviceWithoutAFile) {
  if (test_device().kind != Device::kEmulated) {
    GTEST_SKIP() << "the device's times mean something";
  }
  set_gemm_provider("auto");
  run({9, 6, 7});
  EXPECT_TRUE(tuning_table().empty());
}

TEST_F(Tuning, AnUnknownChoiceIsTimedAnew) {
  if (test_device().is_cpu()) {
    GTEST_SKIP() << "the CPU has one implementation";
  }
  set_tuning_file(path_);  // without a file the emulated device times nothing
  set_gemm_provider("auto");
  run({5, 6, 7});
  const std::string problem = tuning_table().at(0).problem;
  add_tuning(problem, "own:of_another_version");
  run({5, 6, 7});
  EXPECT_NE(tuning_choice(problem), "own:of_another_version");
}

TEST_F(Tuning, TheThreeDirectionsOfAConvolutionAreThreeProblems) {
  if (test_device().is_cpu()) {
    GTEST_SKIP() << "the CPU has one implementation";
  }
  set_tuning_file(path_);  // without a file the emulated device times nothing
  set_conv2d_provider("auto");
  const Values values = random_values(2 * 8 * 5 * 5, 1);
  StridedArray x = make_array(DType::f32, {2, 8, 5, 5}, values);
  StridedArray w = make_array(DType::f32, {8, 8, 1, 1}, random_values(64, 2));
  StridedArray y(DType::f32, {2, 8, 5, 5}), again(DType::f32, {2, 8, 5, 5});
  conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view()});
  conv2d_backward_data({.dy = y.view(), .w = w.view(), .dx = x.view()});
  conv2d_backward_weight({.x = x.view(), .dy = y.view(), .dw = w.view()});
  EXPECT_EQ(tuning_table().size(), 3u);

  StridedArray source = make_array(DType::f32, {2, 8, 5, 5}, values);
  StridedArray weight = make_array(DType::f32, {8, 8, 1, 1}, random_values(64, 2));
  set_conv2d_provider("own:direct");
  conv2d_forward({.x = source.view(), .w = weight.view(), .y = again.view()});
  expect_close(y, DType::f32, values_of(again), 16, "auto against direct");
}

TEST_F(Tuning, TheTableIsReadAndAppended) {
  set_tuning_file(path_);
  EXPECT_TRUE(tuning_table().empty());
  add_tuning("card gemm f16 [1, 2] [2, 3] nnn", "own:tensor_64");
  add_tuning("card conv2d", "own:direct");
  add_tuning("card conv2d", "library");
  set_tuning_file("");
  EXPECT_TRUE(tuning_table().empty());
  set_tuning_file(path_);
  ASSERT_EQ(tuning_table().size(), 2u);
  EXPECT_EQ(tuning_choice("card conv2d"), "library");
  EXPECT_EQ(tuning_choice("card gemm f16 [1, 2] [2, 3] nnn"), "own:tensor_64");
  EXPECT_EQ(tuning_choice("another"), "");
}

// A line in use stays; without a file the others are forgotten in the order of their last use.
TEST_F(Tuning, TheTableKeepsTheLastProblems) {
  const PlanLimit limit(1);
  TuningLine held = add_tuning("card 100", "own");
  add_tuning("card 101", "own");
  for (int i = 102; i < 140; ++i) {
    add_tuning("card " + std::to_string(i), "library");
    EXPECT_NE(find_tuning("card 102"), nullptr);  // it is used all the time
    EXPECT_LE(tuning_table().size(), static_cast<size_t>(kTuningLines));
  }
  ASSERT_EQ(tuning_table().size(), static_cast<size_t>(kTuningLines));
  EXPECT_EQ(tuning_table()[0].problem, "card 100");
  EXPECT_EQ(tuning_table()[1].problem, "card 102");
  EXPECT_EQ(tuning_table()[2].problem, "card 126");
  EXPECT_EQ(find_tuning("card 125"), nullptr);
  EXPECT_EQ(find_tuning("card 101"), nullptr);
  held = nullptr;
  add_tuning("card 140", "own");
  EXPECT_EQ(find_tuning("card 100"), nullptr);
}

TEST_F(Tuning, WhatTheTableNoLongerKeepsIsFoundInTheFile) {
  const PlanLimit limit(1);
  set_tuning_file(path_);
  add_tuning("card 100", "own");
  for (int i = 100; i < 140; ++i) {
    add_tuning("card " + std::to_string(i), "library", "because");
  }
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(tuning_table().size(), static_cast<size_t>(kTuningLines));
    ASSERT_NE(find_tuning("card 100"), nullptr);
    EXPECT_EQ(find_tuning("card 100")->choice, "library");
    EXPECT_EQ(find_tuning("card 100")->reason, "because");
    EXPECT_EQ(find_tuning("card 1"), nullptr);
    EXPECT_EQ(tuning_table().size(), static_cast<size_t>(kTuningLines));
    set_tuning_file(path_);
  }
  std::ifstream file(path_);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 41);
}

#ifdef BINADE_WITH_CUDA
TEST_F(Tuning, MoreProductsThanTheLimitWorkAndAreTimedOnce) {
  if (test_device().is_cpu()) {
    GTEST_SKIP() << "the CPU has one implementation";
  }
  const PlanLimit limit(2);
  set_tuning_file(path_);
  set_gemm_provider("auto");
  run({3, 4, 100});
  const int64_t others = provider_choices_kept() - 1;
  for (int round = 0; round < 2; ++round) {
    for (int64_t k = 101; k < 136; ++k) {
      run({3, 4, k});
      EXPECT_LE(provider_choices_kept() - others, 2);
      EXPECT_LE(tuning_table().size(), static_cast<size_t>(2 * kTuningLines));
    }
    std::ifstream file(path_);
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 36);
  }
}
#endif

TEST_F(Tuning, WhatIsNoTableIsRefusedAndKept) {
  std::ofstream(path_) << "card gemm\town\nno tab here\n";
  try {
    set_tuning_file(path_);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(path_ + ":2"), std::string::npos) << message;
    EXPECT_NE(message.find("no tab here"), std::string::npos) << message;
  }
  EXPECT_TRUE(tuning_table().empty());
  add_tuning("card gemm", "own");
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  EXPECT_EQ(line, "no tab here");
  EXPECT_FALSE(std::getline(file, line));
}

TEST_F(Tuning, AFileThatCannotBeWrittenIsAnError) {
  set_tuning_file("/no/such/folder/table");
  EXPECT_THROW(add_tuning("card gemm", "own"), Error);
}

}  // namespace
}  // namespace binade::kernels::tuning_device_test
