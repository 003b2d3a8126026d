#include <bench/served_build.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

extern char** environ;

namespace binade::bench {
namespace {

struct Pipe {
  Pipe() { check(::pipe2(ends, O_CLOEXEC) == 0, "bench diff: no pipe: ", std::strerror(errno)); }
  int ends[2];
};

// The number after "key": in an answer, or -1.
double number_behind(const std::string& answer, const std::string& key) {
  const size_t at = answer.find("\"" + key + "\": ");
  return at == std::string::npos ? -1 : std::atof(answer.c_str() + at + key.size() + 4);
}

}  // namespace

ServedBuild::ServedBuild(const std::string& program, const Options& options) : program_(program) {
  // Makes a write to an ended program an error instead of a signal.
  ::signal(SIGPIPE, SIG_IGN);
  const bool is_tool = std::filesystem::path(program).filename() == "binade";
  std::vector<std::string> words{program};
  if (is_tool) {
    words.emplace_back("bench");
  }
  words.insert(words.end(), {"--serve", "--device", options.device, "--threads",
                             std::to_string(options.threads)});
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    if (std::strncmp(*variable, "BINADE_BENCH_PLANT=", 19) != 0) {
      variables.emplace_back(*variable);
    }
  }
  variables.push_back(text("BINADE_BENCH_PLANT=", options.plant));
  std::vector<char*> environment;
  for (std::string& variable : variables) {
    environment.push_back(variable.data());
  }
  environment.push_back(nullptr);
  Pipe to, from;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.ends[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from.ends[1], STDOUT_FILENO);
  const int error = ::posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments.data(),
                                  environment.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(to.ends[0]);
  ::close(from.ends[1]);
  out_ = ::fdopen(to.ends[1], "w");
  in_ = ::fdopen(from.ends[0], "r");
  if (error != 0) {
    process_ = -1;
    std::fclose(out_);
    std::fclose(in_);
    fail_with(std::strerror(error));
  }
}

ServedBuild::~ServedBuild() {
  if (process_ > 0) {
    std::fclose(out_);  // the end of its input ends the program
    std::fclose(in_);
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
  }
}

void ServedBuild::fail_with(const std::string& what) const {
  fail("bench diff: ", program_, ": ", what);
}

std::string ServedBuild::ask(const std::string& request) {
  std::fputs((request + "\n").c_str(), out_);
  std::fflush(out_);
  std::string answer;
  for (int c = std::fgetc(in_); c != '\n'; c = std::fgetc(in_)) {
    if (c == EOF) {
      fail_with(
          "ended instead of answering; it must know bench --serve (binade) or --serve "
          "(kernel_bench)");
    }
    answer += static_cast<char>(c);
  }
  if (answer.starts_with("{\"error\": ")) {
    fail_with(answer);
  }
  return answer;
}

void ServedBuild::prepare(const CaseSettings& s) {
  ask(text("prepare case ", s.kernel, " ", s.rows, " ", s.cols, " ", s.dtype, " ", s.provider));
}

double ServedBuild::sample() {
  const double seconds = number_behind(ask("sample case"), "seconds");
  if (!(seconds > 0)) {
    fail_with("answered without seconds");
  }
  return seconds;
}

void ServedBuild::drop() { ask("drop"); }

}  // namespace binade::bench
