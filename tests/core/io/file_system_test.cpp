#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "tests/core/io/faulty_file_system.h"
#include "tests/core/io/model_file_system.h"
#include "tests/support/child_process.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace binade::file_system_test {
namespace {

using testing::Choices;
using testing::Fault;
using testing::FaultyFileSystem;
using testing::ModelFileSystem;
using testing::run_child;
using testing::TemporaryDirectory;

std::string as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string contents(const std::string& path, FileSystem& files) {
  return as_text(read_file(path, 1 << 20, files));
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, PortableAgreesAtAnyLengthAndContinues) {
  std::mt19937 random(1);
  for (size_t length = 0; length < 100; ++length) {
    std::string text(length + 3, '\0');
    for (char& c : text) {
      c = static_cast<char>(random());
    }
    const auto bytes = as_bytes(text).subspan(3);  // unaligned
    const size_t cut = length / 3;
    EXPECT_EQ(crc32c(bytes), crc32c_portable(bytes)) << length;
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), crc32c(bytes)) << length;
  }
}

TEST(FileSystem, ParentDirectory) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a", "."}, {"a/b", "a"}, {"/a", "/"}, {"/", "/"}, {"a/b/", "a"}, {"a//b", "a"}, {"", "."}};
  for (const auto& [path, parent] : kCases) {
    EXPECT_EQ(parent_directory(path), parent) << path;
  }
}

TEST(FileSystem, WritesReadsAndReplaces) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file_durably(path, "old");
  EXPECT_EQ(contents(path, file_system()), "old");
  write_file_durably(path, std::string(3'000'000, 'x'));
  EXPECT_EQ(read_file(path).size(), 3'000'000u);
  append_to_file(path, "anew", file_system(), true);
  append_to_file(path, "+");
  EXPECT_EQ(contents(path, file_system()), "anew+");
  EXPECT_EQ(list_directory(directory.path()).size(), 1u);  // no temporary file is left
}

TEST(FileSystem, OutputFileCountsAndChecksums) {
  const TemporaryDirectory directory;
  OutputFile file(directory / "file");
  file.write("1234");
  file.write("56789");
  EXPECT_EQ(file.size(), 9u);
  EXPECT_EQ(file.checksum(), 0xe3069283u);
  file.finish();
  EXPECT_THROW(file.write("x"), Error);
  EXPECT_THROW(file.finish(), Error);
}

TEST(FileSystem, NewFilesNeverFollowOrReplace) {
  const TemporaryDirectory directory;
  write_file_durably(directory / "victim", "precious");
  ASSERT_EQ(::symlink((directory / "victim").c_str(), (directory / "link").c_str()), 0);
  ASSERT_EQ(::symlink((directory / "nowhere").c_str(), (directory / "dangling").c_str()), 0);
  for (const char* name : {"victim", "link", "dangling"}) {
    const std::string error = error_of([&] { OutputFile file(directory / name); });
    EXPECT_NE(error.find("File exists"), std::string::npos) << error;
  }
  write_file_durably(directory / "link", "new");  // replaces the link, not its target
  EXPECT_EQ(contents(directory / "victim", file_system()), "precious");
  EXPECT_EQ(contents(directory / "link", file_system()), "new");
}

