// The child process of the lab. "PROGRAM PROBLEM RECORDS FIRST PART" executes the runs of one part,
// starting with run FIRST. It is linked with the user's translated kernels and one build of the
// executor.
#include <binade/kernels/host/access_report.h>
#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/fault_signal.h>
#include <binade/kernels/host/named_ranges.h>
#include <binade/kernels/host/schedules.h>
#include <binade/lab/runner/convert_internal.h>
#include <binade/lab/runner/problem.h>
#include <binade/lab/runner/wire.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <sstream>

extern "C" void binade_lab_solve(void* const* arguments);

namespace binade::lab {
namespace {

namespace host = kernels::host;

int records_file = -1;
uint32_t current_run = 0;

void emit(RecordKind kind, const WireWriter& payload = {}) {
  const std::string bytes = to_bytes(Record{kind, current_run, payload.bytes()});
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(records_file, bytes.data() + done, bytes.size() - done);
    if (written <= 0) {
      std::_Exit(4);
    }
    done += static_cast<size_t>(written);
  }
}

template <class T>
void emit_found(RecordKind kind, const T& found) {
  WireWriter out;
  write(out, found);
  emit(kind, out);
}
void emit_early(const host::Finding& finding) {
  emit_found(RecordKind::early, found_from(finding));
}

// The arguments of a run in memory, and the pointers that solve() receives.
class Arguments {
 public:
  explicit Arguments(const ProblemRun& run) : run_(run) {
    for (const ProblemArgument& a : run.arguments) {
      if (a.passing == Passing::array) {
        buffers_.push_back(std::make_unique<host::GuardedBuffer>(
            host::GuardedOptions{.name = a.name,
                                 .bytes = static_cast<size_t>(a.count) * bytes_of(a.element),
                                 .element_bytes = bytes_of(a.element),
                                 .read_only = !a.is_output,
                                 .row_elements = a.row_elements,
                                 .row_pitch = a.row_pitch}));
        pointers_.push_back(buffers_.back()->data());
      } else {
        buffers_.push_back(nullptr);
        pointers_.push_back(nullptr);
      }
    }
    for (size_t i = 0; i < run.arguments.size(); ++i) {
      const ProblemArgument& a = run.arguments[i];
      places_.push_back(a.passing == Passing::array    ? static_cast<void*>(&pointers_[i])
                        : a.passing == Passing::stream ? static_cast<void*>(&stream_)
                                                       : const_cast<char*>(a.bytes.data()));
    }
  }

  void* const* places() const { return places_.data(); }
  // Restores the inputs and marks the outputs as not written.
  void fill() {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i] != nullptr) {
        buffers_[i]->reset();
        buffers_[i]->write(run_.arguments[i].bytes.data(), run_.arguments[i].bytes.size());
      }
    }
  }
  void emit_outputs(const std::string& schedule) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i] != nullptr && run_.arguments[i].is_output) {
        const std::string_view bytes(static_cast<const char*>(buffers_[i]->data()),
                                     buffers_[i]->bytes());
        emit(RecordKind::outputs,
             WireWriter().add(schedule).add(run_.arguments[i].name).add(bytes));
      }
    }
  }
  void emit_writers() const {
    constexpr int64_t kMostElements = 32768;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const ProblemArgument& a = run_.arguments[i];
      if (buffers_[i] != nullptr && a.is_output && a.count <= kMostElements) {
        emit_found(RecordKind::writers,
                   writers_of(a.name, buffers_[i]->data(), static_cast<size_t>(a.count),
                              bytes_of(a.element)));
      }
    }
  }
  // Looks for changed guards and inputs. Builds without the race detector notice them only here.
  void check() const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i] != nullptr) {
        buffers_[i]->check_guards();
        if (!run_.arguments[i].is_output) {
          check_input(run_.arguments[i], *buffers_[i]);
        }
      }
    }
  }
  std::vector<host::Compared> outputs() const {
    std::vector<host::Compared> list;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i] != nullptr && run_.arguments[i].is_output) {
        list.push_back({buffers_[i]->data(), buffers_[i]->bytes()});
      }
    }
    return list;
  }

 private:
  static void check_input(const ProblemArgument& a, const host::GuardedBuffer& buffer) {
    const auto* now = static_cast<const char*>(buffer.data());
    const size_t bytes = bytes_of(a.element);
    for (size_t i = 0; i < a.bytes.size(); i += bytes) {
      if (std::memcmp(now + i, a.bytes.data() + i, bytes) != 0) {
        host::Finding finding;
        finding.kind = host::FindingKind::write_to_input;
        finding.severity = host::severity_of(finding.kind);
        finding.first.act = host::Act::write;
        finding.element = host::element_at(now + i);
        finding.message = text(a.name, " is an input, but element ", i / bytes, " changed");
        host::add_finding(finding);
        return;
      }
    }
  }

  const ProblemRun& run_;
  std::vector<std::unique_ptr<host::GuardedBuffer>> buffers_;
  std::vector<void*> pointers_, places_;
  cudaStream_t stream_ = nullptr;
};

