// Tests attention by the stand-in for cuDNN (fake_cudnn.cpp): the results are those of loops in
// double, and calls that the library cannot do, or does wrong, run on our own kernels.
#include <tests/kernels/attention/attention_problem.h>
#include <tests/kernels/cudnn/cudnn_fixture.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/attention/cudnn_attention_internal.h>
#include <binade/kernels/base/tuning.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace binade::kernels::cudnn_attention_device_test {
namespace {

class CudnnAttention : public CudnnTest {
 protected:
  void TearDown() override {
    unsetenv("BINADE_FAKE_CUDNN_VERSION");
    CudnnTest::TearDown();
  }
  // Runs forward and backward and expects the library to compute `by_library` of them.
  static void run_by_library(const AttentionCase& c, DType dtype, int by_library) {
    const int64_t before = library_attention_calls();
    check_case(c, dtype);
    EXPECT_EQ(library_attention_calls() - before, by_library) << describe(c);
  }
};

TEST_F(CudnnAttention, ForwardAndBackwardCausalOrNot) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const bool causal : {false, true}) {
      run_by_library({.n = {1, 1, 128, 128, 8, 8}, .causal = causal}, dtype, 2);
      run_by_library({.n = {2, 3, 9, 9, 16, 16}, .causal = causal}, dtype, 1);
      run_by_library({.n = {1, 2, 5, 11, 8, 24}, .causal = causal}, dtype, 1);
    }
  }
  run_by_library({.n = {2, 1, 128, 256, 8, 16}}, DType::f16, 2);
}

// A partial tile of 128 may turn the library's gradients into NaN.
TEST_F(CudnnAttention, TheBackwardOfAPartOfATileIsOurs) {
  run_by_library({.n = {1, 1, 128, 192, 8, 8}}, DType::bf16, 1);
  run_by_library({.n = {1, 1, 64, 128, 8, 8}}, DType::bf16, 1);
  run_by_library({.n = {1, 1, 1, 128, 8, 8}}, DType::bf16, 1);
}

TEST_F(CudnnAttention, MasksDropoutOddSizesAndWideDtypesAreOurs) {
  run_by_library({.n = {1, 2, 6, 7, 8, 8}, .mask = Mask::add}, DType::f16, 0);
  run_by_library({.n = {1, 2, 6, 7, 8, 8}, .mask = Mask::keep}, DType::f16, 0);
  run_by_library({.n = {1, 2, 6, 7, 8, 8}, .dropout = 0.25}, DType::f16, 0);
  run_by_library({.n = {1, 2, 6, 7, 8, 8}, .model_order = true}, DType::f16, 0);  // gaps of 3
  run_by_library({.n = {1, 2, 6, 7, 12, 8}}, DType::f16, 0);
  run_by_library({.n = {1, 2, 6, 7, 8, 8}}, DType::f32, 0);
}

TEST_F(CudnnAttention, VersionsWithWrongAttentionAreNotUsed) {
  const AttentionCase c{.n = {1, 2, 6, 7, 8, 8}};
  for (const char* version : {"91000", "91001"}) {
    setenv("BINADE_FAKE_CUDNN_VERSION", version, 1);
    run_by_library(c, DType::f16, 0);
  }
  setenv("BINADE_FAKE_CUDNN_VERSION", "91002", 1);
  run_by_library(c, DType::f16, 1);
}

// cuDNN 9.13 and 9.14 fault in graphs with more than 1024 keys that are not causal.
TEST_F(CudnnAttention, GraphsOfManyKeysAreOursWhereTheLibraryFaults) {
  struct Expectation {
    const char* version;
    int64_t keys;
    bool causal;
    int by_library;
  };
  for (const Expectation& e : {Expectation{"91400", 1032, false, 0},
                               {"91300", 1032, false, 0},
                               {"91400", 1024, false, 1},
                               {"91400", 1032, true, 1},
                               {"91500", 1032, false, 1},
                               {"91201", 1032, false, 1}}) {
    setenv("BINADE_FAKE_CUDNN_VERSION", e.version, 1);
    Problem problem{{.n = {1, 1, 3, e.keys, 8, 8}, .causal = e.causal}, DType::f16};
    const View q = problem.q.view(), k = problem.k.view(), v = problem.v.view();
    const View out = problem.out.view(), lse = problem.lse.view();
    const auto forward = [&] {
      attention_forward({.q = q,
                         .k = k,
                         .v = v,
                         .out = out,
                         .lse = lse,
                         .scale = problem.c.scale,
                         .visible = {.causal = e.causal}});
    };
    const int64_t before = library_attention_calls();
    RecordedGraph graph(forward);
    EXPECT_EQ(library_attention_calls() - before, e.by_library) << e.version << " " << e.keys;
    graph.replay();
    problem.expect(problem.out, problem.expected().out, e.version);
    forward();
    EXPECT_EQ(library_attention_calls() - before, e.by_library + 1) << "without a graph";
  }
}

// The table of choices must say why the library was not used.
TEST_F(CudnnAttention, TheTableNamesTheReason) {
  const std::string path = testing::TempDir() + "attention-tuning-" + std::to_string(getpid());
  std::remove(path.c_str());
  set_tuning_file(path);
  set_attention_provider("auto");
  check_case({.n = {1, 1, 6, 9, 8, 8}, .mask = Mask::keep}, DType::f16);
  check_case({.n = {1, 1, 6, 9, 8, 8}, .dropout = 0.25}, DType::f16);
  check_case({.n = {1, 1, 64, 64, 8, 8}}, DType::f16);
  std::string reasons;
  for (const TuningEntry& entry : tuning_table()) {
    reasons += entry.problem + ": " + entry.reason + "\n";
  }
  for (const char* part : {"library (cuDNN adds a mask", "library (cuDNN drops other weights",
                           "library (cuDNN's gradients may be NaN"}) {
    EXPECT_NE(reasons.find(part), std::string::npos) << reasons;
  }
  set_tuning_file("");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace binade::kernels::cudnn_attention_device_test
#endif
