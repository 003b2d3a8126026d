#include <binade/core/io/file_system.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/report/numbers_internal.h>
#include <binade/train/report/run_record.h>
#include <binade/train/run_directory.h>
#include <binade/train/run_lock_internal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

namespace binade::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetrics = "/metrics.jsonl";
constexpr const char* kOwnLog = "/log.jsonl";
constexpr const char* kFacts = "/run.json";
constexpr uint64_t kMostFacts = 16U << 20;      // bytes
constexpr double kMostStep = 9007199254740992;  // 2^53

bool is_file(const std::string& path) { return file_kind(path) == "a regular file"; }

// A number, or null for one that is not finite.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) {
    return value.get<double>();
  }
  return value.is_null() ? std::optional(kNaN) : std::nullopt;
}

int64_t whole(const Json& line, const char* key, int64_t otherwise) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

void add_point(Curves& curves, const std::string& key, double step, double value) {
  Curve& curve = curves[key];
  curve.step.push_back(step);
  curve.value.push_back(value);
}

// Calls take(line) for each line that is an object with a step; counts the others.
template <class F>
void read_json_lines(const std::string& file, RunRecord& record, F take) {
  int64_t number = 0, broken = 0, first_broken = 0;
  for (const std::string& text_of_line : read_lines(file)) {
    ++number;
    const Json line = Json::parse(text_of_line, nullptr, false);
    const auto step = line.is_object() ? line.find("step") : line.end();
    if (step != line.end() && step->is_number() && step->get<double>() >= 0 &&
        step->get<double>() <= kMostStep) {
      take(line);
    } else if (text_of_line.ends_with('\n')) {  // else it is being written
      first_broken = broken++ == 0 ? number : first_broken;
    }
  }
  if (broken > 0) {
    record.notes.push_back(text(std::filesystem::path(file).filename().native(), ": ", broken,
                                broken == 1 ? " line" : " lines", " of ", number,
                                " could not be read and were left out, the first is line ",
                                first_broken));
  }
}

// Sorts what is not in the order of the steps: a log of two processes.
void put_in_order(Curves& curves) {
  for (auto& entry : curves) {
    Curve& curve = entry.second;
    if (std::is_sorted(curve.step.begin(), curve.step.end())) {
      continue;
    }
    std::vector<size_t> order(curve.step.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return curve.step[a] < curve.step[b]; });
    Curve sorted;
    for (const size_t i : order) {
      sorted.step.push_back(curve.step[i]);
      sorted.value.push_back(curve.value[i]);
    }
    curve = std::move(sorted);
  }
}

void read_metrics(const std::string& file, RunRecord& record) {
  read_json_lines(file, record, [&record](const Json& line) {
    const auto step = line["step"].get<double>();
    record.step = std::max(record.step, static_cast<int64_t>(step));
    record.epoch = std::max(record.epoch, whole(line, "epoch", -1));
    Texts words;
    for (const auto& [key, value] : line.items()) {
      if (value.is_string()) {
        words.emplace_back(key, value.get<std::string>());
      }
    }
    Curves& curves = words.empty() ? record.steps : record.epochs;
    for (const auto& [key, value] : line.items()) {
      const auto number = number_of(value);
      if (number && key != "step" && key != "epoch") {
        add_point(curves, key, step, *number);
      }
    }
    record.words = words.empty() ? record.words : std::move(words);
  });
  put_in_order(record.steps);
  put_in_order(record.epochs);
}

void read_timeline(const std::string& file, RunRecord& record) {
  read_json_lines(file, record, [&record](const Json& line) {
    const auto step = line["step"].get<double>();
    for (const auto& [key, value] : line.items()) {
      if (key == "memory" && value.is_object()) {
        for (const auto& [label, bytes] : value.items()) {
          if (bytes.is_number()) {
            add_point(record.memory, label, step, bytes.get<double>());
          }
        }
      } else if (const auto number = number_of(value); number && key != "step") {
        add_point(record.timeline, key, step, *number);
      }
    }
    record.step = std::max(record.step, static_cast<int64_t>(step));
    record.epoch = std::max(record.epoch, whole(line, "epoch", -1));
  });
  put_in_order(record.timeline);
  put_in_order(record.memory);
}

std::string word_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Texts texts_of(const Json& facts, const char* key) {
  Texts texts;
  const auto found = facts.find(key);
  if (found != facts.end() && found->is_object()) {
    for (const auto& [name, value] : found->items()) {
      texts.emplace_back(name, word_of(value));
    }
  }
  return texts;
}

void read_facts(const std::string& file, RunRecord& record) {
  const std::vector<std::byte> bytes = read_file(file, kMostFacts);
  const Json facts = Json::parse(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), nullptr, false);
  check(facts.is_object(), "run.json is no JSON object");
  record.settings = texts_of(facts, "settings");
  record.environment = texts_of(facts, "environment");
  record.model = texts_of(facts, "model");
  const auto word = [&facts](const char* key) {
    return facts.contains(key) && facts[key].is_string() ? facts[key].get<std::string>()
                                                         : std::string();
  };
  record.started = word("started");
  record.outcome = word("outcome");
  if (facts.contains("seconds") && facts["seconds"].is_number()) {
    record.seconds = facts["seconds"].get<double>();
  }
  record.step = std::max(record.step, whole(facts, "step", 0));
}

