// Tests the directory of a run: what dead processes left, and earlier runs.
#include <binade/train/checkpoint_store.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/child_process.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/run_owners.h"
#include "tests/train/scripted_run.h"

namespace binade::train::run_directory_test {
namespace {

using binade::testing::run_child;
using binade::testing::TemporaryDirectory;

// A run writes only through files(): nothing is changed after another process has taken the lock.
TEST(RunDirectory, WritesNothingAfterALoss) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  const RunDirectory held(run, false, false);
  CheckpointStore store(run, 2, held.files());
  save(store, 1);
  write_file_durably(run + "/metrics.jsonl", "1\n2\n", held.files());
  append_to_file(run + "/lens.jsonl", "1\n", held.files());
  write_lock(run + "/lock", owner_with([](RunOwner& o) { o.host = "node-7", o.boot = "another"; }));
  fs::create_directories(run + "/checkpoint/step-00000002.00000000000000aa.tmp");  // the other's
  const Names before = names_in(run), checkpoints = names_in(run + "/checkpoint");
  const std::function<void()> writes[] = {
      [&] { save(store, 2); },
      [&] { write_file_durably(run + "/metrics.jsonl", "x", held.files()); },
      [&] { write_new_file_durably(run + "/metrics.jsonl.cut", "x", held.files()); },
      [&] { append_to_file(run + "/lens.jsonl", "2\n", held.files()); },
      [&] {
        keep_lines(
            run + "/metrics.jsonl", [](auto&) { return false; }, held.files());
      },
      [&] { rename_path(run + "/metrics.jsonl", run + "/moved", held.files()); },
      [&] {
        remove_path({"metrics.jsonl", false, true}, run, held.files());
      },
      [&] { make_directories(run + "/new", held.files()); }};
  for (const auto& write : writes) {
    expect_parts(error_of(write), {"was taken over by process", "on host node-7"});
  }
  EXPECT_EQ(names_in(run), before);
  EXPECT_EQ(names_in(run + "/checkpoint"), checkpoints);
  EXPECT_EQ(contents(run + "/metrics.jsonl"), "1\n2\n");
  EXPECT_EQ(contents(run + "/lens.jsonl"), "1\n");
}

TEST(RunDirectory, RemovesWhatDeadOwnersLeftAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  const auto write = [&](const std::string& name) { std::ofstream(run + "/" + name) << "x"; };
  // Killed while it writes metrics.
  EXPECT_FALSE(run_child([&] {
    const RunDirectory held(run, false, false);
    write_file_durably(
        run + "/metrics.jsonl", [](OutputFile&) { ::raise(SIGKILL); }, held.files());
  }));
  const std::string token = lock_of(run).token;
  for (const char* name : {"metrics.jsonl.00000000000000aa-0.tmp", "metrics.jsonl.123-0.tmp",
                           "notes.txt", "model.safetensors.tmp"}) {
    write(name);
  }
  write("notes.txt." + token + "-0.tmp");
  write("model.safetensors." + token + "-7.tmp");
  std::ofstream(run + "/lock.00000000000000ab.tmp") << "{\"boot";  // killed while it wrote its name
  write("lock.00000000000000ac.tmp");                              // another program's
  write("metrics.jsonl.cut-2." + token + "-8.tmp");
  // A second process is killed before it has removed them.
  const Names foreign{"lock.00000000000000ac.tmp",
                      "metrics.jsonl.00000000000000aa-0.tmp",
                      "metrics.jsonl.123-0.tmp",
                      "model.safetensors.tmp",
                      "notes.txt",
                      "notes.txt." + token + "-0.tmp"};
  EXPECT_EQ(names_in(run).size(), foreign.size() + 5);  // and four leftovers, and the lock
  EXPECT_FALSE(run_child([&] {
    RunLock lock(run, file_system());
    ::raise(SIGKILL);
  }));
  { const RunDirectory next(run, true, false); }
  EXPECT_EQ(names_in(run), foreign);
}

TEST(RunDirectory, OverwriteMovesTheOldRun) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  for (const char* age : {"old", "older"}) {
    const RunDirectory opened(run, false, true);
    CheckpointStore store(run, 2, opened.files());
    save(store, 3);
    for (const char* name :
         {"metrics.jsonl", "model.safetensors", "lens.html", "lens.jsonl", "metrics.jsonl.cut",
          "metrics.jsonl.cut-2", "log.csv", "log.jsonl", "log.csv.cut", "run.json",
          "timeline.jsonl", "report.html", "trace.json"}) {
      write_file_durably(run + "/" + name, std::string(age), opened.files());
    }
    fs::create_directory(run + "/tensorboard");
    write_file_durably(run + "/letter.txt", std::string("dear"));
  }
  fs::create_directory(directory / "run.replaced-2");  // another program's
  {
    const RunDirectory opened(run + "/", false, true);
    EXPECT_EQ(names_in(run), (Names{"letter.txt", "lock"}));
  }
  EXPECT_EQ(names_in(directory.path()),
            (Names{"run", "run.replaced-1", "run.replaced-2", "run.replaced-3"}));
  const Names all{"checkpoint",          "lens.html",         "lens.jsonl",    "log.csv",
                  "log.csv.cut",         "log.jsonl",         "metrics.jsonl", "metrics.jsonl.cut",
                  "metrics.jsonl.cut-2", "model.safetensors", "report.html",   "run.json",
                  "tensorboard",         "timeline.jsonl",    "trace.json"};
  EXPECT_EQ(names_in(directory / "run.replaced-1"), all);
  EXPECT_EQ(names_in(directory / "run.replaced-3"), all);
  EXPECT_EQ(contents(directory / "run.replaced-1/metrics.jsonl"), "old");
  EXPECT_EQ(contents(directory / "run.replaced-3/metrics.jsonl"), "older");
  EXPECT_TRUE(names_in(directory / "run.replaced-2").empty());
  CheckpointStore kept(directory / "run.replaced-3");
  expect_whole(*kept.newest_verified());
}

