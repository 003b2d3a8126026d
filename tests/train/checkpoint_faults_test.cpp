#include <binade/core/io/crc32c.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/checkpoint_store.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <random>

#include "tests/core/io/faulty_file_system.h"
#include "tests/core/io/model_file_system.h"
#include "tests/support/child_process.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"

namespace binade::train {
namespace {

using binade::testing::Fault;
using binade::testing::FaultyFileSystem;
using binade::testing::ModelFileSystem;
using binade::testing::run_child;
using binade::testing::TemporaryDirectory;

using Save = std::function<void(CheckpointStore&, int64_t step, FaultyFileSystem&)>;

void save_normally(CheckpointStore& store, int64_t step, FaultyFileSystem&) { save(store, step); }

// Cuts the power at every call of save(step), with checkpoints of steps 1 and 2 on disk. Counts the
// states in which the newest good checkpoint is not a complete one of step 2 or later, or, after
// save returned, not the one of `step`.
int broken_states(const Save& save_step, int64_t step, int* states) {
  int broken = 0;
  bool done = false;
  std::mt19937 random(23);
  for (int64_t cut = 0; !done; ++cut) {
    ModelFileSystem disk;
    disk.make_directory("run");
    disk.sync_directory(".");
    {
      CheckpointStore store("run", 2, disk);
      save(store, 1);
      save(store, 2);
    }
    FaultyFileSystem files(disk, {Fault::kPowerCut, cut});
    try {
      CheckpointStore store("run", 2, files);
      store.newest_verified();
      save_step(store, step, files);
      done = !files.hit();
    } catch (const Error&) {
    }
    for (int sample = 0; sample < 60; ++sample, ++*states) {
      const auto choose = [&](size_t count) -> size_t {  // all lost, all done, or any mixture
        return sample == 0 ? 0 : sample == 1 ? 1 : random() % count;
      };
      const auto after = disk.crash(choose);
      try {
        CheckpointStore store("run", 2, *after);
        const auto found = store.newest_verified();
        const bool good =
            found && contents(found->file("model.safetensors"), *after) == model_of(found->step) &&
            (done ? found->step == step : found->step >= 2);
        broken += !good;
      } catch (const Error&) {
        ++broken;
      }
    }
  }
  return broken;
}

TEST(PowerCut, SavesHoldInEveryState) {
  int states = 0;
  EXPECT_EQ(broken_states(save_normally, 3, &states), 0);
  EXPECT_EQ(broken_states(save_normally, 2, &states), 0);  // replaces
  EXPECT_GT(states, 1500);
}

// A process ends at any call, the next one starts over and saves, then the power is cut: the second
// process must not rely on files that the first left un-synced.
TEST(PowerCut, AfterARestartHoldsToo) {
  for (const int64_t step : {1, 2}) {  // on an empty directory; replacing
    bool hit = true;
    for (int64_t cut = 0; hit; ++cut) {
      ModelFileSystem disk;
      disk.make_directory("run");
      disk.sync_directory(".");
      if (step == 2) {
        CheckpointStore store("run", 2, disk);
        save(store, 2);
      }
      FaultyFileSystem files(disk, {Fault::kPowerCut, cut});
      try {
        CheckpointStore store("run", 2, files);
        save(store, step);
      } catch (const Error&) {
      }
      hit = files.hit();
      CheckpointStore restarted("run", 2, disk);
      if (step == 1) {
        save(restarted, 1);
      }
      const std::function<size_t(size_t)> all_lost = [](size_t) { return 0; };
      std::mt19937 random(31);
      for (int sample = 0; sample < 30; ++sample) {
        const auto any = [&](size_t count) -> size_t { return random() % count; };
        const auto after = disk.crash(sample == 0 ? all_lost : any);
        ASSERT_FALSE(after->sync_directory("run/checkpoint") != 0) << "lost at cut " << cut;
        CheckpointStore store("run", 2, *after);
        const auto found = store.newest_verified();
        ASSERT_TRUE(found) << "cut " << cut << ", sample " << sample;
        expect_whole(*found, *after);
      }
    }
  }
}

TEST(PowerCut, KnownBadProtocolsAreFound) {
  const Save no_file_sync = [](CheckpointStore& store, int64_t step, FaultyFileSystem& files) {
    files.skip_file_sync = true;
    save(store, step);
  };
  const Save no_directory_sync = [](CheckpointStore& store, int64_t step, FaultyFileSystem& files) {
    files.skip_directory_sync = true;
    save(store, step);
  };
  const Save delete_old_first = [](CheckpointStore& store, int64_t step, FaultyFileSystem& files) {
    for (const char* old : {"run/checkpoint/step-00000001", "run/checkpoint/step-00000002"}) {
      for (const DirectoryEntry& entry : list_directory(old, files)) {
        remove_path(entry, old, files);
      }
    }
    save(store, step);
  };
  int states = 0;
  EXPECT_GT(broken_states(no_file_sync, 3, &states), 0);
  EXPECT_GT(broken_states(no_directory_sync, 3, &states), 0);
  EXPECT_GT(broken_states(delete_old_first, 3, &states), 0);
}

TEST(Faults, AnErrorAtAnyCallLeavesTheOldCheckpoints) {
  for (const int code : {ENOSPC, EIO, EDQUOT, EROFS}) {
    for (const Fault::Kind kind : {Fault::kError, Fault::kErrorOnwards}) {
      for (const int64_t step : {2, 3}) {
        bool hit = true;
        for (int64_t at = 0; hit; ++at) {
          ModelFileSystem disk;
          disk.make_directory("run");
          CheckpointStore before("run", 2, disk);
          save(before, 1);
          save(before, 2);
          FaultyFileSystem files(disk, {kind, at, code});
          std::string error;
          try {
            CheckpointStore store("run", 2, files);
            save(store, step);
          } catch (const FileError& caught) {
            error = caught.what();
            EXPECT_EQ(caught.code(), code);
            EXPECT_EQ(error.find("run"), 0u) << error;
            if (kind == Fault::kError) {  // the clean-up worked: nothing but whole checkpoints
              for (const std::string& name : names_in("run/checkpoint", disk)) {
                EXPECT_EQ(name.find('.'), std::string::npos) << name << " after " << at;
              }
            }
          }
          hit = files.hit();
          CheckpointStore after("run", 2, disk);
          const auto found = after.newest_verified();
          ASSERT_TRUE(found) << at;
          EXPECT_GE(found->step, error.empty() ? step : 2) << at;
          expect_whole(*found, disk);
          EXPECT_TRUE(after.take_warnings().empty());
        }
      }
    }
  }
}

TEST(Faults, InterruptsAndShortCallsDoNotMatter) {
  for (const Fault::Kind kind : {Fault::kInterrupt, Fault::kShort}) {
    bool hit = true;
    for (int64_t at = 0; hit; ++at) {
      ModelFileSystem disk;
      FaultyFileSystem files(disk, {kind, at});
      CheckpointStore store("run", 1, files);
      save(store, 1);
      save(store, 2);
      expect_whole(*store.newest_verified(), files);
      EXPECT_TRUE(store.take_warnings().empty()) << at;
      EXPECT_EQ(names_in("run/checkpoint", disk), Names{"step-00000002"}) << at;
      hit = files.hit();
    }
  }
}

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