void read_checkpoints(const std::string& folder, RunRecord& record) {
  if (file_kind(folder) != "a directory") {
    return;
  }
  for (const DirectoryEntry& entry : list_directory(folder)) {
    if (!entry.is_directory || entry.name.ends_with(".tmp")) {
      continue;
    }
    RecordedCheckpoint checkpoint{.name = entry.name};
    try {
      const Manifest manifest = read_manifest(folder + "/" + entry.name, file_system());
      checkpoint.step = manifest.step;
      for (const auto& [name, file] : manifest.files) {
        checkpoint.bytes += file.bytes;
      }
    } catch (const std::exception& error) {
      checkpoint.note = error.what();
    }
    record.checkpoints.push_back(std::move(checkpoint));
  }
  std::sort(record.checkpoints.begin(), record.checkpoints.end(), [](const auto& a, const auto& b) {
    return a.step != b.step ? a.step < b.step : a.name < b.name;
  });
}

// The traces of the run: what is slow in rank 0, and what the adviser says of all ranks.
void read_profile(const std::string&, RunRecord& record) {
  const std::vector<Trace> ranks = read_traces(record.path);
  const Trace& trace = ranks[0];
  record.ops = rows_by_op(trace);
  record.modules = rows_by_module(trace);
  record.traced_steps = static_cast<int64_t>(trace.steps().size());
  if (record.traced_steps > 0) {
    record.step_milliseconds = trace.duration() * 1e-3 / static_cast<double>(record.traced_steps);
    record.stalls = to_text(find_stalls(ranks));
  }
  if (trace.dropped > 0) {
    record.notes.push_back(text("trace.json: ", trace.dropped,
                                " events had no room and are missing; record fewer steps"));
  }
}

// Reads one file of the run where it is there; what goes wrong is a note.
template <class F>
void read_part(RunRecord& record, const std::string& name, F read) {
  const std::string file = record.path + name;
  if (!is_file(file)) {
    return;
  }
  try {
    read(file, record);
  } catch (const std::exception& error) {
    record.notes.push_back(text(name.substr(1), " could not be read: ", error.what()));
  }
}

}  // namespace

const std::string* find_text(const Texts& texts, const std::string& name) {
  for (const auto& [key, value] : texts) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

double Curve::last() const { return value.empty() ? kNaN : value.back(); }

double Curve::least_finite() const {
  double least = kNaN;
  for (const double v : value) {
    least = std::isfinite(v) && !(least <= v) ? v : least;
  }
  return least;
}

double Curve::most_finite() const {
  double most = kNaN;
  for (const double v : value) {
    most = std::isfinite(v) && !(most >= v) ? v : most;
  }
  return most;
}

const Curve* RunRecord::curve(const std::string& key) const {
  for (const Curves* curves : {&steps, &epochs}) {
    if (const auto found = curves->find(key); found != curves->end()) {
      return &found->second;
    }
  }
  return nullptr;
}

std::string RunRecord::state() const {
  if (is_running) {
    return "running";
  }
  return outcome.empty() || outcome == "running" ? "ended without a word" : outcome;
}

bool is_run(const std::string& path) {
  return file_kind(path) == "a directory" &&
         (is_file(path + kMetrics) || is_file(path + kOwnLog) || is_file(path + kFacts));
}

RunRecord read_run(const std::string& path, const ReadRunOptions& options) {
  const std::string kind = file_kind(path);
  check(kind == "a directory", path, ": got ", kind, ", expected the directory of a run");
  check(is_run(path), path,
        ": got a directory without metrics.jsonl, log.jsonl and run.json, expected that of a run "
        "(TrainerOptions::run, or --run of a program)");
  RunRecord record{.path = path, .name = {}};
  const auto plain = std::filesystem::path(path).lexically_normal();
  record.name = (plain.has_filename() ? plain : plain.parent_path()).filename().native();
  read_part(record, kFacts, read_facts);
  read_part(record, is_file(path + kMetrics) ? kMetrics : kOwnLog, read_metrics);
  read_part(record, "/timeline.jsonl", read_timeline);
  if (const auto found = record.timeline.find("seconds"); found != record.timeline.end()) {
    record.seconds = std::max(record.seconds, found->second.last());
  }
  record.is_running = RunLock::is_held(path);
  if (options.checkpoints) {
    try {
      read_checkpoints(path + "/checkpoint", record);
    } catch (const std::exception& error) {
      record.notes.push_back(text("checkpoint could not be read: ", error.what()));
    }
  }
  if (options.lens) {
    read_part(record, "/lens.jsonl",
              [](const std::string& file, RunRecord& r) { r.lens = read_lens(file); });
  }
  if (options.trace) {
    read_part(record, "/trace.json", read_profile);
  }
  return record;
}

Curve downsampled(const Curve& curve, size_t buckets) {
  const size_t count = curve.step.size();
  if (count <= 4 * buckets) {
    return curve;
  }
  Curve out;
  for (size_t b = 0; b < buckets; ++b) {
    const size_t begin = b * count / buckets, end = (b + 1) * count / buckets;
    size_t least = begin, most = begin, lost = end;
    for (size_t i = begin; i < end; ++i) {
      const double v = curve.value[i];
      if (!std::isfinite(v)) {
        lost = std::min(lost, i);
        continue;
      }
      least = !(curve.value[least] <= v) ? i : least;
      most = !(curve.value[most] >= v) ? i : most;
    }
    std::vector<size_t> kept{begin, least, most, end - 1};
    if (lost < end) {
      kept.push_back(lost);
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const size_t i : kept) {
      out.step.push_back(curve.step[i]);
      out.value.push_back(curve.value[i]);
    }
  }
  return out;
}

}  // namespace binade::train
