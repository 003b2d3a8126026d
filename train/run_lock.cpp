#include <binade/train/logging/wall_clock_internal.h>
#include <binade/train/quiet_thread_internal.h>
#include <binade/train/report/json_numbers_internal.h>
#include <binade/train/run_lock_internal.h>

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

namespace binade::train {
namespace {

using nlohmann::json;

constexpr const char* kLock = "lock";
constexpr const char* kLockFormat = "binade run lock 1";
constexpr const char* kStart = "{\"boot\":\"";  // of the file
constexpr std::string_view kClaim = "lock.over-", kTemporary = ".tmp", kOwn = "lock.";
constexpr uint64_t kMaxBytes = 1 << 16;
constexpr size_t kMaxEarlier = 64;

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// State and start time of a process from /proc; state 0: there is none, '?': not known.
struct ProcessState {
  char state = '?';
  uint64_t start = 0;
};

ProcessState state_of(int64_t pid) {
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) {
    return {0, 0};
  }
  const std::string line = first_line_of("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = line.rfind(')');  // the name may have spaces and brackets
  if (name_end == std::string::npos) {
    return {};
  }
  std::istringstream rest(line.substr(name_end + 1));
  ProcessState found;
  std::string field;
  rest >> found.state;
  constexpr int kStartTime = 22, kState = 3;  // numbers of the fields, as in proc(5)
  for (int i = kState + 1; i < kStartTime; ++i) {
    rest >> field;
  }
  rest >> found.start;
  return found;
}

bool is_running(int64_t pid, uint64_t start) {
  const ProcessState found = state_of(pid);
  const bool ended = found.state == 0 || found.state == 'Z' || found.state == 'X';
  return !ended && (start == 0 || found.start == 0 || found.start == start);
}

}  // namespace

std::string lock_text(const RunOwner& owner) {
  return json{{"format", kLockFormat}, {"host", owner.host},
              {"boot", owner.boot},    {"pid_namespace", owner.pid_namespace},
              {"pid", owner.pid},      {"start", owner.start},
              {"token", owner.token},  {"earlier", owner.earlier}}
             .dump(-1, ' ', true, json::error_handler_t::replace) +
         "\n";
}

RunOwner parse_lock(const std::string& text) {
  try {
    const json root = json::parse(text);
    RunOwner owner;
    owner.host = root.at("host").get<std::string>();
    owner.boot = root.at("boot").get<std::string>();
    owner.pid_namespace = root.at("pid_namespace").get<std::string>();
    owner.pid = whole_number<int32_t>(root.at("pid"));
    owner.start = whole_number<uint64_t>(root.at("start"));
    owner.earlier = root.at("earlier").get<std::vector<std::string>>();
    owner.token = root.at("token").get<std::string>();
    const bool is_token = owner.token.size() == 16 &&
                          owner.token.find_first_not_of("0123456789abcdef") == std::string::npos;
    return root.at("format") == kLockFormat && owner.pid > 0 && is_token ? owner : RunOwner{};
  } catch (const std::exception&) {
    return {};
  }
}

RunOwner this_process() {
  RunOwner self;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) {
    self.host = name;
  }
  self.boot = first_line_of("/proc/sys/kernel/random/boot_id");
  const ssize_t length = ::readlink("/proc/self/ns/pid", name, sizeof name);
  self.pid_namespace = length > 0 ? std::string(name, static_cast<size_t>(length)) : "";
  self.pid = ::getpid();
  self.start = state_of(self.pid).start;
  self.token = process_token();
  return self;
}

std::string to_string(const RunOwner& owner) {
  return owner.token.empty() ? "somebody who wrote no name into it"
                             : text("process ", owner.pid, " on host ", owner.host);
}

RunLock::RunLock(const std::string& directory, FileSystem& files, RunLockOptions options)
    : directory_(directory), files_(files), options_(std::move(options)) {
  take(kLock);
  try {
    sync_directory(directory_, files_);
    remove_leftovers();
    start_heartbeat();
  } catch (...) {
    files_.remove_file(directory_ + "/" + kLock);
    throw;
  }
}

RunLock::~RunLock() {
  if (is_forked()) {
    (void)heartbeat_.release();  // its thread is the parent's, and its mutex may be locked
    return;
  }
  {
    const std::lock_guard lock(heartbeat_->mutex);
    heartbeat_->stop = true;
  }
  heartbeat_->stopped.notify_all();
  heartbeat_->thread.join();
  try {
    if (read(kLock).token == options_.self.token) {
      files_.remove_file(directory_ + "/" + kLock);
    }
  } catch (const Error&) {
    // The next process sees that this one has ended.
  }
}

