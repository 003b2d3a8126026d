#include <binade/core/io/crc32c.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/checkpoint_store.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/core/io/model_file_system.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"

namespace binade::train::checkpoint_store_test {
namespace {

using binade::testing::ModelFileSystem;
using binade::testing::TemporaryDirectory;

TEST(CheckpointStore, SavesAndFindsTheNewest) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory / "run");
  EXPECT_FALSE(store.newest_verified());
  EXPECT_FALSE(store.best_verified());
  const Checkpoint saved = save(store, 20);
  EXPECT_EQ(saved.path, directory / "run/checkpoint/step-00000020");
  EXPECT_EQ(names_in(saved.path),
            (Names{"manifest.json", "model.safetensors", "optimizer.safetensors"}));
  const auto found = CheckpointStore(directory / "run").newest_verified();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 20);
  EXPECT_EQ(found->fields, (std::map<std::string, std::string>{{"epoch", "2"}, {"seed", "7"}}));
  EXPECT_EQ(found->files.at("optimizer.safetensors"), optimizer_of(20).size());
  expect_whole(*found);
  EXPECT_THROW(found->file("other"), Error);
  EXPECT_TRUE(store.take_warnings().empty());
}

TEST(CheckpointStore, KeepsTwoAndWhatWasLoadedAndTheBest) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  for (const int64_t step : {10, 20, 30}) {
    save(store, step);
  }
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{20, 30}));
  store.save_best(20, files_of(20), {{"seed", "7"}});
  CheckpointStore resumed(directory.path());
  ASSERT_EQ(resumed.newest_verified()->step, 30);
  for (const int64_t step : {40, 50, 60, 123456789}) {
    save(resumed, step);
  }
  EXPECT_EQ(resumed.steps(), (std::vector<int64_t>{30, 60, 123456789}));
  resumed.save_best(60, files_of(60), {{"seed", "7"}});
  EXPECT_EQ(resumed.best_verified()->step, 60);
  expect_whole(*resumed.best_verified());
  EXPECT_EQ(names_in(resumed.path()),
            (Names{"best", "step-00000030", "step-00000060", "step-123456789"}));
  EXPECT_TRUE(resumed.take_warnings().empty());
}

TEST(CheckpointStore, SavesOverTheSameStepAndOverTheLoadedOne) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  save(store, 5);
  ASSERT_TRUE(store.newest_verified());
  const InputFile reader(store.path() + "/step-00000005/model.safetensors");
  store.save(5, std::vector<CheckpointFile>{{"other", 1, [](OutputFile& out) { out.write("x"); }}});
  EXPECT_EQ(store.newest_verified()->files.size(), 1u);
  EXPECT_EQ(names_in(store.path()), Names{"step-00000005"});
  std::byte byte[1];
  reader.read(0, byte);  // an open handle still reads the old file
  EXPECT_EQ(static_cast<char>(byte[0]), 'm');
}

