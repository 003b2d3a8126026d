// peer_work: Binade's side of bench/peers/run. Reads one command per line and answers each with one
// line of JSON, {"error": "..."} if it fails. torch_work.py has the same commands.
//
//   prepare WORK FORM THREADS         sets up the work and runs it a few times; FORM is always
//   eager slice FORM SECONDS                repeats it for so long: units done, clock and processor
//                                     seconds, memory taken from the system meanwhile
//   peak                              largest resident memory so far, MiB
//   start WORK FILE                   writes parameters and inputs of work with a model; answers
//   with
//                                     the values of its first call: losses, or a summary of outputs
//   curve WORK FILE STEPS LR BATCH    the losses of a short training (bench/peers/loss_curves.py)
//
// WORK is a name (gelu) or, with a model, STEP:MODEL:BATCH:RULE (train:mlp:64:sgd).
#include <bench/peers/work.h>
#include <binade/core/device/memory.h>
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/parallel.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

namespace binade::peers {
namespace {

constexpr int kWarmUp = 3;  // calls that fill pools and caches

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stod(line.substr(6)) / 1024;
    }
  }
  fail("peer_work: no VmHWM in /proc/self/status");
}

template <class T>
T next(std::istream& words, const char* what) {
  T value{};
  check(static_cast<bool>(words >> value), "peer_work: expected ", what);
  return value;
}

class Session {
 public:
  std::string answer(const std::string& line) {
    std::istringstream words(line);
    const auto command = next<std::string>(words, "a command");
    if (command == "prepare") {
      return prepare(words);
    }
    if (command == "slice") {
      return slice(words);
    }
    if (command == "peak") {
      return text("{\"peak_mb\": ", peak_mb(), "}");
    }
    if (command == "start") {
      const auto work = next<std::string>(words, "a name of work");
      return listed("values", start_values(work, next<std::string>(words, "a file")));
    }
    check(command == "curve", "peer_work: got '", command,
          "', expected prepare, slice, peak, start or curve");
    return curve(words);
  }

 private:
  std::string prepare(std::istream& words) {
    const auto name = next<std::string>(words, "a name of work");
    const auto form = next<std::string>(words, "a form");
    const auto threads = next<int>(words, "a number of threads");
    check(form == "eager", "peer_work: got form '", form, "', expected eager");
    check(threads >= 1, "peer_work: got ", threads, " threads, expected at least 1");
    kernels::set_threads(threads);
    work_.reset();  // first, so that two works are not in memory at once
    work_ = make_work(name);
    for (int i = 0; i < kWarmUp; ++i) {
      work_->call();
    }
    return "{\"ok\": true}";
  }

  std::string slice(std::istream& words) {
    next<std::string>(words, "a form");
    const auto wanted = next<double>(words, "a number of seconds");
    check(work_ != nullptr, "peer_work: slice before prepare");
    const int64_t allocations = memory_stats().system_allocations;
    const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), start = seconds_of(CLOCK_MONOTONIC);
    double now = start;
    int64_t units = 0;
    while (units == 0 || now - start < wanted) {
      work_->call();
      units += work_->units();
      now = seconds_of(CLOCK_MONOTONIC);
    }
    return text("{\"units\": ", units, ", \"wall\": ", now - start,
                ", \"cpu\": ", seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu,
                ", \"allocations\": ", memory_stats().system_allocations - allocations, "}");
  }

  static std::string curve(std::istream& words) {
    CurveOptions options;
    options.work = next<std::string>(words, "a name of work");
    options.file = next<std::string>(words, "a file");
    options.steps = next<int64_t>(words, "a number of steps");
    options.lr = next<double>(words, "a learning rate");
    options.batch = next<int64_t>(words, "a batch size");
    return listed("losses", loss_curve(options));
  }

  static std::string listed(const char* name, const std::vector<double>& values) {
    std::string list;
    for (double value : values) {
      list += text(list.empty() ? "" : ", ", value);
    }
    return text("{\"", name, "\": [", list, "]}");
  }

  std::unique_ptr<Work> work_;
};

}  // namespace
}  // namespace binade::peers

int main() {
  binade::peers::Session session;
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    try {
      answer = session.answer(line);
    } catch (const std::exception& error) {
      answer = "{\"error\": " + binade::json_quoted(error.what()) + "}";
    }
    std::printf("%s\n", answer.c_str());
    std::fflush(stdout);
  }
}