// taking ------------------------------------------------------------------------------------------

// Gets `name` (the lock, or the right to replace a dead owner's) or throws.
void RunLock::take(const std::string& name) {
  std::string own = write_own();
  const std::string path = directory_ + "/" + name;
  try {
    for (;;) {
      const int64_t now = files_.modified(own);
      if (files_.rename_new(own, path) == 0) {
        return;
      }
      if (errno == ENOENT) {
        own = write_own();  // the owner removed it as a leftover
        continue;
      }
      check(errno == EEXIST, path, ": cannot take the lock of the run directory: ",
            std::generic_category().message(errno));
      RunOwner owner;
      try {
        owner = read(name);
      } catch (const FileError& error) {
        if (error.code() == ENOENT) {
          continue;  // it was given back at this moment
        }
        throw;
      }
      if (owner.token == options_.self.token && is_own(name, own)) {
        files_.remove_file(own);
        return;
      }
      if (is_alive(owner, name, now)) {
        fail_held(owner, name, now);
      }
      if (replace(name, owner, own)) {
        return;
      }
    }
  } catch (...) {
    files_.remove_file(own);
    throw;
  }
}

// True if `name` is the very file `own`. A network file system that repeats a request may report a
// name as taken though its first attempt took it, with a hard link.
bool RunLock::is_own(const std::string& name, const std::string& own) const {
  return files_.is_same_file(directory_ + "/" + name, own) == 1;
}

// Replaces the lock `name` of a dead owner by `own`; false if it is another one by now. Only the
// process that holds the claim on this very owner may do it, so two that found the same dead owner
// cannot both get the lock. A process that dies with a claim is a dead owner of the claim.
bool RunLock::replace(const std::string& name, const RunOwner& dead, const std::string& own) {
  const std::string id = dead.token.empty() ? "unreadable" : dead.token;
  const std::string claim = std::string(kClaim) + id;
  check(name != claim, directory_, "/", name, ": the lock cannot be read; delete it");
  take(claim);
  bool replaced = false;
  try {
    RunOwner still;
    try {
      still = read(name);
    } catch (const FileError& error) {
      if (error.code() != ENOENT) {
        throw;
      }
      still.token = "none";
    }
    if (still.token == dead.token) {
      options_.self.earlier = dead.earlier;
      if (!dead.token.empty()) {
        options_.self.earlier.push_back(dead.token);
      }
      if (auto& all = options_.self.earlier; all.size() > kMaxEarlier) {
        all.erase(all.begin(), all.end() - kMaxEarlier);
      }
      const std::string with_earlier = write_own();
      rename_path(with_earlier, directory_ + "/" + name, files_);
      files_.remove_file(own);
      replaced = true;
    }
  } catch (...) {
    files_.remove_file(directory_ + "/" + claim);
    throw;
  }
  files_.remove_file(directory_ + "/" + claim);
  return replaced;
}

// A file with this process's name, under a name of its own, on disk. Returns its path.
std::string RunLock::write_own() const {
  std::string path = text(directory_, "/", kOwn, unpredictable_name(), kTemporary);
  OutputFile file(path, files_);
  try {
    file.write(lock_text(options_.self));
    file.finish();
  } catch (...) {
    files_.remove_file(path);
    throw;
  }
  return path;
}

