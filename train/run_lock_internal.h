// RunLock: one process at a time uses a run directory. Internal to train.
//
// RUN/lock is a file that says who the owner is: host, boot, process id namespace, process id and
// start time. It is made by a rename that fails if the name is taken, so exactly one process gets
// it. A lock that a dead process left is replaced. On the owner's machine (the same boot and the
// same process id namespace) dead means that the process ended. On another machine, for example a
// node with the same network file system, it means that the owner has not touched the file for
// `stale_seconds`; a thread of the owner touches it every `heartbeat_seconds`. The clock of the
// file system measures the age of the file. An owner that was stopped longer than that (SIGSTOP, a
// suspended machine) may lose the lock to another machine: check_held() then throws.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/kernels/base/fork.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace binade::train {

// A process, as a lock names it.
struct RunOwner {
  std::string host, boot, pid_namespace;
  int64_t pid = 0;
  uint64_t start = 0;  // of the process, in ticks since boot; 0: not known
  std::string token;   // process_token(); empty: not a lock of ours
  // Tokens of dead owners whose temporary files may be left, the newest last.
  std::vector<std::string> earlier = {};
};
RunOwner this_process();
std::string to_string(const RunOwner& owner);  // "process 123 on host node-7"
// The text of a lock, and back; another text gives an owner without a token.
std::string lock_text(const RunOwner& owner);
RunOwner parse_lock(const std::string& text);

struct RunLockOptions {
  double heartbeat_seconds = 10, stale_seconds = 120;
  RunOwner self = this_process();
};

class RunLock {
 public:
  // Takes the lock or throws one error that names its owner. REQUIRES: `files` outlives it. In a
  // child of fork() the lock is the parent's: check_held() throws, and the destructor leaves it.
  RunLock(const std::string& directory, FileSystem& files, RunLockOptions options = {});
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Throws if another process has taken the lock over. Makes a lock that was deleted again.
  void check_held();
  // Tokens of the last dead processes that had the lock before.
  const std::vector<std::string>& earlier() const { return options_.self.earlier; }
  // True if a living process has the lock of the directory, by the rules above. Does not take it.
  static bool is_held(const std::string& directory);
  // True for the lock and for files that taking it may leave in the directory.
  static bool is_name_of_lock(const std::string& name);

 private:
  void take(const std::string& name);
  bool is_own(const std::string& name, const std::string& own) const;
  bool is_forked() const { return forks_ != fork_count(); }
  bool replace(const std::string& name, const RunOwner& dead, const std::string& own);
  bool is_alive(const RunOwner& owner, const std::string& name, int64_t now) const;
  std::string write_own() const;
  RunOwner read(const std::string& name) const;
  [[noreturn]] void fail_held(const RunOwner& owner, const std::string& name, int64_t now) const;
  void remove_leftovers();
  void start_heartbeat();
  void beat();

  std::string directory_;
  FileSystem& files_;
  RunLockOptions options_;
  uint32_t forks_ = fork_count();
  struct Heartbeat {
    std::mutex mutex;
    std::condition_variable stopped;
    bool stop = false;
    std::thread thread;
  };
  std::unique_ptr<Heartbeat> heartbeat_ = std::make_unique<Heartbeat>();
};

}  // namespace binade::train
