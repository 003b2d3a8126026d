// The directory of a run: its lock, what dead processes left, and earlier runs.
#include <binade/train/checkpoint_store.h>
#include <binade/train/run_directory.h>
#include <binade/train/run_lock_internal.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/core/io/faulty_file_system.h"
#include "tests/support/child_process.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"

namespace binade::train {
namespace {

namespace fs = std::filesystem;
using binade::testing::FaultyFileSystem;
using binade::testing::run_child;
using binade::testing::TemporaryDirectory;

RunOwner lock_of(const std::string& run) { return parse_lock(contents(run + "/lock")); }

void write_lock(const std::string& path, const RunOwner& owner) {
  std::ofstream(path) << lock_text(owner);
}

void set_age(const std::string& path, double seconds) {
  timespec times[2];
  ::clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= static_cast<time_t>(seconds);
  times[1] = times[0];
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// A process that has ended; its number belongs to nobody for now.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return child;
}

// A lock of this process, with changes.
RunOwner owner_with(const std::function<void(RunOwner&)>& change) {
  RunOwner owner = this_process();
  owner.token = "00000000000000aa";
  change(owner);
  return owner;
}

void plant_lock(const std::string& run, const RunOwner& owner) {
  fs::create_directories(run);
  write_lock(run + "/lock", owner);
}

std::string error_of_opening(const std::string& run) {
  return error_of([&] { const RunDirectory directory(run, true, false); });
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in " << text;
  }
}

TEST(RunLock, TheSecondProcessGetsAnErrorThatNamesTheFirst) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  {
    const RunDirectory first(run, false, false);
    const std::string who = text("process ", int64_t{::getpid()}, " on host ");
    EXPECT_TRUE(run_child([&] {
      const std::string error = error_of_opening(run);
      ::_exit(error.find(who) != std::string::npos && error.find(run) != std::string::npos ? 0 : 1);
    }));
    expect_parts(error_of_opening(run), {who, "this process has a Trainer for it already"});
    expect_parts(error_of([&] { const RunDirectory second(run, false, true); }), {who});
    first.check_held();
    EXPECT_EQ(names_in(run), Names{"lock"});
  }
  EXPECT_TRUE(names_in(run).empty()) << "given back";
  const RunDirectory next(run, false, false);
}

TEST(RunLock, ADeadOwnerIsReplaced) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  const RunOwner dead[] = {
      owner_with([](RunOwner& o) { o.pid = dead_process(); }),
      owner_with([](RunOwner& o) { o.start = 12345; }),  // the number is another process's now
      owner_with([](RunOwner& o) { o.pid = 1, o.start = 12345; })};
  for (const RunOwner& owner : dead) {
    plant_lock(run, owner);
    const RunDirectory opened(run, true, false);
    EXPECT_EQ(lock_of(run).pid, ::getpid());
    EXPECT_EQ(names_in(run), Names{"lock"});
  }
  // Killed for real, and not yet waited for.
  const pid_t child = ::fork();
  if (child == 0) {
    const RunDirectory held(run, true, false);
    ::raise(SIGKILL);
  }
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(lock_of(run).pid, child);
  EXPECT_EQ(error_of_opening(run), "none");
  ::waitpid(child, nullptr, 0);
}

TEST(RunLock, ElsewhereTheHeartbeatDecides) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  const RunOwner elsewhere[] = {
      owner_with(
          [](RunOwner& o) { o.host = "node-7", o.boot = "another", o.pid = dead_process(); }),
      owner_with([](RunOwner& o) { o.host = "node-7", o.pid_namespace = "pid:[1]"; })};
  for (const RunOwner& owner : elsewhere) {
    plant_lock(run, owner);
    set_age(run + "/lock", 60);
    expect_parts(error_of_opening(run),
                 {"on host node-7", "last sign of life was ", "s ago; after 120 s"});
    set_age(run + "/lock", 125);
    EXPECT_EQ(error_of_opening(run), "none");
  }
  std::ofstream(run + "/lock") << "garbage";
  expect_parts(error_of_opening(run), {"who wrote no name into it"});
  set_age(run + "/lock", 125);
  EXPECT_EQ(error_of_opening(run), "none");
}

TEST(RunLock, TheOwnerShowsThatItLivesAndNoticesALoss) {
  const TemporaryDirectory directory;
  std::optional<RunLock> held(std::in_place, directory.path(), file_system(),
                              RunLockOptions{.heartbeat_seconds = 0.002});
  RunLock& lock = *held;
  set_age(directory / "lock", 1000);
  const auto age = [&] {
    return fs::file_time_type::clock::now() - fs::last_write_time(directory / "lock");
  };
  for (int i = 0; i < 5000 && age() > std::chrono::seconds(500); ++i) {
    ::usleep(1000);
  }
  EXPECT_LT(age(), std::chrono::seconds(500));
  lock.check_held();
  fs::remove(directory / "lock");
  lock.check_held();  // made again
  EXPECT_EQ(lock_of(directory.path()).pid, ::getpid());
  write_lock(directory / "lock",
             owner_with([](RunOwner& o) { o.host = "node-7", o.boot = "another"; }));
  expect_parts(error_of([&] { lock.check_held(); }), {"was taken over by", "on host node-7"});
  held.reset();
  EXPECT_EQ(lock_of(directory.path()).host, "node-7");  // it is not ours to give back
}

