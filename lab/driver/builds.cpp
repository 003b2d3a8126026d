#include <binade/lab/driver/builds_internal.h>
#include <binade/lab/driver/results_internal.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace binade::lab {
namespace {

constexpr int kMostDeaths = 6;
constexpr auto kCompileLimit = std::chrono::minutes(5);

// Returns at most `most` lines of the compiler's output that report errors.
std::string errors_of(const std::string& text, int most) {
  std::istringstream lines(text);
  std::string out, line;
  for (int shown = 0; shown < most && std::getline(lines, line);) {
    if (line.find("error") != std::string::npos ||
        line.find("undefined reference") != std::string::npos) {
      out += (out.empty() ? "" : "\n") + line;
      ++shown;
    }
  }
  return out.empty() ? text.substr(0, 2000) : out;
}

void compile(const BuildJob& job, const std::string& program, BuildResult& result) {
  const std::string errors = program + ".txt";
  for (const auto& words : job.toolchain.commands(job.build, job.source, program)) {
    Process compiler({words, errors, errors, {{"LC_ALL", "C"}}});
    const ProcessEnd end = compiler.wait(kCompileLimit);
    result.times.compile_seconds += end.seconds;
    result.warnings = text_of_file(errors);
    if (end.status != 0) {  // check() would escape the newlines
      throw Error(text("kernel: the file does not compile:\n", errors_of(result.warnings, 5)));
    }
  }
}

// Describes the end of a child process in one line.
std::string reason_of(const ProcessEnd& end, const std::string& errors) {
  const size_t sanitizer = errors.find("ERROR: AddressSanitizer: ");
  if (sanitizer != std::string::npos) {
    const size_t begin = sanitizer + std::strlen("ERROR: AddressSanitizer: ");
    return errors.substr(begin, errors.find('\n', begin) - begin);
  }
  if (end.late) {
    return "did not end";
  }
  if (end.signal != 0) {
    return text("ended by signal ", end.signal, " (", ::strsignal(end.signal), ")");
  }
  return errors.empty() ? text("ended with status ", end.status)
                        : errors.substr(0, errors.find('\n'));
}

// The last run that began; `whole` is true if it also ended.
struct Progress {
  uint32_t begun = 0;
  bool any = false, whole = true;
};
Progress progress_of(const std::vector<Record>& records) {
  Progress progress;
  for (const Record& record : records) {
    if (record.kind == RecordKind::begin) {
      progress = {record.run, true, false};
    } else if (record.kind == RecordKind::end) {
      progress.whole = true;
    }
  }
  return progress;
}

// Reads new records from a file that still grows.
class RecordTail {
 public:
  explicit RecordTail(std::string path) : path_(std::move(path)) {}

  void look(const std::function<void(const Record&)>& f) {
    std::ifstream in(path_, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(done_));
    std::ostringstream bytes;
    bytes << in.rdbuf();
    for (const Record& record : records_from(bytes.view())) {
      done_ += to_bytes(record).size();
      f(record);
    }
  }

 private:
  std::string path_;
  size_t done_ = 0;
};

// The results of the child processes of one part, which ran one after the other: if one dies, the
// next continues with the following run.
struct PartResult {
  double seconds = 0;
  std::vector<Record> records = {};
  std::vector<BuildResult::Death> deaths = {};
  std::string output = {};
};
PartResult run_part(const BuildJob& job, const std::string& program, uint32_t part) {
  PartResult result;
  for (uint32_t first = 0; first < job.problem.runs.size();) {
    const std::string records = text(program, ".records.", part, ".", first),
                      output = records + ".out", errors = records + ".err";
    Process child({{program, program + ".problem", records, text(first), text(part)},
                   output,
                   errors,
                   {{"ASAN_OPTIONS",
                     "detect_leaks=0:halt_on_error=0:detect_container_overflow=0:"
                     "handle_segv=1:handle_sigill=0:handle_sigfpe=0"},
                    {"UBSAN_OPTIONS", "print_stacktrace=0"}}});
    RecordTail tail(records);
    const auto look = [&] {
      if (job.on_record) {
        tail.look(job.on_record);
      }
    };
    const ProcessEnd end = child.wait(std::chrono::seconds(job.seconds), look);
    look();
    result.seconds += end.seconds;
    const std::vector<Record> of_child = records_from(text_of_file(records));
    result.records.insert(result.records.end(), of_child.begin(), of_child.end());
    if (first == 0) {
      result.output = text_of_file(output);
    }
    if (end.status == 0) {
      break;
    }
    const Progress progress = progress_of(of_child);
    check(progress.any, "kernel: the ", name_of(job.build),
          " build of the file does not start: ", reason_of(end, text_of_file(errors)));
    result.deaths.push_back({progress.begun, reason_of(end, text_of_file(errors)), end.late});
    first = progress.begun + 1;
    if (end.late || result.deaths.size() >= kMostDeaths) {
      break;
    }
  }
  return result;
}

// Distributes the runs over child processes that work in parallel. A run with `goes_on` stays with
// the run before it. The distribution depends only on the number of cores.
uint32_t deal_out(Problem& problem) {
  const uint32_t most = std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
  uint32_t next = 0, parts = 1;
  for (ProblemRun& run : problem.runs) {
    next += run.goes_on ? 0 : 1;
    run.part = (std::max(next, 1u) - 1) % most;
    parts = std::max(parts, run.part + 1);
  }
  return parts;
}

}  // namespace

BuildResult run_build(const BuildJob& job) {
  BuildResult result;
  result.build = job.build;
  result.times.name = name_of(job.build);
  result.times.runs = static_cast<int>(job.problem.runs.size());
  const std::string program = job.scratch / name_of(job.build);
  compile(job, program, result);
  check(!find_program(program).empty(), "kernel: the compiler ", job.toolchain.compiler,
        " does not compile: it made no program");
  Problem problem = job.problem;
  const uint32_t parts = deal_out(problem);
  write_text(program + ".problem", to_bytes(problem));
  std::vector<std::future<PartResult>> started;
  for (uint32_t part = 0; part < parts; ++part) {
    started.push_back(
        std::async(std::launch::async, [&, part] { return run_part(job, program, part); }));
  }
  for (auto& part : results_of(started)) {
    result.times.run_seconds = std::max(result.times.run_seconds, part.seconds);
    result.records.insert(result.records.end(), std::make_move_iterator(part.records.begin()),
                          std::make_move_iterator(part.records.end()));
    result.deaths.insert(result.deaths.end(), part.deaths.begin(), part.deaths.end());
    result.output += part.output;
  }
  std::stable_sort(result.records.begin(), result.records.end(),
                   [](const Record& a, const Record& b) { return a.run < b.run; });
  return result;
}

}  // namespace binade::lab
