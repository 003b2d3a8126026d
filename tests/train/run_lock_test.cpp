// Tests the lock of a run directory, which one process at a time holds.
#include <gtest/gtest.h>
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
#include "tests/train/run_owners.h"

namespace binade::train::run_lock_test {
namespace {

using binade::testing::FaultyFileSystem;
using binade::testing::run_child;
using binade::testing::TemporaryDirectory;

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
  // The owner was really killed, but nobody has waited for it.
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
  plant_lock(run, elsewhere[0]);
  set_age(run + "/lock", -3600);  // a clock was set back
  expect_parts(error_of_opening(run),
               {"on host node-7", "s in the future", "delete " + run + "/lock"});
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
  lock.check_held();  // it has made the lock again
  EXPECT_EQ(lock_of(directory.path()).pid, ::getpid());
  write_lock(directory / "lock",
             owner_with([](RunOwner& o) { o.host = "node-7", o.boot = "another"; }));
  expect_parts(error_of([&] { lock.check_held(); }), {"was taken over by", "on host node-7"});
  held.reset();
  EXPECT_EQ(lock_of(directory.path()).host, "node-7");  // it is no longer our lock
}

// Eight processes start at once on a directory that is free, that a dead process held, or whose
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
        (void)!::read(start[0], &c, 1);  // waits until the parent closes its end
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
    const RunDirectory next(run, true, false);  // the owner ended without releasing it
    EXPECT_EQ(names_in(run), Names{"lock"}) << round;
  }
}

// Between any two calls of a process that takes the lock, another one tries to take it.
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

TEST(RunLock, RemembersTheLastDeadOwners) {
  const TemporaryDirectory directory;
  RunOwner dead = owner_with([](RunOwner& o) { o.start = 12345; });
  for (int i = 0; i < 64; ++i) {
    dead.earlier.push_back(text("00000000000001", i + 10));
  }
  plant_lock(directory.path(), dead);
  const RunLock lock(directory.path(), file_system());
  ASSERT_EQ(lock.earlier().size(), 64u);
  EXPECT_EQ(lock.earlier().front(), "0000000000000111");
  EXPECT_EQ(lock.earlier().back(), dead.token);
}

TEST(RunLock, AForkedChildLeavesItToTheParent) {
  const TemporaryDirectory directory;
  auto held = std::make_unique<RunDirectory>(directory.path(), false, false);
  EXPECT_TRUE(run_child([&] {
    ::alarm(20);  // in case it waits for the parent's thread
    const std::string error = error_of([&] { held->check_held(); });
    held.reset();
    ::_exit(error.find("forked") != std::string::npos ? 0 : 1);
  }));
  EXPECT_EQ(names_in(directory.path()), Names{"lock"});
  held->check_held();
}

TEST(RunLock, WithoutAThreadItIsGivenBack) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(run_child([&] {
    pthread_attr_t attributes;  // no thread gets a stack of this size
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, size_t{1} << 47);
    ::pthread_setattr_default_np(&attributes);
    const std::string error =
        error_of([&] { const RunLock lock(directory.path(), file_system()); });
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    const bool named = error.find("cannot start the thread") != std::string::npos;
    ::_exit(named && ::sigismember(&blocked, SIGTERM) == 0 ? 0 : 1);
  }));
  EXPECT_TRUE(names_in(directory.path()).empty());
}

// A network file system took the name but lost the answer: asked again it says EEXIST.
TEST(RunLock, ANameThatIsItsOwnIsNoOtherOwners) {
  struct Repeating : FaultyFileSystem {
    Repeating() : FaultyFileSystem(file_system(), {}) {}
    int rename_new(const std::string& from, const std::string& to) override {
      (void)::link(from.c_str(), to.c_str());
      errno = EEXIST;
      return -1;
    }
  } files;
  const TemporaryDirectory directory;
  {
    const RunLock lock(directory.path(), files);
    EXPECT_EQ(names_in(directory.path()), Names{"lock"});
    expect_parts(error_of([&] { const RunLock second(directory.path(), files); }),
                 {"this process has a Trainer for it already"});
  }
  EXPECT_TRUE(names_in(directory.path()).empty());
}

}  // namespace
}  // namespace binade::train::run_lock_test