TEST(CheckpointStore, FallsBackPastDamageWithAWarning) {
  struct Case {
    const char* part;
    std::function<void(const std::string&)> damage;
  };
  const Case kCases[] = {
      {"model.safetensors: the checksum is wrong",
       [](const std::string& c) { flip(c + "/model.safetensors"); }},
      {"model.safetensors: the file has 3 bytes, expected",
       [](const std::string& c) {
         ASSERT_EQ(::truncate((c + "/model.safetensors").c_str(), 3), 0);
       }},
      {"optimizer.safetensors: cannot open the file: No such file",
       [](const std::string& c) {
         ASSERT_EQ(::unlink((c + "/optimizer.safetensors").c_str()), 0);
       }},
      {"manifest.json: cannot open the file: No such file",
       [](const std::string& c) { ASSERT_EQ(::unlink((c + "/manifest.json").c_str()), 0); }},
      {"manifest.json: ", [](const std::string& c) { flip(c + "/manifest.json"); }},
      {"manifest.json: ",
       [](const std::string& c) { ASSERT_EQ(::truncate((c + "/manifest.json").c_str(), 0), 0); }},
      {"manifest.json: the manifest is damaged",  // not of a newer version
       [](const std::string& c) {
         std::string text = contents(c + "/manifest.json");
         text.replace(text.find("checkpoint 2"), 12, "checkpoint 3");
         std::ofstream(c + "/manifest.json") << text;
       }},
      {"the manifest is of step 1",
       [](const std::string& c) {
         std::filesystem::remove_all(c);
         std::filesystem::copy(c.substr(0, c.size() - 1) + "1", c);
       }},
  };
  for (const Case& test : kCases) {
    const TemporaryDirectory directory;
    CheckpointStore store(directory.path());
    save(store, 1);
    test.damage(save(store, 2).path);
    CheckpointStore resumed(directory.path());
    const auto found = resumed.newest_verified();
    ASSERT_TRUE(found) << test.part;
    EXPECT_EQ(found->step, 1);
    expect_whole(*found);
    const std::vector<std::string> warnings = resumed.take_warnings();
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("step-00000002 is skipped and kept as step-00000002.damaged"),
              std::string::npos)
        << warnings[0];
    EXPECT_NE(warnings[0].find(test.part), std::string::npos) << warnings[0];
    save(resumed, 3);
    save(resumed, 4);
    EXPECT_EQ(resumed.newest_verified()->step, 4);
    EXPECT_EQ(names_in(resumed.path()),
              (Names{"step-00000001", "step-00000002.damaged", "step-00000003", "step-00000004"}));
  }
}

TEST(CheckpointStore, ReadsTheFormatBefore) {
  Manifest old{.step = 7, .fields = {{"a", "b"}}, .files = {}, .features = {}, .format = 1};
  EXPECT_EQ(manifest_text(old).find("features"), std::string::npos);
  EXPECT_EQ(parse_manifest("m", manifest_text(old)).step, 7);
  old.step = std::numeric_limits<int64_t>::max() - 2;
  EXPECT_NE(error_of([&] { parse_manifest("m", manifest_text(old)); }).find("expected 0 to"),
            std::string::npos);
}

TEST(CheckpointStore, AFlippedByteAnywhereInALargeFileIsFound) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  const std::string bytes((2 << 20) + 77, 'x');
  const CheckpointFile kLarge[] = {
      {"model", bytes.size(), [&](OutputFile& out) { out.write(bytes); }}};
  const std::string path = store.save(1, kLarge).path;
  EXPECT_EQ(store.verify(path).step, 1);
  for (const size_t at : {size_t{0}, (size_t{1} << 20) - 1, size_t{1} << 20, (size_t{2} << 20) - 1,
                          size_t{2} << 20, bytes.size() - 1}) {
    for (const char value : {'y', 'x'}) {
      std::fstream file(path + "/model", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(at)).put(value);
      file.close();
      const std::string error = error_of([&] { store.verify(path); });
      EXPECT_EQ(error.find("the checksum is wrong") != std::string::npos, value == 'y') << at;
    }
  }
}

TEST(CheckpointStore, NothingOutsideIsReachedThroughALink) {
  const TemporaryDirectory directory;
  make_directories(directory / "elsewhere/best");
  write_file_durably(directory / "elsewhere/best/precious", "p");
  make_directories(directory / "run");
  ASSERT_EQ(::symlink("../elsewhere", (directory / "run/checkpoint").c_str()), 0);
  const std::string error = error_of([&] { CheckpointStore(directory / "run"); });
  EXPECT_NE(error.find("it is a link"), std::string::npos) << error;

  ASSERT_EQ(::unlink((directory / "run/checkpoint").c_str()), 0);
  ASSERT_EQ(::symlink("run", (directory / "alias").c_str()), 0);  // of the run itself: fine
  CheckpointStore store(directory / "alias");
  save(store, 1);
  const std::string checkpoint = save(store, 2).path;
  ASSERT_EQ(::unlink((checkpoint + "/model.safetensors").c_str()), 0);
  std::ofstream(directory / "elsewhere/model") << model_of(2);
  ASSERT_EQ(::symlink((directory / "elsewhere/model").c_str(),
                      (checkpoint + "/model.safetensors").c_str()),
            0);
  EXPECT_EQ(store.newest_verified()->step, 1) << "the right bytes, but behind a link";
  ASSERT_EQ(::symlink((directory / "elsewhere").c_str(),
                      (directory / "run/checkpoint/step-00000003").c_str()),
            0);
  EXPECT_THROW(save(store, 3), Error);
  EXPECT_EQ(names_in(directory / "elsewhere"), (Names{"best", "model"}));
  EXPECT_EQ(contents(directory / "elsewhere/best/precious"), "p");
}

