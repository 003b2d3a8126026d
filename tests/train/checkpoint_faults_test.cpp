#include <binade/train/checkpoint_store.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <random>

#include "tests/core/io/faulty_file_system.h"
#include "tests/core/io/model_file_system.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"

namespace binade::train::checkpoint_faults_test {
namespace {

using binade::testing::Fault;
using binade::testing::FaultyFileSystem;
using binade::testing::ModelFileSystem;
using binade::testing::run_child;
using binade::testing::TemporaryDirectory;

using Save = std::function<void(CheckpointStore&, int64_t step, FaultyFileSystem&)>;

// Chooses the long forms of random tests, for `ctest -L slow`.
bool is_long() { return std::getenv("BINADE_LONG") != nullptr; }

void save_normally(CheckpointStore& store, int64_t step, FaultyFileSystem&) { save(store, step); }

// Cuts the power at every call of save(step), with checkpoints of steps 1 and 2 on disk. Counts the
// states whose newest good checkpoint is not a complete one of step 2 or later, or, once save() has
// returned, not the one of `step`.
int broken_states(const Save& save_step, int64_t step, int* states, bool to_the_first = false) {
  int broken = 0;
  bool done = false;
  std::mt19937 random(23);
  for (int64_t cut = 0; !done && !(to_the_first && broken > 0); ++cut) {
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
      const auto choose = [&](size_t count) -> size_t {  // all lost, all kept, or any mixture
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
// process must not rely on files that the first did not sync.
TEST(PowerCut, AfterARestartHoldsToo) {
  for (const int64_t step : {1, 2}) {  // in an empty directory; replacing
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
  EXPECT_GT(broken_states(no_file_sync, 3, &states, true), 0);
  EXPECT_GT(broken_states(no_directory_sync, 3, &states, true), 0);
  EXPECT_GT(broken_states(delete_old_first, 3, &states, true), 0);
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
            if (kind == Fault::kError) {  // the clean-up worked: only complete checkpoints remain
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

// The model of step 1 stays, as if another user had made it so.
class KeepsStepOne : public FaultyFileSystem {
 public:
  explicit KeepsStepOne(FileSystem& files) : FaultyFileSystem(files, {}) {}
  int remove_file(const std::string& path) override {
    if (path.find("step-00000001.") != path.npos && path.ends_with("model.safetensors")) {
      errno = EACCES;
      return -1;
    }
    return FaultyFileSystem::remove_file(path);
  }
};

TEST(Faults, WhatCannotBeRemovedIsAWarning) {
  ModelFileSystem disk;
  disk.make_directory("run");
  KeepsStepOne files(disk);
  {
    CheckpointStore store("run", 2, files);
    for (int64_t step = 1; step <= 5; ++step) {
      save(store, step);
    }
    EXPECT_EQ(store.steps(), (std::vector<int64_t>{4, 5}));
    EXPECT_EQ(store.take_warnings().size(), 1u);
  }
  CheckpointStore after("run", 2, files);
  const auto found = after.newest_verified();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 5);
  const std::vector<std::string> warnings = after.take_warnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find(" is left over: "), std::string::npos) << warnings[0];
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

TEST(Kill, AtEveryCallOfASave) {
  const std::string_view kWhat[] = {"another", "the same", "best"};
  for (const std::string_view what : kWhat) {
    bool ended = false;
    int64_t at = 0;
    for (; !ended; ++at) {
      const TemporaryDirectory directory;
      {
        CheckpointStore store(directory.path());
        for (const int64_t step : {1, 2}) {
          save(store, step);
          store.save_best(step, files_of(step), {{"seed", "7"}});
        }
      }
      ended = run_child([&] {
        const auto below = file_system_below(directory.path());
        FaultyFileSystem files(*below, {Fault::kKill, at});
        CheckpointStore store(directory.path(), 2, files);
        if (what == "best") {
          store.save_best(3, files_of(3), {{"seed", "7"}});
        } else {
          save(store, what == "another" ? 3 : 2);
        }
      });
      CheckpointStore store(directory.path());
      const auto found = store.newest_verified();
      ASSERT_TRUE(found) << at;
      EXPECT_GE(found->step, ended && what != "the same" ? 3 : 2) << at;
      expect_whole(*found);
      expect_whole(*store.best_verified());
      for (const std::string& name : names_in(store.path())) {
        EXPECT_EQ(name.find('.'), std::string::npos) << name;
      }
      EXPECT_TRUE(store.take_warnings().empty());
    }
    EXPECT_GT(at, 20);
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
  const int rounds = is_long() ? 1000 : 40;
  for (int round = 0; round < rounds; ++round) {
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
  EXPECT_EQ(killed, rounds);
  EXPECT_GT(newest, 10);
  std::printf("%lld kills, newest step %lld\n", static_cast<long long>(killed),
              static_cast<long long>(newest));
}

}  // namespace
}  // namespace binade::train::checkpoint_faults_test
