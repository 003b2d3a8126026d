// Tests standard streams that are closed, full or without a reader, and the file size limit.
#include <binade/core/io/file_system.h>
#include <binade/core/io/program_streams.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"

namespace binade::program_streams_test {
namespace {

using testing::run_child;
using testing::TemporaryDirectory;

std::string contents(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// SIGXFSZ would end the process but must not come. Runs in a child, which has its own limit.
TEST(ProgramStreams, TheLimitOfFileSizesIsAnError) {
  const TemporaryDirectory directory;
  write_file_durably(directory / "file", "old");
  EXPECT_TRUE(run_child([&] {
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    write_file_durably(directory / "fits", std::string(1000, 'x'));
    try {
      write_file_durably(directory / "file", std::string(2000, 'x'));
      ::_exit(2);
    } catch (const FileError& error) {
      ::_exit(error.code() == EFBIG ? 0 : 3);
    }
  }));
  EXPECT_EQ(contents(directory / "file"), "old");
  EXPECT_EQ(list_directory(directory.path()).size(), 2u);  // no temporary file is left
}

TEST(ProgramStreams, AClosedStreamIsNotTheNextFile) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(run_child([&] {
    ::close(STDOUT_FILENO);
    const ProgramStreams streams;
    const OutputFile file(directory / "file");
    std::printf("not into the file");
    ::_exit(streams.finish(0));
  }));
  EXPECT_EQ(contents(directory / "file"), "");
}

TEST(ProgramStreams, OutputThatCannotBeWrittenIsAnError) {
  for (const bool full : {false, true}) {
    EXPECT_TRUE(run_child([&] {
      int ends[2] = {-1, full ? ::open("/dev/full", O_WRONLY) : -1};
      if (!full && ::pipe(ends) == 0) {
        ::close(ends[0]);  // now there is no reader
      }
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
      const ProgramStreams streams;
      std::printf("text");
      const bool failed = streams.finish(0) == 1 && streams.finish(3) == 3;
      restore_program_signals();
      struct sigaction now {};
      ::sigaction(SIGPIPE, nullptr, &now);
      ::_exit(failed && now.sa_handler == SIG_DFL ? 0 : 1);
    }));
  }
}

TEST(PrintError, SaysMoreThanTheNameOfAnException) {
  ::testing::internal::CaptureStderr();
  print_error(std::bad_alloc());
  print_error(std::runtime_error("a\nb"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "binade: error: out of memory: the system gave no more (ulimit -v, the limits of the "
            "container and other programs count)\nbinade: error: a\\x0ab\n");
}

}  // namespace
}  // namespace binade::program_streams_test