TEST(CheckpointStore, ADamagedCheckpointDoesNotCountAsKept) {
  const TemporaryDirectory directory;
  {
    CheckpointStore store(directory.path());
    save(store, 1);
    std::ofstream(save(store, 2).path + "/model.safetensors") << "damaged";
  }
  CheckpointStore store(directory.path());
  save(store, 3);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 3}));  // the two good checkpoints
  EXPECT_EQ(contents(store.path() + "/step-00000002.damaged/model.safetensors"), "damaged");
  save(store, 4);
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{3, 4}));
}

TEST(CheckpointStore, EveryFlippedManifestBitIsFound) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  const std::string path = save(store, 1).path;
  const std::string manifest = contents(path + "/manifest.json");
  for (size_t bit = 0; bit < manifest.size() * 8; ++bit) {
    std::string damaged = manifest;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    std::ofstream(path + "/manifest.json", std::ios::binary) << damaged;
    EXPECT_THROW(store.verify(path), Error) << bit;
  }
}

TEST(CheckpointStore, RefusesHostileManifests) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  const std::string path = save(store, 1).path;
  const std::string deep(1'000'000, '[');
  const std::string kTexts[] = {
      "",
      "{",
      "[]",
      "null",
      "{}",
      deep,
      "{\"x\":" + deep + std::string(deep.size(), ']') + "}",
      R"({"format":1})",
      R"({"format":"binade checkpoint 1"})",
      R"({"format":"binade checkpoint 1","step":1,"fields":{},"files":{},"checksum":"00000000"})",
      R"({"format":"binade checkpoint 1","step":1,"fields":{},"files":{"../x":{}}})",
      R"({"format":"binade checkpoint 1","step":1,"fields":{},"files":{"x":{"bytes":-1}}})",
      R"({"format":"binade checkpoint 1","step":-1,"fields":{},"files":[1]})"};
  for (const std::string& text : kTexts) {
    std::ofstream(path + "/manifest.json", std::ios::binary) << text;
    EXPECT_THROW(store.verify(path), Error) << text.substr(0, 100);
  }
}

TEST(CheckpointStore, NeverDeletesWhatIsNotItsOwn) {
  const TemporaryDirectory directory;
  const std::string path = directory / "checkpoint";
  make_directories(path + "/step-00000001");  // from another program: no manifest
  write_file_durably(path + "/step-00000001/precious", "p");
  make_directories(path + "/step-2");  // not one of our names
  make_directories(path + "/step-00000002x.tmp");
  make_directories(path + "/notes.tmp");
  for (const char* leftover : {"/step-00000001.tmp", "/step-00000007.0123456789abcdef.tmp"}) {
    make_directories(path + leftover);  // looks like a leftover, but nothing says that it is ours
    write_file_durably(path + leftover + "/model.safetensors", "p");
  }
  const std::string mixed = path + "/step-00000008.0123456789abcdef.tmp";
  make_directories(mixed);
  write_file_durably(mixed + "/files.json", list_text({"model.safetensors"}));
  write_file_durably(mixed + "/model.safetensors", "ours");
  write_file_durably(mixed + "/notes.txt", "of the user");
  write_file_durably(path + "/step-00000003", "a file");
  make_directories(directory / "elsewhere");
  write_file_durably(directory / "elsewhere/precious", "p");
  ASSERT_EQ(::symlink((directory / "elsewhere").c_str(), (path + "/step-00000004").c_str()), 0);
  ASSERT_EQ(::symlink((directory / "elsewhere").c_str(), (path + "/step-00000005.tmp").c_str()), 0);
  const Names before = names_in(path);

  CheckpointStore store(directory.path());
  for (int64_t step = 10; step < 14; ++step) {
    save(store, step);
  }
  write_file_durably(path + "/step-00000012/notes.txt", "of the user");
  save(store, 14);
  save(store, 15);
  for (const std::string& name : before) {
    EXPECT_TRUE(std::filesystem::exists(path + "/" + name)) << name;
  }
  EXPECT_EQ(contents(path + "/step-00000001/precious"), "p");
  EXPECT_EQ(contents(directory / "elsewhere/precious"), "p");
  EXPECT_EQ(contents(path + "/step-00000012/notes.txt"), "of the user");
  EXPECT_EQ(store.steps(), (std::vector<int64_t>{1, 12, 14, 15}));
  EXPECT_EQ(contents(path + "/step-00000001.tmp/model.safetensors"), "p");
  EXPECT_EQ(contents(mixed + "/notes.txt"), "of the user");
  EXPECT_EQ(store.take_warnings().size(), 5u);  // 1, 12 and three temporary ones are kept
}

