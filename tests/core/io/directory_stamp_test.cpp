// Stamps of directories.
#include <binade/core/io/file_system.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "tests/support/temporary_directory.h"

namespace binade::directory_stamp_test {
namespace {

using testing::TemporaryDirectory;

TEST(DirectoryStamp, ChangesWithTheEntries) {
  const TemporaryDirectory directory;
  make_directories(directory / "a");
  DirectoryStamp before, after;
  const auto change = [&](const std::function<void()>& make) {
    EXPECT_GE(file_system().stamp(directory / "a", before), 0);
    ::usleep(20'000);  // longer than a tick of the clock
    make();
    EXPECT_GE(file_system().stamp(directory / "a", after), 0);
    return before != after;
  };
  EXPECT_FALSE(change([] {}));
  EXPECT_TRUE(change([&] { append_to_file(directory / "a/x", ""); }));
  EXPECT_FALSE(change([&] { append_to_file(directory / "a/x", "bytes"); }));
  EXPECT_TRUE(change([&] { rename_path(directory / "a/x", directory / "a/y"); }));
  EXPECT_TRUE(change([&] { EXPECT_EQ(::unlink((directory / "a/y").c_str()), 0); }));
  EXPECT_TRUE(change([&] { make_directories(directory / "a/b"); }));
  EXPECT_EQ(file_system().stamp("/proc", after), 0);
  EXPECT_EQ(file_system().stamp(directory / "nowhere", after), -1);
  append_to_file(directory / "file", "");
  EXPECT_EQ(file_system().stamp(directory / "file", after), -1);
}

}  // namespace
}  // namespace binade::directory_stamp_test
