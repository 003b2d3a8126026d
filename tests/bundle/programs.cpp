// gpu-programs: all programs that scripts/gpu-check runs, in one binary, so that a bundle has the
// kernels once. `gpu-programs NAME ...` is program NAME; `gpu-programs tests GROUP ...` runs the
// tests of the folders tests/GROUP.
#include <bench/step_one.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>

// The programs' sources, compiled with `main` under these names.
int cuda_conformance_main(int, char**);
int gpu_ceilings_main(int, char**);
int kernel_bench_main(int, char**);
int parity_runner_main(int, char**);
int train_classifier_main(int, char**);
int binade_main(int, char**);
int nccl_check_main(int, char**);

namespace {

struct Program {
  const char* name;
  int (*main)(int, char**);
};
constexpr Program kPrograms[] = {
    {"cuda_conformance", cuda_conformance_main},
    {"gpu_ceilings", gpu_ceilings_main},
    {"kernel_bench", kernel_bench_main},
    {"step_bench", binade::bench::run_step_model},
    {"parity_runner", parity_runner_main},
    {"train_classifier", train_classifier_main},
    {"binade", binade_main},
    {"nccl_check", nccl_check_main},
};

// A filter for the tests of a folder, without those about instruction sets and threads of the CPU.
std::string filter_of(const std::string& group) {
  const std::string folder = "/tests/" + group + "/";
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string name = std::string(suite.name()) + '.' + test.name();
      if (std::string_view(test.file()).find(folder) != std::string_view::npos &&
          name.find("Isas") == std::string::npos && name.find("ThreadCount") == std::string::npos) {
        filter += (filter.empty() ? "" : ":") + name;
      }
    }
  }
  return filter;
}

// The test that runs, for the handler of a crash, which may not allocate.
char running[512] = "";

void write_text(const char* text) { std::ignore = write(STDERR_FILENO, text, std::strlen(text)); }

// Says where a test crashed: addresses in the program are offsets for addr2line on an unstripped
// build of the same commit.
void report_crash(int signal) {
  write_text("crashed in ");
  write_text(running);
  write_text("\n");
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class RunningTest : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(running, sizeof running, "%s.%s", test.test_suite_name(), test.name());
  }
};

int run_tests(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: gpu-programs tests kernels|op_table|optim|cuda|train\n");
    return 2;
  }
  const std::string group = argv[1];
  testing::InitGoogleTest(&argc, argv);
  const std::string wanted = testing::GTEST_FLAG(filter);
  const std::string filter = wanted == "*" ? filter_of(group) : wanted;
  if (filter.empty()) {
    std::fprintf(stderr, "no tests in %s\n", group.c_str());
    return 2;
  }
  testing::GTEST_FLAG(filter) = filter;
  testing::UnitTest::GetInstance()->listeners().Append(new RunningTest);
  void* loaded[1];
  backtrace(loaded, 1);  // the first call loads a library, which a handler may not
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    std::signal(signal, report_crash);
  }
  return RUN_ALL_TESTS();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "tests") {
    return run_tests(argc - 1, argv + 1);
  }
  for (const Program& program : kPrograms) {
    if (name == program.name) {
      return program.main(argc - 1, argv + 1);
    }
  }
  std::fprintf(stderr, "usage: gpu-programs NAME ...; NAME is tests");
  for (const Program& program : kPrograms) {
    std::fprintf(stderr, ", %s", program.name);
  }
  std::fprintf(stderr, "\n");
  return 2;
}