TEST(FileSystem, NoLinkIsFollowedBelowARoot) {
  const TemporaryDirectory directory;
  make_directories(directory / "elsewhere/deep");
  write_file_durably(directory / "elsewhere/precious", "p");
  make_directories(directory / "real");
  make_directories(directory / "root2");
  ASSERT_EQ(::symlink("real", (directory / "root").c_str()), 0);  // the root may be a link
  ASSERT_EQ(::symlink("../elsewhere", (directory / "real/link").c_str()), 0);
  ASSERT_EQ(::symlink("../elsewhere/precious", (directory / "real/file").c_str()), 0);
  const std::unique_ptr<FileSystem> files = file_system_below(directory / "root/");
  const std::string root = directory / "root";
  make_directories(root + "/a/b", *files);
  write_file_durably(root + "/a/b/file", "x", *files);
  EXPECT_EQ(contents(directory / "real/a/b/file", file_system()), "x");
  write_file_durably(directory / "root2/file", "beside", *files);  // not below the root
  EXPECT_EQ(contents(directory / "root2/file", *files), "beside");

  const std::function<void()> kFollow[] = {
      [&] { read_file(root + "/file", 100, *files); },
      [&] { read_file(root + "/link/precious", 100, *files); },
      [&] { list_directory(root + "/link", *files); },
      [&] { sync_directory(root + "/link", *files); },
      [&] { append_to_file(root + "/file", "x", *files, true); },
      [&] { write_file_durably(root + "/link/new", "x", *files); },
      [&] { make_new_directory(root + "/link/new", *files); },
      [&] { rename_path(root + "/link/precious", root + "/a/stolen", *files); },
      [&] { rename_path(root + "/a/b/file", root + "/link/new", *files); },
      [&] {
        remove_path({"precious", false, true}, root + "/link", *files);
      },
      [&] {
        remove_path({"deep", true, false}, root + "/link", *files);
      }};
  for (size_t i = 0; i < std::size(kFollow); ++i) {
    const std::string error = error_of(kFollow[i]);
    EXPECT_NE(error.find("it is a link, which is not followed here"), std::string::npos)
        << i << ": " << error;
  }
  EXPECT_THROW(read_file(root + "/a/../a/b/file", 100, *files), FileError);
  EXPECT_EQ(list_directory(directory / "elsewhere").size(), 2u);
  EXPECT_EQ(contents(directory / "elsewhere/precious", file_system()), "p");
}

TEST(FileSystem, TemporaryNamesAndFreeNames) {
  const TemporaryDirectory directory;
  write_file_durably(directory / "file", [&](OutputFile& out) {
    const std::string name = out.path().substr(out.path().rfind('/') + 1);
    EXPECT_EQ(name.find("file." + process_token() + "-"), 0u) << name;
  });
  EXPECT_NE(unpredictable_name(), unpredictable_name());
  const std::string token = process_token();
  EXPECT_TRUE(run_child([&] { ::_exit(process_token() == token ? 1 : 0); }));  // a name of its own
  EXPECT_EQ(write_new_file_durably(directory / "file", "second"), directory / "file-2");
  EXPECT_EQ(contents(directory / "file", file_system()), "");
  make_directories(directory / "d");
  make_directories(directory / "e");
  EXPECT_EQ(rename_to_free_name(directory / "d", directory / "e"), directory / "e-2");
  EXPECT_EQ(list_directory(directory.path()).size(), 4u);
}

