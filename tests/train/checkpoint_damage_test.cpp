// Damaged checkpoints are set aside and never hide a better one; those of a newer version are kept.
// Also tests full disks.
// If BINADE_LONG is set, the long form runs.
#include <binade/core/io/crc32c.h>
#include <binade/train/checkpoint_store.h>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/child_process.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/full_run.h"

namespace binade::train::checkpoint_damage_test {
namespace {

using binade::testing::run_child;
using binade::testing::TemporaryDirectory;

TEST(Damage, WhatCannotBeReadStays) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  for (const int64_t step : {90, 180, 270}) {
    save(store, step);
    if (step < 270) {
      store.save_best(step, files_of(step), {{"seed", "7"}});
    }
  }
  flip(store.path() + "/step-00000270/model.safetensors");
  flip(store.path() + "/step-00000180/manifest.json");
  flip(store.path() + "/best/optimizer.safetensors");
  const auto before = tree(directory.path());
  const std::string error = error_of([&] { CheckpointStore(directory.path()).newest_verified(); });
  for (const char* part :
       {"no checkpoint that can be read", "step-00000270: ", "step-00000180: ", "best: ",
        "model.safetensors: the checksum is wrong", "nothing was changed", "--overwrite"}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in " << error;
  }
  EXPECT_EQ(tree(directory.path()), before);

  flip(store.path() + "/best/optimizer.safetensors");  // repaired: now the only good one
  make_directories(store.path() + "/step-00000270.damaged");
  CheckpointStore resumed(directory.path());
  const auto found = resumed.newest_verified();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, store.path() + "/best");
  expect_whole(*found);
  EXPECT_EQ(resumed.take_warnings().size(), 2u);
  EXPECT_EQ(names_in(store.path()), (Names{"best", "step-00000180.damaged", "step-00000270.damaged",
                                           "step-00000270.damaged-2"}));
  EXPECT_EQ(contents(store.path() + "/step-00000270.damaged-2/model.safetensors"),
            before.at(store.path() + "/step-00000270/model.safetensors"));
  for (const int64_t step : {270, 360, 450}) {
    save(resumed, step);
  }
  EXPECT_EQ(names_in(store.path()).size(), 6u) << "what was set aside is never deleted";
}

TEST(Damage, TheBestIsACandidateAndADamagedOneIsSetAside) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  save(store, 90);
  store.save_best(180, files_of(180), {{"seed", "7"}});  // then the process ended before save(180)
  EXPECT_EQ(CheckpointStore(directory.path()).newest_verified()->step, 180);
  save(store, 180);
  EXPECT_EQ(CheckpointStore(directory.path()).newest_verified()->path,
            store.path() + "/step-00000180");
  flip(store.path() + "/best/model.safetensors");
  CheckpointStore resumed(directory.path());
  EXPECT_EQ(resumed.newest_verified()->step, 180);
  EXPECT_FALSE(resumed.best_verified());
  ASSERT_EQ(resumed.take_warnings().size(), 1u);
  resumed.save_best(270, files_of(270), {{"seed", "7"}});
  EXPECT_EQ(names_in(store.path()),
            (Names{"best", "best.damaged", "step-00000090", "step-00000180"}));
}

// Something that is not a good checkpoint occupies the name of the new one.
TEST(Damage, SavingSetsAsideWhatItCannotRead) {
  const TemporaryDirectory directory;
  const std::string path = directory / "checkpoint";
  make_directories(path + "/step-00000001");
  write_file_durably(path + "/step-00000001/precious", "p");
  {
    CheckpointStore store(directory.path());
    flip(store.save_best(2, files_of(2)).path + "/model.safetensors");
  }
  CheckpointStore store(directory.path());
  save(store, 1);
  store.save_best(3, files_of(3), {{"seed", "7"}});
  EXPECT_EQ(contents(path + "/step-00000001.damaged/precious"), "p");
  EXPECT_EQ(names_in(path),
            (Names{"best", "best.damaged", "step-00000001", "step-00000001.damaged"}));
}

TEST(Damage, ANewerFormatIsRefusedAndNeverTouched) {
  // Compact manifests with sorted names; the checksum, computed from this form, is left out.
  const std::pair<std::string, const char*> kCases[] = {
      {R"({"fields":{},"files":{},"format":"binade checkpoint 3","step":2})",
       "written by a newer Binade (format 3; this one reads 2)"},
      {R"({"format":"binade checkpoint 12","parts":[1,2]})",
       "written by a newer Binade (format 12; this one reads 2)"},
      {R"({"features":["compressed"],"fields":{},"files":{},"format":"binade checkpoint 2","step":2})",
       "written by a newer Binade (feature \"compressed\""}};
  for (const auto& [rest, expected] : kCases) {
    SCOPED_TRACE(rest);
    const TemporaryDirectory directory;
    {
      CheckpointStore store(directory.path());
      save(store, 1);
      char checksum[32];
      std::snprintf(checksum, sizeof checksum, ",\"checksum\":\"%08x\"}",
                    crc32c(std::as_bytes(std::span(rest.data(), rest.size()))));
      std::ofstream(save(store, 2).path + "/manifest.json")
          << rest.substr(0, rest.size() - 1) << checksum;
    }
    const auto before = tree(directory / "checkpoint/step-00000002");
    CheckpointStore store(directory.path());
    const std::string error = error_of([&] { store.newest_verified(); });
    EXPECT_NE(error.find(expected), std::string::npos) << error;
    EXPECT_NE(error_of([&] { save(store, 2); }).find(expected), std::string::npos);
    EXPECT_EQ(names_in(store.path()), (Names{"step-00000001", "step-00000002"}));
    for (const int64_t step : {3, 4, 5}) {
      save(store, step);
    }
    EXPECT_EQ(tree(directory / "checkpoint/step-00000002"), before);
    EXPECT_EQ(store.newest_verified()->step, 5);
  }
}

