#include <binade/core/device/device_info.h>
#include <binade/core/device/device_stats.h>
#include <binade/core/device/memory.h>
#include <binade/core/io/file_system.h>
#include <binade/core/observe/warning.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/base/parallel.h>
#include <binade/train/logging/wall_clock_internal.h>
#include <binade/train/report/run_journal_internal.h>
#include <binade/train/report/run_report.h>
#include <binade/train/run_directory.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace binade::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFactsName = "/run.json";
constexpr const char* kTimeline = "/timeline.jsonl";
constexpr double kFlushSeconds = 2, kShareOfRun = 1e-3;
constexpr size_t kLabels = 12;  // of a line; the rest is one number

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// The value of the first line "NAME : VALUE" of a file of /proc.
std::string value_in(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string::npos) {
      const size_t begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(file), {}};
  while (words.ends_with('\0')) {
    words.pop_back();
  }
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

Json environment(Device device) {
  utsname system{};
  uname(&system);
  return {{"Binade", BINADE_VERSION},
          {"compiler", __VERSION__},
          {"device", describe(device)},
          {"cpu", value_in("/proc/cpuinfo", "model name")},
          {"instruction set", kernels::to_string(kernels::isa())},
          {"threads", text(kernels::threads(), " of ", kernels::usable_cores().count)},
          {"math mode", kernels::to_string(kernels::math_mode())},
          {"memory", value_in("/proc/meminfo", "MemTotal")},
          {"host", system.nodename},
          {"system", text(system.sysname, " ", system.release, " ", system.machine)},
          {"command", command_line()}};
}

std::string dumped(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

void add_memory(Json& line, Device device, MemoryTracker* tracker) {
  const MemoryStats host = memory_stats();
  line["allocated"] = host.allocated;
  line["reserved"] = host.reserved;
  if (!device.is_cpu()) {
    const DeviceMemoryStats stats = memory_stats(device);
    line["device_allocated"] = stats.allocated;
    line["device_reserved"] = stats.reserved;
  }
  if (!tracker) {
    return;
  }
  const std::vector<LabelMemory> labels = tracker->take_peak();
  int64_t rest = 0, sum = 0;
  Json memory;
  for (size_t i = 0; i < labels.size(); ++i) {
    sum += labels[i].bytes;
    if (i < kLabels) {
      memory[labels[i].label.empty() ? "outside of modules" : labels[i].label] = labels[i].bytes;
    } else {
      rest += labels[i].bytes;
    }
  }
  if (rest > 0) {
    memory["other modules"] = rest;
  }
  line["peak"] = sum;
  line["memory"] = memory;
}

}  // namespace

RunJournal::RunJournal(std::string directory, FileSystem& files, int64_t step)
    : directory_(std::move(directory)),
      files_(files),
      started_(wall_text()),
      first_step_(step),
      begun_(Clock::now()),
      next_(begun_),
      flushed_(begun_),
      noted_(begun_) {
  keep_lines(
      directory_ + kTimeline,
      [&](const std::string& text_of_line) {
        const Json line = Json::parse(text_of_line, nullptr, false);
        if (!line.is_object() || !line.contains("step") || !line["step"].is_number() ||
            line["step"].get<double>() > static_cast<double>(step)) {
          return false;
        }
        if (line.contains("seconds") && line["seconds"].is_number()) {
          seconds_before_ = line["seconds"].get<double>();
        }
        return true;
      },
      files_);
  if (step > 0 && file_kind(directory_ + kFactsName) == "a regular file") {
    const std::vector<std::byte> bytes = read_file(directory_ + kFactsName, 16U << 20, files_);
    const Json facts =
        Json::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                    nullptr, false);
    if (facts.is_object() && facts.contains("started") && facts["started"].is_string()) {
      started_ = facts["started"];
    }
  }
}

template <class F>
void RunJournal::without_errors(const char* what, F write) {
  try {
    write();
  } catch (const std::exception& error) {
    if (!warned_) {
      warn(text("trainer: ", what, " could not be written, the run goes on: ", error.what()));
    }
    warned_ = true;
  }
}

double RunJournal::seconds() const {
  return seconds_before_ + seconds_between(begun_, Clock::now());
}

void RunJournal::begin(const RunFacts& facts) {
  facts_ = facts;
  noted_ = Clock::now();
  outcome_ = "running";
  written_ = false;
}

void RunJournal::write_facts() {
  without_errors("run.json", [this] {
    Json model;
    for (const auto& [name, value] : facts_.model) {
      model[name] = value;
    }
    const Json facts{{"format", 1},
                     {"started", started_},
                     {"outcome", outcome_},
                     {"seconds", seconds()},
                     {"epoch", epoch_},
                     {"step", step_},
                     {"settings", facts_.settings},
                     {"model", model},
                     {"environment", environment(facts_.device)}};
    write_file_durably(directory_ + kFactsName, dumped(facts, 1), files_);
  });
}

void RunJournal::note(const RunMoment& moment, MemoryTracker* memory) {
  if (!written_) {
    written_ = true;
    write_facts();
  }
  const Clock::time_point now = Clock::now();
  const double passed = std::max(seconds_between(noted_, now), 1e-9);
  const double wait = moment.loader ? moment.loader->stats().wait_seconds : 0;
  step_ = moment.step;
  epoch_ = moment.epoch;
  Json line{{"epoch", moment.epoch},
            {"step", moment.step},
            {"seconds", seconds()},
            {"samples_per_second", static_cast<double>(moment.samples - noted_samples_) / passed},
            {"wait_share", std::clamp((wait - noted_wait_) / passed, 0.0, 1.0)}};
  for (const auto& [name, value] : moment.values) {
    line[name] = value;
  }
  add_memory(line, facts_.device, memory);
  lines_ += dumped(line);
  noted_ = now;
  noted_samples_ = moment.samples;
  noted_wait_ = wait;
  const double pause = std::max(kLeastSeconds, kShareOfRun * seconds());
  next_ = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause));
  if (seconds_between(flushed_, now) > kFlushSeconds) {
    flush();
  }
}

void RunJournal::flush() {
  flushed_ = Clock::now();
  if (lines_.empty()) {
    return;
  }
  without_errors("timeline.jsonl",
                 [this] { append_to_file(directory_ + kTimeline, lines_, files_); });
  lines_.clear();
}

void RunJournal::end(const std::string& outcome, int64_t step, int64_t epoch) {
  if (!written_ && step == first_step_) {
    return;
  }
  warned_ |= outcome.starts_with("failed");  // the run's own error says enough
  flush();
  outcome_ = outcome;
  step_ = step;
  epoch_ = epoch;
  write_facts();
  report();
}

void RunJournal::report() {
  without_errors("report.html", [this] { write_report(directory_, outcome_, files_); });
}

}  // namespace binade::train