  flip(store.path() + "/best/optimizer.safetensors");  // good again, and newer than nothing
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
  store.save_best(180, files_of(180), {{"seed", "7"}});  // and the process ended before save(180)
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

// Something that is no good checkpoint stands where one shall go.
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
  // Compact, with sorted names, without the checksum; which is what the checksum is of.
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

TEST(Kill, AtEveryCallOfASave) {
  for (const int64_t step : {2, 3}) {
    bool ended = false;
    int64_t at = 0;
    for (; !ended; ++at) {
      const TemporaryDirectory directory;
      {
        CheckpointStore store(directory.path());
        save(store, 1);
        save(store, 2);
      }
      ended = run_child([&] {
        FaultyFileSystem files(file_system(), {Fault::kKill, at});
        CheckpointStore store(directory.path(), 2, files);
        save(store, step);
      });
      CheckpointStore store(directory.path());
      const auto found = store.newest_verified();
      ASSERT_TRUE(found) << at;
      EXPECT_GE(found->step, ended ? step : 2) << at;
      expect_whole(*found);
      for (const std::string& name : names_in(store.path())) {
        EXPECT_EQ(name.find('.'), std::string::npos) << name;
      }
    }
    EXPECT_GT(at, 15);
  }
}

TEST(Kill, AtRandomMoments) {
  const TemporaryDirectory directory;
  std::mt19937 random(29);
  int64_t newest = 1, killed = 0;
  {
    CheckpointStore store(directory.path());
    save(store, 1);
  }
  for (int round = 0; round < 100; ++round) {
    killed += !run_child(
        [&] {
          CheckpointStore store(directory.path());
          for (int64_t step = newest + 1;; ++step) {
            save(store, step);
            store.save_best(step, files_of(step), {{"seed", "7"}});
          }
        },
        1 + random() % 20'000);
    CheckpointStore store(directory.path());
    const auto found = store.newest_verified();
    ASSERT_TRUE(found) << round;
    EXPECT_GE(found->step, newest);
    expect_whole(*found);
    if (const auto best = store.best_verified()) {
      expect_whole(*best);
    }
    EXPECT_TRUE(store.take_warnings().empty());
    newest = found->step;
  }
  EXPECT_EQ(killed, 100);
  EXPECT_GT(newest, 20);
}

}  // namespace
}  // namespace binade::train