TEST(CheckpointStore, RemovesWhatAnInterruptedSaveLeft) {
  const TemporaryDirectory directory;
  const std::string path = directory / "checkpoint";
  {
    CheckpointStore store(directory.path());
    save(store, 1);
  }
  const std::string list = list_text({"manifest.json", "model.safetensors"});
  const std::string begun = path + "/step-00000002.0123456789abcdef.tmp";
  make_directories(begun);
  write_file_durably(begun + "/files.json", list);
  write_file_durably(begun + "/model.safetensors", "half");
  make_directories(path + "/step-00000003.0123456789abcdef.tmp");
  write_file_durably(path + "/step-00000003.0123456789abcdef.tmp/files.json", list.substr(0, 20));
  make_directories(path + "/best.0123456789abcdef.tmp");
  rename_path(path + "/step-00000001", path + "/step-00000001.0123456789abcdef.old");
  CheckpointStore store(directory.path());
  EXPECT_EQ(names_in(path), Names{"step-00000001"});
  EXPECT_EQ(store.newest_verified()->step, 1);
}

TEST(CheckpointStore, ChecksSpaceFirst) {
  ModelFileSystem disk;
  disk.make_directory("run");
  CheckpointStore store("run", 2, disk);
  save(store, 1);
  disk.free = 100'000;
  const CheckpointFile kLarge[] = {{"model", 10'000'000, [](OutputFile&) { FAIL(); }}};
  try {
    store.save(2, kLarge);
    ADD_FAILURE();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), ENOSPC);
    const std::string what = error.what();
    EXPECT_NE(what.find("need 10131072 bytes, free 100000"), std::string::npos) << what;
  }
  EXPECT_EQ(names_in("run/checkpoint", disk), Names{"step-00000001"});
}

TEST(CheckpointStore, AFailingWriterLeavesNothing) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  save(store, 1);
  std::vector<CheckpointFile> files = files_of(2);
  files[1].write = [](OutputFile& out) {
    out.write("half");
    fail("the tensor is gone");
  };
  EXPECT_THROW(store.save(2, files), Error);
  EXPECT_THROW(store.save(1, files), Error);
  EXPECT_THROW(store.save_best(1, files), Error);
  EXPECT_EQ(names_in(store.path()), Names{"step-00000001"});
  expect_whole(*store.newest_verified());
}

TEST(CheckpointStore, RefusesBadArguments) {
  const TemporaryDirectory directory;
  EXPECT_THROW(CheckpointStore(directory.path(), 0), Error);
  CheckpointStore store(directory.path());
  EXPECT_THROW(save(store, -1), Error);
  const auto write = [](OutputFile& out) { out.write("x"); };
  for (const char* name : {"", ".", "..", "a/b", "/etc/x", "manifest.json", "files.json"}) {
    EXPECT_THROW(store.save(1, std::vector<CheckpointFile>{{name, 1, write}}), Error) << name;
  }
  EXPECT_THROW(store.save(1, std::vector<CheckpointFile>{{"a", 1, write}, {"a", 1, write}}), Error);
  EXPECT_THROW(store.save(1, files_of(1), {{"bad", "\xff"}}), Error);
  EXPECT_TRUE(names_in(store.path()).empty());
}

}  // namespace
}  // namespace binade::train::checkpoint_store_test