// Eight processes start at once on a directory that is free, or that a dead process had, or whose
// dead owner a second process died replacing.
TEST(RunLock, ExactlyOneProcessGetsIt) {
  for (int round = 0; round < 12; ++round) {
    const TemporaryDirectory directory;
    const std::string run = directory / "run";
    if (round % 3 > 0) {
      plant_lock(run, owner_with([](RunOwner& o) { o.pid = dead_process(); }));
    }
    if (round % 3 == 2) {
      RunOwner claimer = lock_of(run);
      claimer.token = "00000000000000ab";
      write_lock(run + "/lock.over-00000000000000aa", claimer);
    }
    fs::create_directories(run);
    int start[2], result[2], finish[2];
    ASSERT_TRUE(::pipe(start) == 0 && ::pipe(result) == 0 && ::pipe(finish) == 0);
    std::vector<pid_t> children;
    constexpr int kProcesses = 8;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(::fork());
      if (children.back() == 0) {
        ::close(start[1]);
        ::close(finish[1]);
        char c = 0;
        (void)!::read(start[0], &c, 1);  // until the parent closes its end
        std::unique_ptr<RunDirectory> held;
        const std::string error =
            error_of([&] { held = std::make_unique<RunDirectory>(run, true, false); });
        c = held ? 'w' : error.find(" uses, expected one") != std::string::npos ? 'l' : '?';
        (void)!::write(result[1], &c, 1);
        (void)!::read(finish[0], &c, 1);
        ::_exit(0);
      }
    }
    ::close(start[1]);
    std::string results;
    for (char c = 0;
         static_cast<int>(results.size()) < kProcesses && ::read(result[0], &c, 1) == 1;) {
      results += c;
    }
    std::sort(results.begin(), results.end());
    EXPECT_EQ(results, "lllllllw") << round;
    ::close(finish[1]);
    for (const pid_t child : children) {
      ::waitpid(child, nullptr, 0);
    }
    for (const int file : {start[0], result[0], result[1], finish[0]}) {
      ::close(file);
    }
    const RunDirectory next(run, true, false);  // the owner ended without giving it back
    EXPECT_EQ(names_in(run), Names{"lock"}) << round;
  }
}

// Between any two calls of a process that takes the lock, another one tries to.
TEST(RunLock, ExactlyOneGetsItInAnyOrder) {
  for (const bool stale : {false, true}) {
    bool inside = true;
    for (int64_t at = 0; inside; ++at) {
      const TemporaryDirectory directory;
      if (stale) {
        plant_lock(directory.path(), owner_with([](RunOwner& o) { o.start = 12345; }));
      }
      const auto take = [&](FileSystem& files, const char* token) -> std::unique_ptr<RunLock> {
        RunLockOptions options;
        options.self.token = token;
        try {
          return std::make_unique<RunLock>(directory.path(), files, options);
        } catch (const Error&) {
          return nullptr;
        }
      };
      std::unique_ptr<RunLock> second;
      int64_t call = 0;
      inside = false;
      FaultyFileSystem files(file_system(), {});
      files.before_call = [&] {
        if (call++ == at) {
          inside = true;
          second = take(file_system(), "00000000000000bb");
        }
      };
      const std::unique_ptr<RunLock> first = take(files, "00000000000000cc");
      files.before_call = nullptr;
      EXPECT_NE(first == nullptr, second == nullptr || !inside) << stale << " " << at;
      EXPECT_EQ(lock_of(directory.path()).token, first ? "00000000000000cc" : "00000000000000bb");
      EXPECT_EQ(names_in(directory.path()), Names{"lock"}) << stale << " " << at;
    }
  }
}

TEST(RunDirectory, RemovesWhatDeadOwnersLeftAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  const auto write = [&](const std::string& name) { std::ofstream(run + "/" + name) << "x"; };
  // Killed while it wrote metrics.
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
  write("lock.00000000000000ac.tmp");                              // somebody's
  write("metrics.jsonl.cut-2." + token + "-8.tmp");
  // A second one is killed before it removed them.
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
    for (const char* name : {"metrics.jsonl", "model.safetensors", "lens.html", "lens.jsonl",
                             "metrics.jsonl.cut", "metrics.jsonl.cut-2"}) {
      write_file_durably(run + "/" + name, std::string(age), opened.files());
    }
    write_file_durably(run + "/letter.txt", std::string("dear"));
  }
  fs::create_directory(directory / "run.replaced-2");  // somebody's
  {
    const RunDirectory opened(run + "/", false, true);
    EXPECT_EQ(names_in(run), (Names{"letter.txt", "lock"}));
  }
  EXPECT_EQ(names_in(directory.path()),
            (Names{"run", "run.replaced-1", "run.replaced-2", "run.replaced-3"}));
  const Names all{"checkpoint",        "lens.html",           "lens.jsonl",       "metrics.jsonl",
                  "metrics.jsonl.cut", "metrics.jsonl.cut-2", "model.safetensors"};
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
  fs::create_symlink(directory / "precious", run + "/lock");  // a lock is never followed either
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

}  // namespace
}  // namespace binade::train
