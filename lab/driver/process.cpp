#include <binade/kernels/base/error.h>
#include <binade/lab/driver/check.h>
#include <binade/lab/driver/process_internal.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace binade::lab {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "binade-kernel-XXXXXX").string();
  check(::mkdtemp(name.data()) != nullptr, "kernel: cannot make a folder in ",
        std::filesystem::temp_directory_path().string());
  path_ = name;
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

namespace {

// The environment with some variables set or replaced.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    bool replaced = false;
    for (const auto& [name, value] : variables) {
      replaced |= text.substr(0, text.find('=')) == name;
    }
    if (!replaced) {
      all.emplace_back(text);
    }
  }
  for (const auto& [name, value] : variables) {
    all.push_back(name + "=" + value);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const Start& start) : begin_(std::chrono::steady_clock::now()) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const auto open_as = [&](int descriptor, const std::string& file) {
    const char* path = file.empty() ? "/dev/null" : file.c_str();
    ::posix_spawn_file_actions_addopen(&actions, descriptor, path, O_WRONLY | O_CREAT | O_APPEND,
                                       0600);
  };
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  open_as(STDOUT_FILENO, start.output);
  open_as(STDERR_FILENO, start.errors);
  std::vector<std::string> words = start.words, environment = environment_with(start.variables);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, words[0].c_str(), &actions, nullptr,
                                   pointers_to(words).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  check(error == 0, "kernel: cannot start ", words[0], ": ", std::strerror(error));
  pid_ = pid;
}

Process::~Process() { kill(); }

void Process::kill() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
}

namespace {
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);
}  // namespace

void interrupt_checks() { interrupted = true; }

ProcessEnd Process::wait(std::chrono::milliseconds limit, const std::function<void()>& look) {
  constexpr int kPollsOfLook = 8;
  ProcessEnd end;
  int status = 0;
  for (int polls = 1;; ++polls) {
    check(!interrupted, "kernel: interrupted");
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    const auto time = std::chrono::steady_clock::now() - begin_;
    end.seconds = std::chrono::duration<double>(time).count();
    if (ended == pid_) {
      pid_ = -1;
      break;
    }
    if (time > limit) {
      kill();
      end.late = true;
      end.status = -1;
      end.signal = SIGKILL;
      return end;
    }
    if (look && polls % kPollsOfLook == 0) {
      look();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  check(!out.fail(), "cannot write ", path);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? name : "";
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file)) {
      return file;
    }
  }
  return "";
}

}  // namespace binade::lab
