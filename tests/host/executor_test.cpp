// Launches, options, errors, and the counts of the access report.
#include <binade/kernels/host/access_report.h>
#include <gtest/gtest.h>
#include <tests/host/host_launch.h>
#include <tests/host/primitives.h>

#include <cstdlib>
#include <functional>
#include <vector>

namespace binade::kernels::host {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Executor, LaunchLimits) {
  const auto refused = [](dim3 grid, dim3 block, size_t shared_bytes) {
    return error_of([&] { run_nothing({"nothing_kernel", grid, block, shared_bytes}); });
  };
  EXPECT_EQ(
      refused(1, dim3(0), 0),
      "kernel nothing_kernel: block (0, 1, 1); a block has 1 to 1024 threads, at most 64 along z");
  EXPECT_NE(refused(1, 1025, 0), "");
  EXPECT_NE(refused(1, dim3(32, 33), 0), "");
  EXPECT_NE(refused(1, dim3(1, 1, 65), 0), "");
  EXPECT_NE(refused(1, dim3(65536, 65536), 0), "");  // 0 in 32 bits
  EXPECT_EQ(refused(dim3(1, 65536), 1, 0),
            "kernel nothing_kernel: grid (1, 65536, 1); a grid has 1 to 2147483647 x 65535 x 65535 "
            "blocks");
  EXPECT_NE(refused(dim3(1, 1, 65536), 1, 0), "");
  EXPECT_NE(refused(dim3(0), 1, 0), "");
  EXPECT_EQ(refused(1, 1, 227 * 1024 + 1),
            "kernel nothing_kernel: 232449 bytes of shared memory; a block has at most 232448");
  EXPECT_EQ(refused(dim3(1, 65535), dim3(1, 1, 64), 227 * 1024), "");
}

TEST(Executor, DeviceFunctionsOutsideOfKernels) {
  EXPECT_THROW(__syncthreads(), KernelError);
  EXPECT_THROW(__shfl_sync(~0u, 1, 0), KernelError);
  EXPECT_FALSE(inside_kernel());
}

TEST(Executor, GoesOnAfterErrors) {
  int failures = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<int> y(64);
    const std::string said = error_of([&] { run_maybe_failing(i % 3 == 1, y.data()); });
    if (i % 3 == 1) {
      ++failures;
      EXPECT_NE(
          said.find("kernel maybe_failing_kernel, block (0,0,0), thread (33,0,0): __syncwarp"),
          std::string::npos)
          << said;
      continue;
    }
    ASSERT_EQ(said, "");
    for (int k = 0; k < 64; ++k) {
      ASSERT_EQ(y[k], 1 + (k % 32 == 31 ? k : k + 1));
    }
  }
  EXPECT_EQ(failures, 100);
}

TEST(Executor, ErrorsOfAnyOsThread) {
  const WithOptions with({.os_threads = 4});
  std::vector<int> y(64);
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(error_of([&] { run_maybe_failing(true, y.data()); }), "");
    AtomicResults r{};
    run_atomics(40, 32, &r);
    ASSERT_EQ(r.i, -40 * 32);
  }
}

struct Variable {
  const char* name;
  const char* value;
};
std::string options_error(Variable variable) {
  setenv(variable.name, variable.value, 1);
  const std::string said = error_of([] { options_from_environment(); });
  unsetenv(variable.name);
  return said;
}

TEST(Executor, OptionsFromEnvironment) {
  for (const char* name :
       {"BINADE_HOST_SCHEDULE", "BINADE_HOST_SEED", "BINADE_HOST_THREADS", "BINADE_HOST_ASYNC"}) {
    unsetenv(name);
  }
  EXPECT_EQ(options_error({"BINADE_HOST_SCHEDULE", "ramdom"}),
            "BINADE_HOST_SCHEDULE: got \"ramdom\", expected forward, reverse or random");
  EXPECT_EQ(options_error({"BINADE_HOST_ASYNC", ""}),
            "BINADE_HOST_ASYNC: got \"\", expected late or early");
  EXPECT_EQ(options_error({"BINADE_HOST_SEED", "7x"}),
            "BINADE_HOST_SEED: got \"7x\", expected a number");
  EXPECT_NE(options_error({"BINADE_HOST_SEED", "-1"}), "");
  EXPECT_EQ(options_error({"BINADE_HOST_THREADS", "0"}),
            "BINADE_HOST_THREADS: got 0, expected 1 to 256");
  setenv("BINADE_HOST_SCHEDULE", "random", 1);
  setenv("BINADE_HOST_SEED", "9", 1);
  setenv("BINADE_HOST_THREADS", "3", 1);
  setenv("BINADE_HOST_ASYNC", "early", 1);
  const Options got = options_from_environment();
  EXPECT_EQ(got.schedule, Schedule::random);
  EXPECT_EQ(got.seed, 9u);
  EXPECT_EQ(got.os_threads, 3);
  EXPECT_FALSE(got.late_async);
}

AccessRow row_of(Pattern pattern, AccessKind kind) {
  const WithOptions with({.count_accesses = true});
  std::vector<float> memory(128 + 8);
  float* aligned = memory.data() + (32 - reinterpret_cast<uintptr_t>(memory.data()) % 32) % 32 / 4;
  reset_access_report();
  run_pattern(pattern, aligned);
  AccessRow found{};
  for (const AccessRow& row : access_report()) {
    if (row.kind == kind && row.file.find("primitives.cu") != std::string::npos) {
      EXPECT_EQ(row.kernel, "pattern_kernel");
      found = row;  // the last line with accesses of this kind
    }
  }
  reset_access_report();
  EXPECT_TRUE(access_report().empty());
  return found;
}

TEST(AccessReport, CountsKnownPatterns) {
  if (!has_race_detector()) {
    GTEST_SKIP() << "accesses are counted by the race build";
  }
  AccessRow row = row_of(Pattern::coalesced, AccessKind::global_write);
  EXPECT_EQ(row.requests, 1u);
  EXPECT_EQ(row.sectors_per_request(), 4);
  EXPECT_EQ(row.used_share(), 1);
  row = row_of(Pattern::stride_two, AccessKind::global_write);
  EXPECT_EQ(row.sectors_per_request(), 8);
  EXPECT_EQ(row.used_share(), 0.5);
  row = row_of(Pattern::vectors, AccessKind::global_write);
  EXPECT_EQ(row.sectors_per_request() * static_cast<double>(row.requests), 16);
  EXPECT_EQ(row.used_share(), 1);
  row = row_of(Pattern::column, AccessKind::shared_write);
  EXPECT_EQ(row.requests, 1u);
  EXPECT_EQ(row.wavefronts_per_request(), 32);
  row = row_of(Pattern::padded_column, AccessKind::shared_write);
  EXPECT_EQ(row.wavefronts_per_request(), 1);
  row = row_of(Pattern::load_matrix, AccessKind::shared_write);
  EXPECT_EQ(row.requests, 32u);
  EXPECT_EQ(row.wavefronts_per_request(), 1);
  row = row_of(Pattern::load_matrix, AccessKind::shared_read);
  EXPECT_EQ(row.requests, 1u);
  EXPECT_EQ(row.wavefronts_per_request(), 32);  // four phases of eight rows in the same banks
}

}  // namespace
}  // namespace binade::kernels::host