std::vector<host::ScheduleOptions> schedules_of(const ProblemRun& run) {
  if (run.schedules > 2) {
    return host::all_schedules();
  }
  std::vector<host::ScheduleOptions> list(1);
  if (run.schedules == 2) {
    list.push_back({.schedule = host::Schedule::reverse});
  }
  return list;
}

void emit_counts() {
  for (const host::AccessRow& row : host::access_report()) {
    emit_found(RecordKind::count, found_from(row));
  }
  for (const host::TogetherRow& row : host::together_report()) {
    emit_found(RecordKind::together, found_from(row));
  }
  for (const KernelShape& shape : take_launches()) {
    emit_found(RecordKind::launch, found_from(shape));
  }
}

// True if a thread of the run did not end.
bool was_endless() {
  const std::vector<host::Finding> all = host::findings();
  return std::any_of(all.begin(), all.end(), [](const host::Finding& finding) {
    return finding.kind == host::FindingKind::step_limit;
  });
}

void run_one(const Problem& problem, const ProblemRun& run) {
  emit(RecordKind::begin);
  host::reset_findings();
  host::reset_access_report();
  Arguments arguments(run);
  host::CheckOptions& checks = host::check_options();
  checks.collect_findings = true;
  checks.only_named_memory = true;
  checks.host_accesses = false;  // true only while solve() runs
  checks.step_limit = problem.step_limit;
  checks.sampled_blocks = run.sampled_blocks;
  const std::vector<host::ScheduleOptions> schedules = schedules_of(run);
  bool counts = run.counts && host::has_race_detector();
  size_t number = 0;
  host::compare_schedules(schedules, arguments.outputs(), [&] {
    host::options().count_accesses = counts;
    const std::string name = to_string(schedules[number++ % schedules.size()]);
    arguments.fill();
    checks.host_accesses = true;
    try {
      binade_lab_solve(arguments.places());
    } catch (const std::exception& error) {
      emit(RecordKind::failed, WireWriter().add(name).add(std::string(error.what())));
    }
    checks.host_accesses = false;
    std::fflush(stdout);
    arguments.check();
    arguments.emit_outputs(name);
    if (run.writers && number == 1 && host::has_race_detector()) {
      arguments.emit_writers();
    }
    if (counts) {
      emit_counts();
    }
    counts = false;
    take_launches();
    free_allocations();
  });
  for (const host::Finding& finding : host::findings()) {
    emit_found(RecordKind::finding, found_from(finding));
  }
  for (const NumberNote& note : take_notes()) {
    emit_found(RecordKind::number, found_from(note));
  }
  emit(RecordKind::end);
}

int main_of(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("expected PROBLEM RECORDS FIRST PART\n", stderr);
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  const Problem problem = problem_from(bytes.view());
  records_file = ::open(argv[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  check(records_file >= 0, "cannot write ", argv[2]);
  host::catch_fault_signals();
  host::set_finding_sink(emit_early);
  constexpr int kMostEndless = 2;  // stop after so many runs with endless threads
  int endless = 0;
  for (auto i = static_cast<size_t>(std::atoll(argv[3])); i < problem.runs.size(); ++i) {
    if (problem.runs[i].part != static_cast<uint32_t>(std::atoll(argv[4]))) {
      continue;
    }
    current_run = static_cast<uint32_t>(i);
    run_one(problem, problem.runs[i]);
    endless += was_endless() ? 1 : 0;
    if (endless >= kMostEndless) {
      break;
    }
  }
  return 0;
}

}  // namespace
}  // namespace binade::lab

int main(int argc, char** argv) {
  try {
    return binade::lab::main_of(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