TEST(RunDirectory, MayBeALinkButHasNone) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "disk/real");
  fs::create_symlink("disk", directory / "parent");
  fs::create_symlink("real", directory / "disk/run");
  std::ofstream(directory / "precious") << "p";
  const std::string run = directory / "parent/run";
  {
    const RunDirectory opened(run, false, false);
    write_file_durably(run + "/metrics.jsonl", "m\n", opened.files());
    fs::create_symlink(directory / "precious", run + "/lens.jsonl");
    EXPECT_THROW(keep_lines(
                     run + "/lens.jsonl", [](const auto&) { return false; }, opened.files()),
                 FileError);
  }
  { const RunDirectory opened(run, false, true); }
  EXPECT_TRUE(fs::is_empty(directory / "disk/real"));
  EXPECT_EQ(contents(directory / "disk/run.replaced-1/metrics.jsonl"), "m\n");
  EXPECT_TRUE(fs::is_symlink(directory / "disk/run.replaced-1/lens.jsonl"));
  fs::create_symlink(directory / "precious", run + "/lock");  // a lock is not followed either
  EXPECT_THROW(RunDirectory(run, true, false), Error);
  EXPECT_EQ(contents(directory / "precious"), "p");
}

TEST(RunDirectory, FilesHaveTheModesOfTheUmask) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(run_child([&] {
    ::umask(027);
    const std::string run = directory / "run";
    const RunDirectory opened(run, false, false);
    CheckpointStore store(run, 2, opened.files());
    struct stat file, folder;
    const bool read = ::stat(save(store, 1).file("model.safetensors").c_str(), &file) == 0 &&
                      ::stat((run + "/checkpoint/step-00000001").c_str(), &folder) == 0;
    ::_exit(read && (file.st_mode & 0777) == 0640 && (folder.st_mode & 0777) == 0750 ? 0 : 1);
  }));
}

TEST(RunDirectory, CutLinesAreKept) {
  const TemporaryDirectory directory;
  const std::string file = directory / "lines";
  const auto short_ones = [](const std::string& line) { return line.size() < 4; };
  keep_lines(file, short_ones);
  EXPECT_TRUE(names_in(directory.path()).empty());
  std::ofstream(file) << "1\nlong\n2\n3";
  keep_lines(file, short_ones);
  EXPECT_EQ(contents(file), "1\n2\n");
  EXPECT_EQ(contents(file + ".cut"), "long\n3");
  keep_lines(file, short_ones);
  keep_lines(file, [](const auto&) { return false; });
  EXPECT_EQ(contents(file), "");
  EXPECT_EQ(contents(file + ".cut-2"), "1\n2\n");
  EXPECT_EQ(names_in(directory.path()), (Names{"lines", "lines.cut", "lines.cut-2"}));
}

// Lines that are written again are cut in silence; a damaged one is not.
TEST(RunDirectory, DamagedLinesAreKeptWithAWarning) {
  const TemporaryDirectory directory;
  const std::string file = directory / "lines";
  const auto first_ones = [](const std::string& line) { return line == "{\"step\":1}\n"; };
  const test::Warnings warnings;
  std::ofstream(file) << "{\"step\":1}\n{\"step\":2}\n{\"st";
  keep_lines(file, first_ones);
  EXPECT_EQ(warnings.all, "");
  std::ofstream(file) << "{\"step\":1}\n{\"stap\x01:1}\n{\"step\":2}\n";
  keep_lines(file, first_ones);
  EXPECT_NE(warnings.all.find(file + ": 1 lines are damaged; they are kept in " + file + ".cut-2"),
            std::string::npos)
      << warnings.all;
  EXPECT_EQ(contents(file + ".cut-2"), "{\"stap\x01:1}\n{\"step\":2}\n");
}

}  // namespace
}  // namespace binade::train::run_directory_test
