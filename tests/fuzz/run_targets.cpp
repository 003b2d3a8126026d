// The files of a run: checkpoint manifests, the lock, metrics, lens lines, traces, loss scales, and
// what a report makes of all.
#include <bench/bench_record.h>
#include <binade/core/io/crc32c.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/lens_report.h>
#include <binade/train/metrics.h>
#include <binade/train/precision/scale_replay.h>
#include <binade/train/precision/shadow_report.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/profile/trace_tables.h>
#include <binade/train/report/run_report.h>
#include <binade/train/run_lock_internal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/core/io/model_file_system.h"
#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

void check_manifest(std::string_view text) {
  const train::Manifest manifest = train::parse_manifest("fuzz", text);
  require(train::manifest_text(manifest) == text, "a manifest is written as it was read");
  require(manifest.step >= 0 && manifest.step <= train::kMaxStep, "a step is in its range");
  for (const auto& [name, record] : manifest.files) {
    train::check_file_name("fuzz", name);
  }
}

testing::ModelFileSystem disk_with(const std::string& path, std::string_view bytes) {
  testing::ModelFileSystem files;
  OutputFile file(path, files);
  file.write(bytes);
  file.finish();
  return files;
}

// A folder of the fuzzer, removed at its end.
class RunFolder {
 public:
  RunFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "binade-fuzz-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    path_ = name;
  }
  ~RunFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
  }

 private:
  std::string path_;
};

}  // namespace

void parse_manifest(Bytes bytes) { check_manifest(text_of(bytes)); }

// Computes the checksum of the text before parsing, as an attacker could.
void parse_sealed_manifest(Bytes bytes) {
  using nlohmann::json;
  json root = json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!root.is_object()) {
    return;
  }
  root.erase("checksum");
  try {
    const std::string rest = root.dump();
    char checksum[9];
    std::snprintf(
        checksum, sizeof checksum, "%08x",
        static_cast<unsigned>(crc32c(std::as_bytes(std::span(rest.data(), rest.size())))));
    root["checksum"] = checksum;
    check_manifest(root.dump(1) + "\n");
  } catch (const json::exception&) {  // a string that is not UTF-8
  }
}

void parse_file_list(Bytes bytes) {
  const auto names = train::parse_list("fuzz", text_of(bytes));
  require(names.empty() || train::list_text(names) == text_of(bytes),
          "a list is written as it was read");
}

void parse_run_lock(Bytes bytes) {
  const train::RunOwner owner = train::parse_lock(std::string(text_of(bytes)));
  if (owner.token.empty()) {
    fail("fuzz: not a lock");
  }
  const train::RunOwner again = train::parse_lock(train::lock_text(owner));
  require(again.token == owner.token && again.pid == owner.pid && again.start == owner.start &&
              again.earlier == owner.earlier,
          "a lock is written as it was read");
  require(owner.pid > 0, "a lock names a process");
}

void parse_metrics(Bytes bytes) {
  testing::ModelFileSystem files = disk_with("metrics.jsonl", text_of(bytes));
  train::MetricsFile metrics("metrics.jsonl", 3, 100, files);
  metrics.set_in_last({{"test_accuracy", 0.5}});
  metrics.append({.step = 101, .epoch = 3, .values = {{"train_loss", 1}}, .words = {}});
  metrics.add({.step = 102, .epoch = 3, .values = {}, .words = {{"precision", "fp32"}}});
}

void parse_bench_record(Bytes bytes) {
  const bench::BenchRecord record = bench::parse_bench_record("fuzz", text_of(bytes));
  for (const bench::CaseRecord& one : record.cases) {
    require(!one.samples.empty() && one.settings.rows > 0 && one.settings.cols > 0,
            "a case has a size and samples");
  }
}

void parse_lens(Bytes bytes) {
  testing::ModelFileSystem files = disk_with("lens.jsonl", text_of(bytes));
  train::keep_lens_lines("lens.jsonl", 5, files);
  const MemoryFile file(bytes);
  const train::LensReport report = train::read_lens(file.path());
  require(report.steps >= 1 && report.first_step <= report.last_step, "a report has steps");
  train::to_text(report);
  train::to_html(report);
}

void parse_shadow(Bytes bytes) {
  testing::ModelFileSystem files = disk_with("shadow.jsonl", text_of(bytes));
  train::keep_shadow_lines("shadow.jsonl", int64_t{1} << 62, files);
  const std::vector<train::ShadowStep> steps = train::read_shadow("shadow.jsonl", files);
  require(!steps.empty(), "a shadow has steps");
  for (const train::ShadowStep& step : steps) {
    train::to_text(step);
    train::modules_of(step);
  }
  train::to_html(steps);
}

// Parses a trace of the profiler, and runs the adviser and the tables on it.
void parse_trace(Bytes bytes) {
  const train::Trace trace = train::parse_trace(std::string(text_of(bytes)), "fuzz");
  require(train::parse_trace(train::trace_json(trace), "again") == trace,
          "a trace is written as it was read");
  train::trace_tables(trace);
  train::flame_graph(trace);
  if (!trace.steps().empty()) {
    to_text(train::find_stalls({&trace, 1}));
  }
}

void parse_scaler_log(Bytes bytes) {
  testing::ModelFileSystem files = disk_with("scaler.jsonl", text_of(bytes));
  const train::ScalerLog log = train::read_scaler_log("scaler.jsonl", {}, files);
  require(!log.records.empty(), "a log has records");
  for (const char* policy : {"static:1024", "dynamic:interval=3,hysteresis=2"}) {
    const train::ScaleReplay replay = train::replay(log, train::parse_scale_policy(policy));
    require(replay.overflows.size() == log.records.size() && replay.exact >= 0 &&
                replay.skipped_low <= replay.skipped_high,
            "a replay has an outcome for each step");
    train::to_text(log, {&replay, 1});
  }
  train::keep_scaler_lines("scaler.jsonl", log.records.back().step, files);
}

// The files of a run directory, each after a line "== NAME", and what reports make of them. The
// reader refuses nothing inside of a run: it notes it.
void parse_run_record(Bytes bytes) {
  const RunFolder folder;
  std::string_view rest = text_of(bytes);
  constexpr std::string_view kMark = "== ";
  const std::set<std::string_view> names{"metrics.jsonl",  "log.jsonl",  "run.json",
                                         "timeline.jsonl", "lens.jsonl", "trace.json"};
  bool any = false;
  while (rest.starts_with(kMark)) {
    const size_t line = std::min(rest.find('\n'), rest.size());
    const std::string_view name = rest.substr(kMark.size(), line - kMark.size());
    rest.remove_prefix(std::min(line + 1, rest.size()));
    const size_t next = rest.starts_with(kMark) ? 0 : std::min(rest.find("\n== "), rest.size());
    if (names.contains(name)) {
      folder.write(std::string(name), rest.substr(0, next));
      any = true;
    }
    rest.remove_prefix(std::min(next + (next > 0 ? 1 : 0), rest.size()));
  }
  check(any, "fuzz: no file of a run");
  const train::RunRecord run = train::read_run(folder.path());
  for (const train::Curves* curves : {&run.steps, &run.epochs, &run.timeline, &run.memory}) {
    for (const auto& [key, curve] : *curves) {
      require(curve.step.size() == curve.value.size(), "a curve has a value for each step");
      require(std::is_sorted(curve.step.begin(), curve.step.end()), "a curve is in order");
      train::downsampled(curve, 3);
    }
  }
  require(train::report_page({run}).size() <= train::kMostReportBytes, "a page is small");
}

}  // namespace binade::fuzz
