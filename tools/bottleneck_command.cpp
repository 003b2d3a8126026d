// binade bottleneck: runs a program for some steps and names the first thing to change. If that is
// a setting, it runs the program again with the change.
#include "commands.h"

#include <binade/core/io/file_system.h>
#include <binade/train/profile/stalls.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

namespace binade::tool {
namespace {

constexpr int kUsage = 2;
constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr auto kOtherRanks = std::chrono::milliseconds(1500);  // waits for other ranks' traces
constexpr auto kGrace = std::chrono::seconds(20);              // to end after SIGTERM

using Words = std::vector<std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

// A temporary folder, removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "binade-trial-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "bottleneck: cannot make a folder in ",
          std::filesystem::temp_directory_path().string());
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The position of a flag's value, as "--flag value" or "--flag=value".
struct FlagPlace {
  size_t word = 0;
  size_t offset = 0;
};
std::optional<FlagPlace> find_flag(const Words& program, const std::string& flag) {
  for (size_t i = 1; i < program.size(); ++i) {
    if (program[i] == flag && i + 1 < program.size()) {
      return FlagPlace{i + 1, 0};
    }
    if (program[i].starts_with(flag + "=")) {
      return FlagPlace{i, flag.size() + 1};
    }
  }
  return std::nullopt;
}

Words with_flag(Words program, const std::string& flag, const std::string& value) {
  if (const auto place = find_flag(program, flag)) {
    program[place->word].replace(place->offset, std::string::npos, value);
  } else {
    program.push_back(flag);
    program.push_back(value);
  }
  return program;
}

pid_t start(const Words& program, const Variables& variables, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : program) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  std::fflush(stdout);
  const pid_t pid = ::fork();
  check(pid >= 0, "bottleneck: cannot start a process");
  if (pid == 0) {
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    std::FILE* file = std::freopen(output.c_str(), "w", stdout);
    if (file != nullptr) {
      ::dup2(::fileno(stdout), STDERR_FILENO);
    }
    ::execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    ::_exit(127);
  }
  return pid;
}

// True if the process has ended; then `status` is what waitpid() gave.
bool has_ended(pid_t pid, int& status) { return ::waitpid(pid, &status, WNOHANG) == pid; }

void end(pid_t pid) {
  int status = 0;
  ::kill(pid, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kGrace;
  while (!has_ended(pid, status)) {
    if (std::chrono::steady_clock::now() > until) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

std::string last_lines(const std::string& file) {
  constexpr size_t kMost = 600;
  const std::vector<std::byte> bytes = read_file(file);
  const std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all.size() > kMost ? all.substr(all.size() - kMost) : all;
}

// Runs the program until its trace exists. Returns the traces of its ranks, or no trace and the
// program's exit status.
std::vector<train::Trace> record(const Words& program, Variables variables,
                                 const std::string& folder, int& status) {
  make_directories(folder);
  const std::string file = folder + "/trace.json";
  variables.emplace_back("BINADE_PROFILE_FILE", file);
  const pid_t pid = start(program, variables, folder + "/output.txt");
  bool ended = false;
  while (!ended && !std::filesystem::exists(file)) {
    std::this_thread::sleep_for(kPoll);
    ended = has_ended(pid, status);
  }
  if (!ended) {
    std::this_thread::sleep_for(kOtherRanks);
    ended = has_ended(pid, status);
  }
  if (!ended) {
    end(pid);
  }
  return std::filesystem::exists(file) ? train::read_traces(folder) : std::vector<train::Trace>();
}

class Trials {
 public:
  explicit Trials(const BottleneckOptions& options) : options_(options) {}

  std::vector<train::Trace> run(const Words& program, Variables variables) {
    const std::string name = "trial-" + std::to_string(++count_);
    variables.emplace_back("BINADE_PROFILE", text(options_.warmup, ",1,", options_.steps));
    int status = 0;
    Words words = takes_run_ ? with_flag(program, "--run", folder_ / (name + "/run")) : program;
    std::vector<train::Trace> traces = record(words, variables, folder_ / name, status);
    const bool is_usage = WIFEXITED(status) && WEXITSTATUS(status) == kUsage;
    if (traces.empty() && is_usage && takes_run_ && !find_flag(program, "--run")) {
      takes_run_ = false;  // the program has no such flag
      traces = record(program, variables, folder_ / name, status);
    }
    check(
        !traces.empty() && !traces[0].steps().empty(), "bottleneck: ", program[0],
        " ended without a trace, expected a program with a Trainer, or with train::Program, of at "
        "least ",
        options_.warmup + 2, " steps; it wrote: ", last_lines(folder_ / (name + "/output.txt")));
    return traces;
  }

 private:
  const BottleneckOptions& options_;
  Folder folder_;
  int count_ = 0;
  bool takes_run_ = true;
};

double samples_per_second(const train::StallReport& report) {
  return static_cast<double>(std::max<int64_t>(report.batch, 1)) * 1e3 / report.step_milliseconds;
}

// Runs the program with the change, and prints the speedup.
void verify(Trials& trials, const Words& program, const train::StallReport& before) {
  const train::Advice& advice = before.advice[0];
  Words changed = program;
  Variables variables;
  if (advice.setting == "workers") {
    variables.emplace_back("BINADE_LOADER_WORKERS", text(advice.value));
  } else if (advice.setting == "batch") {
    changed = with_flag(program, "--batch", text(advice.value));
  } else {
    return;
  }
  try {
    const train::StallReport after = train::find_stalls(trials.run(changed, variables));
    const int64_t now = advice.setting == "workers" ? before.loader.workers : before.batch;
    std::printf("verified: %s %lld -> %lld: predicted +%.0f%%, measured %+.0f%% samples/s\n",
                advice.setting.c_str(), static_cast<long long>(now),
                static_cast<long long>(advice.value), 100 * advice.gain,
                100 * (samples_per_second(after) / samples_per_second(before) - 1));
  } catch (const Error& error) {
    std::printf("not verified: %s\n", error.what());
  }
}

}  // namespace

int run(const BottleneckOptions& o) {
  Trials trials(o);
  const train::StallReport report = train::find_stalls(trials.run(o.program, {}));
  std::fputs(to_text(report).c_str(), stdout);
  std::fflush(stdout);
  if (!o.no_trial && !report.advice.empty()) {
    verify(trials, o.program, report);
  }
  return 0;
}

}  // namespace binade::tool
