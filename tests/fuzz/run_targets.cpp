// The files of a run: checkpoint manifests, the lock, metrics and lens lines.
#include <bench/bench_record.h>
#include <binade/core/io/crc32c.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/lens_report.h>
#include <binade/train/metrics.h>
#include <binade/train/precision/shadow_report.h>
#include <binade/train/run_lock_internal.h>

#include <nlohmann/json.hpp>

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

}  // namespace

void parse_manifest(Bytes bytes) { check_manifest(text_of(bytes)); }

// As an attacker would who knows the checksum: the text is sealed before it is parsed.
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

}  // namespace binade::fuzz