// After random bit flips, the newest undamaged checkpoint, or a newer one, is found.
TEST(Damage, RandomFlips) {
  const TemporaryDirectory directory;
  {
    CheckpointStore store(directory / "original", 3);
    for (const int64_t step : {1, 2, 3}) {
      save(store, step);
      if (step == 2) {
        store.save_best(step, files_of(step), {{"seed", "7"}});
      }
    }
  }
  const auto original = tree(directory / "original");
  std::vector<std::string> files;
  for (const auto& [path, bytes] : original) {
    if (!bytes.empty()) {
      files.push_back(path);
    }
  }
  std::mt19937 random(41);
  int unreadable = 0;
  for (int round = 0; round < (std::getenv("BINADE_LONG") ? 1000 : 40); ++round) {
    const std::string run = directory / "run";
    std::filesystem::copy(directory / "original", run, std::filesystem::copy_options::recursive);
    std::map<std::string, int64_t> good{
        {"best", 2}, {"step-00000001", 1}, {"step-00000002", 2}, {"step-00000003", 3}};
    for (auto flips = random() % 8 + 1; flips > 0; --flips) {
      const std::string& file = files[random() % files.size()];
      std::string bytes = original.at(file);
      const size_t bit = random() % (bytes.size() * 8);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      const std::string below = file.substr((directory / "original").size());
      std::ofstream(run + below, std::ios::binary) << bytes;
      good.erase(std::filesystem::path(below).parent_path().filename().native());
    }
    int64_t newest_good = 0;
    for (const auto& [name, step] : good) {
      newest_good = std::max(newest_good, step);
    }
    try {
      CheckpointStore store(run);
      const auto found = store.newest_verified();
      ASSERT_TRUE(found);
      EXPECT_EQ(found->step, newest_good) << round;
      expect_whole(*found);
      save(store, 4);
      EXPECT_EQ(CheckpointStore(run).newest_verified()->step, 4);
    } catch (const Error& error) {
      EXPECT_TRUE(good.empty()) << round << ": " << error.what();
      ++unreadable;
    }
    std::filesystem::remove_all(run);
  }
  std::printf("%d directories without a good checkpoint\n", unreadable);
}

// SIGXFSZ would end the process without a message.
TEST(Disk, AFileSizeLimitIsAnError) {
  const TemporaryDirectory directory;
  CheckpointStore store(directory.path());
  save(store, 1);
  EXPECT_TRUE(run_child([&] {
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string bytes(5000, 'x');
    const CheckpointFile kLarge[] = {
        {"model", bytes.size(), [&](OutputFile& out) { out.write(bytes); }}};
    const std::string error = error_of([&] { store.save(2, kLarge); });
    ::_exit(error.find("cannot write 4000 bytes at byte 1000: File too large") != std::string::npos
                ? 0
                : 1);
  }));
  EXPECT_EQ(names_in(store.path()), Names{"step-00000001"});
  expect_whole(*store.newest_verified());
}

// Users load the weights of a checkpoint, or of a copy, without its manifest.
TEST(Damage, TheWeightsOfACheckpointHaveChecksumsOfTheirOwn) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run", copy = directory / "copy.safetensors";
  FullRun full(run, false, {});
  EXPECT_TRUE(full.fit());
  std::filesystem::copy_file(run + "/checkpoint/best/model.safetensors", copy);
  const std::string bytes = contents(copy);
  EXPECT_FALSE(load_tensors(copy).empty());
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    damaged[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    std::ofstream(copy, std::ios::binary) << damaged;
    EXPECT_THROW(load_tensors(copy), Error) << "flip " << i;
  }
}

// On a disk of 64 MiB, the second checkpoint of a 40 MiB model does not fit beside the first.
TEST(Disk, AFullDiskLeavesTheOldCheckpoint) {
  const TemporaryDirectory directory;
  constexpr int kNotAllowed = 2;
  const auto work = [&]() -> int {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", directory.path().c_str(), "tmpfs", 0, "size=64m") != 0) {
      return kNotAllowed;
    }
    const std::string bytes(40 << 20, 'x');
    const auto write = [&](OutputFile& out) { out.write(bytes); };
    const CheckpointFile kHonest[] = {{"model", bytes.size(), write}},
                         kWrong[] = {{"model", 1, write}};
    CheckpointStore store(directory.path(), 2);
    store.save(1, kHonest);
    const std::string first = error_of([&] { store.save(2, kHonest); });
    const std::string second = error_of([&] { store.save(2, kWrong); });
    const bool good = first.find("need 42074112 bytes, free 2") != std::string::npos &&
                      second.find("No space left on device") != std::string::npos &&
                      names_in(store.path()) == Names{"step-00000001"} &&
                      store.newest_verified()->step == 1;
    return good ? 0 : 1;
  };
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) {
    GTEST_SKIP() << "no right to mount a tmpfs";
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace binade::train::checkpoint_damage_test