RunOwner RunLock::read(const std::string& name) const {
  const std::vector<std::byte> bytes = read_file(directory_ + "/" + name, kMaxBytes, files_);
  return parse_lock({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool RunLock::is_alive(const RunOwner& owner, const std::string& name, int64_t now) const {
  const RunOwner& self = options_.self;
  const bool same_machine =
      !owner.token.empty() && owner.boot == self.boot && owner.pid_namespace == self.pid_namespace;
  if (same_machine) {
    return is_running(owner.pid, owner.start);
  }
  const int64_t touched = files_.modified(directory_ + "/" + name);
  return static_cast<double>(now - touched) * 1e-9 < options_.stale_seconds;
}

bool RunLock::is_held(const std::string& directory) {
  const std::string path = directory + "/" + kLock;
  if (file_kind(path) != "a regular file") {
    return false;
  }
  try {
    const std::vector<std::byte> bytes = read_file(path, kMaxBytes);
    const RunOwner owner = parse_lock({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const RunOwner self = this_process();
    if (owner.token.empty()) {
      return false;
    }
    if (owner.boot == self.boot && owner.pid_namespace == self.pid_namespace) {
      return is_running(owner.pid, owner.start);
    }
    const double age = wall_seconds() - static_cast<double>(file_system().modified(path)) * 1e-9;
    return age < RunLockOptions{}.stale_seconds;
  } catch (const FileError&) {  // it was given back at this moment
    return false;
  }
}

void RunLock::fail_held(const RunOwner& owner, const std::string& name, int64_t now) const {
  const RunOwner& self = options_.self;
  const bool same_machine = owner.boot == self.boot && owner.pid_namespace == self.pid_namespace;
  std::string when = "wait for its end or end it";
  if (owner.pid == self.pid && owner.token == self.token) {
    when = "this process has a Trainer for it already";
  } else if (!same_machine) {
    const std::string path = directory_ + "/" + name;
    const auto seconds = (now - files_.modified(path)) / 1'000'000'000;
    when = seconds < 0
               ? text("its last sign of life is ", -seconds,
                      " s in the future: a clock was set back; if it has ended, delete ", path)
               : text("its last sign of life was ", seconds, " s ago; after ",
                      options_.stale_seconds, " s it counts as dead");
  }
  fail("run directory: got ", directory_, ", which ", to_string(owner),
       " uses, expected one that no other process uses (", when,
       "), or give another run directory (--run DIR)");
}

// holding -----------------------------------------------------------------------------------------

void RunLock::check_held() {
  check(!is_forked(), "run directory: ", directory_, " is used by ", to_string(options_.self),
        ", expected no process that was forked from it to write to it");
  const std::lock_guard lock(heartbeat_->mutex);
  RunOwner owner;
  try {
    owner = read(kLock);
  } catch (const FileError& error) {
    if (error.code() != ENOENT) {
      throw;
    }
    take(kLock);
    return;
  }
  check(owner.token == options_.self.token, "run directory: ", directory_, " was taken over by ",
        to_string(owner), ", expected ", to_string(options_.self),
        " to have it until its end (was this process stopped for more than ",
        options_.stale_seconds, " s?); nothing more is written to it");
}

void RunLock::start_heartbeat() {
  heartbeat_->thread =
      start_quiet_thread("run directory: " + directory_, "keeps the lock", [this] { beat(); });
}

void RunLock::beat() {
  const auto period = std::chrono::duration<double>(options_.heartbeat_seconds);
  std::unique_lock lock(heartbeat_->mutex);
  while (!heartbeat_->stopped.wait_for(lock, period, [this] { return heartbeat_->stop; })) {
    try {
      if (read(kLock).token == options_.self.token) {
        files_.touch(directory_ + "/" + kLock);
      }
    } catch (const Error&) {
      // The next check_held() reports it if it lasts.
    }
  }
}

// Removes files of dead processes that tried to take the lock, and files that cannot be read: their
// writer was killed, or is still writing and cannot get the lock now.
void RunLock::remove_leftovers() {
  const int64_t now = files_.modified(directory_ + "/" + kLock);
  for (const DirectoryEntry& entry : list_directory(directory_, files_)) {
    if (!entry.is_file || entry.name == kLock || !is_name_of_lock(entry.name)) {
      continue;
    }
    try {
      const std::vector<std::byte> bytes =
          read_file(directory_ + "/" + entry.name, kMaxBytes, files_);
      const std::string found(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const std::string_view start = std::string_view(kStart).substr(0, found.size());
      const RunOwner owner = parse_lock(found);
      const bool cut_off = owner.token.empty() && entry.name.ends_with(kTemporary);
      if (found.starts_with(start) && (cut_off || !is_alive(owner, entry.name, now))) {
        remove_path(entry, directory_, files_);
      }
    } catch (const Error&) {
      // The owner of the file has just removed it.
    }
  }
}

bool RunLock::is_name_of_lock(const std::string& name) {
  const auto is_hex = [](std::string_view digits) {
    return digits.size() == 16 &&
           digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  };
  std::string_view rest = name;
  if (rest == kLock) {
    return true;
  }
  if (rest.starts_with(kClaim)) {
    rest.remove_prefix(kClaim.size());
    return rest == "unreadable" || is_hex(rest);
  }
  if (!rest.starts_with(kOwn) || !rest.ends_with(kTemporary)) {
    return false;
  }
  rest.remove_prefix(kOwn.size());
  rest.remove_suffix(kTemporary.size());
  return is_hex(rest);
}

}  // namespace binade::train