TEST(FileSystem, ErrorsNameThePathAndTheReason) {
  const TemporaryDirectory directory;
  write_file_durably(directory / "file", "12345");
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  const std::pair<std::string, std::string> kCases[] = {
      {error_of([&] { read_file(directory / "absent"); }),
       "/absent: cannot open the file: No such file"},
      {error_of([&] { read_file(directory.path()); }),
       ": cannot open the file (it is a directory, not a regular file): Is a directory"},
      {error_of([&] { read_file(directory / "fifo"); }), "(it is a FIFO, not a regular file)"},
      {error_of([&] { read_file(directory / "file", 4); }),
       "/file: the file has 5 bytes, expected at most 4"},
      {error_of([&] { write_file_durably(directory / "no/file", "x"); }), "No such file"},
      {error_of([&] { make_directories(directory / "file"); }),
       "/file: cannot list the directory: Not a dir"},
      {error_of([&] { make_directories(directory / "file/sub"); }), "Not a directory"},
      {error_of([&] { list_directory(directory / "absent"); }), "No such file"},
  };
  for (const auto& [error, part] : kCases) {
    EXPECT_NE(error.find(part), std::string::npos) << error << " lacks " << part;
    EXPECT_EQ(error.find(directory.path()), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(FileSystem, ReadingPastTheEndIsAnError) {
  const TemporaryDirectory directory;
  write_file_durably(directory / "file", "0123456789");
  const InputFile file(directory / "file");
  std::byte bytes[4];
  file.read(6, bytes);
  EXPECT_EQ(static_cast<char>(bytes[3]), '9');
  EXPECT_THROW(file.read(7, bytes), Error);
  EXPECT_THROW(file.read(uint64_t{1} << 62, bytes), Error);
  ASSERT_EQ(::truncate((directory / "file").c_str(), 3), 0);
  EXPECT_THROW(file.read(0, bytes), Error);  // throws where a memory map would raise a signal
}

TEST(FileSystem, MakesParentsAndListsSorted) {
  const TemporaryDirectory directory;
  make_directories(directory / "a/b/c");
  make_directories(directory / "a/b/c");
  write_file_durably(directory / "a/z", "");
  write_file_durably(directory / "a/a", "");
  const auto entries = list_directory(directory / "a");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_TRUE(entries[1].is_directory);
  EXPECT_TRUE(entries[2].is_file);
  remove_path(entries[0], directory / "a");
  EXPECT_EQ(list_directory(directory / "a").size(), 2u);
  EXPECT_THROW(remove_path(entries[1], directory / "a"), FileError);  // not empty
}

// --- power cuts ---

using Replace = std::function<void(const std::string&, const std::string&, FaultyFileSystem&)>;

// Counts the states after a power cut at or after any call of the replacement that break the
// promise: the file is all old or all new, and new once the replacement has returned. `states`
// counts all states.
int broken_states(const Replace& replace, int* states) {
  int broken = 0;
  bool done = false;
  for (int64_t cut = 0; !done; ++cut) {
    ModelFileSystem disk;
    write_file_durably("file", "old contents", disk);
    FaultyFileSystem files(disk, {Fault::kPowerCut, cut});
    try {
      replace("file", "new, longer contents", files);
      done = true;
    } catch (const FileError&) {
    }
    Choices choices;
    do {
      const auto after = disk.crash(std::ref(choices));
      std::string found = "nothing";
      try {
        found = contents("file", *after);
      } catch (const Error&) {
      }
      const bool is_new = found == "new, longer contents";
      broken += !(is_new || (found == "old contents" && !done));
      ++*states;
    } while (choices.advance());
  }
  return broken;
}

void replace_durably(const std::string& path, const std::string& bytes, FaultyFileSystem& files) {
  write_file_durably(path, bytes, files);
}

TEST(PowerCut, DurableReplacementHoldsInEveryState) {
  int states = 0;
  EXPECT_EQ(broken_states(replace_durably, &states), 0);
  EXPECT_GT(states, 15);
}

TEST(PowerCut, KnownBadProtocolsAreFound) {
  const auto in_place = [](const std::string& path, const std::string& bytes,
                           FaultyFileSystem& files) {
    files.remove_file(path);
    OutputFile file(path, files);
    file.write(bytes);
    file.finish();
    sync_directory(".", files);
  };
  const auto unlink_first = [](const std::string& path, const std::string& bytes,
                               FaultyFileSystem& files) {
    OutputFile file("temporary", files);
    file.write(bytes);
    file.finish();
    files.remove_file(path);
    rename_path("temporary", path, files);
    sync_directory(".", files);
  };
  const auto no_file_sync = [](const std::string& path, const std::string& bytes,
                               FaultyFileSystem& files) {
    files.skip_file_sync = true;
    write_file_durably(path, bytes, files);
  };
  const auto no_directory_sync = [](const std::string& path, const std::string& bytes,
                                    FaultyFileSystem& files) {
    files.skip_directory_sync = true;
    write_file_durably(path, bytes, files);
  };
  int states = 0;
  EXPECT_GT(broken_states(in_place, &states), 0);
  EXPECT_GT(broken_states(unlink_first, &states), 0);
  EXPECT_GT(broken_states(no_file_sync, &states), 0);
  EXPECT_GT(broken_states(no_directory_sync, &states), 0);
}

// --- faults ---

TEST(Faults, AnErrorAtAnyCallLeavesTheOldFile) {
  for (const int code : {ENOSPC, EIO, EDQUOT, EROFS}) {
    for (const Fault::Kind kind : {Fault::kError, Fault::kErrorOnwards}) {
      for (int64_t at = 0;; ++at) {
        ModelFileSystem disk;
        write_file_durably("file", "old", disk);
        FaultyFileSystem files(disk, {kind, at, code});
        const std::string error = error_of([&] { write_file_durably("file", "new", files); });
        if (!files.hit()) {
          EXPECT_GE(at, 5);  // create, write, sync, close, rename, sync of the directory
          break;
        }
        const bool only_last_sync = at == 5;
        EXPECT_EQ(contents("file", disk), only_last_sync ? "new" : "old") << at;
        EXPECT_EQ(error.find(only_last_sync ? ".: cannot sync" : "file"), 0u) << error;
        EXPECT_NE(error.find(std::generic_category().message(code)), std::string::npos) << error;
        EXPECT_TRUE(kind == Fault::kErrorOnwards || list_directory(".", disk).size() == 1) << at;
      }
    }
  }
}

TEST(Faults, InterruptsAndShortCallsAreRepeated) {
  for (const Fault::Kind kind : {Fault::kInterrupt, Fault::kShort}) {
    bool hit = true;
    for (int64_t at = 0; hit; ++at) {
      ModelFileSystem disk;
      FaultyFileSystem files(disk, {kind, at});
      write_file_durably("file", "new contents", files);
      EXPECT_EQ(contents("file", files), "new contents") << at;
      hit = files.hit();
    }
  }
}

TEST(Faults, ErrorsTellTheBytesAndThePosition) {
  ModelFileSystem disk;
  FaultyFileSystem files(disk, {Fault::kError, 2, ENOSPC});
  OutputFile file("file", files);
  file.write("12345");
  try {
    file.write("678");
    FAIL() << "expected an error";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "file: cannot write 3 bytes at byte 5: No space left on device");
    EXPECT_EQ(error.code(), ENOSPC);
  }
}

TEST(Faults, AWriteThatDoesNothingIsAnErrorNotALoop) {
  class Stuck : public ModelFileSystem {
    int64_t write(int, const void*, size_t) override { return 0; }
  };
  Stuck files;
  EXPECT_THROW(write_file_durably("file", "x", files), FileError);
}

// --- killed processes ---

TEST(Kill, AtEveryCall) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  write_file_durably(path, "old");
  int64_t at = 0;
  while (!run_child([&] {
    FaultyFileSystem files(file_system(), {Fault::kKill, at});
    write_file_durably(path, "new", files);
  })) {
    EXPECT_EQ(contents(path, file_system()), at <= 4 ? "old" : "new") << at;
    ++at;
  }
  EXPECT_EQ(at, 6);
  EXPECT_EQ(contents(path, file_system()), "new");
}

TEST(Kill, AtRandomMoments) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  std::mt19937 random(7);
  write_file_durably(path, std::string(100'000, 'a'));
  for (int round = 0; round < 50; ++round) {
    run_child(
        [&] {
          for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
            write_file_durably(path, std::string(100'000, c));
          }
        },
        1 + random() % 10'000);
    const std::string found = contents(path, file_system());
    ASSERT_EQ(found.size(), 100'000u);
    EXPECT_EQ(found, std::string(100'000, found[0]));
  }
}

}  // namespace
}  // namespace binade::file_system_test
