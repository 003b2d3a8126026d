// Makes locks of run directories, and their owners, for tests.
#pragma once
#include <binade/train/run_directory.h>
#include <binade/train/run_lock_internal.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/train/checkpoint_samples.h"

namespace binade::train {

namespace fs = std::filesystem;

inline RunOwner lock_of(const std::string& run) { return parse_lock(contents(run + "/lock")); }

inline void write_lock(const std::string& path, const RunOwner& owner) {
  std::ofstream(path) << lock_text(owner);
}

inline void set_age(const std::string& path, double seconds) {
  timespec times[2];
  ::clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= static_cast<time_t>(seconds);
  times[1] = times[0];
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// The number of a process that has ended; for now nobody has it.
inline pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return child;
}

// A lock of this process with changes.
inline RunOwner owner_with(const std::function<void(RunOwner&)>& change) {
  RunOwner owner = this_process();
  owner.token = "00000000000000aa";
  change(owner);
  return owner;
}

inline void plant_lock(const std::string& run, const RunOwner& owner) {
  fs::create_directories(run);
  write_lock(run + "/lock", owner);
}

inline std::string error_of_opening(const std::string& run) {
  return error_of([&] { const RunDirectory directory(run, true, false); });
}

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in " << text;
  }
}

}  // namespace binade::train
