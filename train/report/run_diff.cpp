#include <binade/core/io/safetensors.h>
#include <binade/core/ops.h>
#include <binade/train/model_file.h>
#include <binade/train/report/numbers_internal.h>
#include <binade/train/report/page.h>
#include <binade/train/report/run_diff.h>
#include <binade/train/run_directory.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace binade::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNone = "-";

void diff_texts(const char* part, const Texts& a, const Texts& b, RunDiff& diff) {
  for (const auto& [name, value] : a) {
    const std::string* other = find_text(b, name);
    if (!other || *other != value) {
      diff.texts.push_back({part, name, value, other ? *other : kNone});
    }
  }
  for (const auto& [name, value] : b) {
    if (!find_text(a, name)) {
      diff.texts.push_back({part, name, kNone, value});
    }
  }
}

// Keys that differ between two equal runs.
bool is_of_time(const std::string& key) {
  return key == "samples_per_second" || key == "workers" ||
         key.find("seconds") != std::string::npos;
}

bool is_same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Nothing if the curves agree wherever both have a value.
std::optional<CurveDifference> diff_curve(const std::string& key, const Curve& a, const Curve& b) {
  CurveDifference found{.key = key, .last_a = a.last(), .last_b = b.last()};
  bool differs = false;
  for (size_t i = 0, k = 0; i < a.step.size() && k < b.step.size();) {
    if (a.step[i] != b.step[k]) {
      a.step[i] < b.step[k] ? ++i : ++k;
      continue;
    }
    ++found.points;
    if (!differs && !is_same_number(a.value[i], b.value[k])) {
      differs = true;
      found.step = a.step[i];
      found.a = a.value[i];
      found.b = b.value[k];
    }
    ++i;
    ++k;
  }
  return differs ? std::optional(found) : std::nullopt;
}

void diff_curves(const Curves& a, const Curves& b, const std::string& kind, RunDiff& diff) {
  for (const auto& [key, curve] : a) {
    if (is_of_time(key)) {
      continue;
    }
    const auto other = b.find(key);
    if (other == b.end()) {
      diff.only_a.push_back(key + kind);
    } else if (const auto found = diff_curve(key + kind, curve, other->second)) {
      diff.curves.push_back(*found);
    } else {
      ++diff.equal_curves;
    }
  }
  for (const auto& [key, curve] : b) {
    if (!is_of_time(key) && !a.contains(key)) {
      diff.only_b.push_back(key + kind);
    }
  }
}

double largest_difference(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || !is_floating(a.dtype())) {
    return kNaN;
  }
  const NoGradGuard no_grad;
  return amax(abs(a.to(DType::f64) - b.to(DType::f64))).item();
}

Tensor tensor_of(const std::string& file, const std::string& name) {
  for (const auto& [found, tensor] : load_tensors(file)) {
    if (found == name) {
      return tensor;
    }
  }
  fail(file, ": got no tensor ", name);
}

// Compares the tensors of two files of one step.
std::optional<TensorDifference> diff_files(const std::string& file_a, const std::string& file_b) {
  const SafetensorsFile a = SafetensorsFile::open(file_a), b = SafetensorsFile::open(file_b);
  std::optional<TensorDifference> first;
  int64_t count = 0;
  const auto add = [&](const std::string& tensor, double most, const std::string& note) {
    if (++count == 1) {
      first = TensorDifference{.where = {}, .tensor = tensor, .most = most, .note = note};
    }
  };
  for (const TensorEntry& entry : a.entries()) {
    const TensorEntry* other = b.find(entry.name);
    if (!other) {
      add(entry.name, kNaN, "only in A");
    } else if (other->sizes != entry.sizes || other->type != entry.type) {
      add(entry.name, kNaN,
          text(entry.type, " ", entry.sizes, " and ", other->type, " ", other->sizes));
    } else if (a.read(entry) != b.read(*other)) {
      double most = kNaN;
      if (!first && entry.dtype) {
        most = largest_difference(tensor_of(file_a, entry.name), tensor_of(file_b, entry.name));
      }
      add(entry.name, most, "");
    }
  }
  for (const TensorEntry& entry : b.entries()) {
    if (!a.find(entry.name)) {
      add(entry.name, kNaN, "only in B");
    }
  }
  if (first) {
    first->tensors = count;
  }
  return first;
}

void keep_earlier(RunDiff& diff, TensorDifference found) {
  if (!diff.tensor || found.step < diff.tensor->step) {
    diff.tensor = std::move(found);
  }
}

// Checkpoints of the same step, and the models at the ends.
void diff_checkpoints(const RunRecord& a, const RunRecord& b, RunDiff& diff) {
  std::vector<std::pair<std::string, int64_t>> both;  // file below the run, step
  for (const RecordedCheckpoint& checkpoint : a.checkpoints) {
    const bool has =
        std::any_of(b.checkpoints.begin(), b.checkpoints.end(), [&](const auto& other) {
          return other.name == checkpoint.name && other.step == checkpoint.step;
        });
    if (has && checkpoint.step >= 0) {
      both.emplace_back("/checkpoint/" + checkpoint.name + "/model.safetensors", checkpoint.step);
    }
  }
  const std::string model = "/model.safetensors";
  if (file_kind(a.path + model) == "a regular file" &&
      file_kind(b.path + model) == "a regular file" && a.step == b.step) {
    both.emplace_back(model, a.step);
  }
  if (both.empty()) {
    diff.notes.emplace_back("no checkpoint of the same step in both: weights were not compared");
  }
  for (const auto& [file, step] : both) {
    try {
      if (auto found = diff_files(a.path + file, b.path + file)) {
        found->where = file.substr(1);
        found->step = step;
        keep_earlier(diff, std::move(*found));
      }
    } catch (const std::exception& error) {
      diff.notes.push_back(error.what());
    }
  }
}

// Lines of lens.jsonl count exponents per tensor and step: finer than checkpoints.
void diff_lens(const RunRecord& a, const RunRecord& b, RunDiff& diff) {
  const std::string name = "/lens.jsonl";
  if (file_kind(a.path + name) != "a regular file" ||
      file_kind(b.path + name) != "a regular file") {
    return;
  }
  const std::vector<std::string> lines_a = read_lines(a.path + name),
                                 lines_b = read_lines(b.path + name);
  for (size_t i = 0; i < std::min(lines_a.size(), lines_b.size()); ++i) {
    if (lines_a[i] == lines_b[i]) {
      continue;
    }
    const Json line = Json::parse(lines_a[i], nullptr, false);
    if (line.is_object() && line.value("step", Json()).is_number_integer() &&
        line.value("tensor", Json()).is_string() && line.value("kind", Json()).is_string()) {
      const auto step = line["step"].get<int64_t>();
      keep_earlier(diff,
                   {.where = text("lens.jsonl, step ", step, ", ", line["kind"].get<std::string>()),
                    .tensor = line["tensor"],
                    .step = step,
                    .tensors = 1,
                    .most = kNaN});
    } else {
      diff.notes.push_back(text("lens.jsonl: line ", i + 1, " of A is no record of a lens"));
    }
    return;
  }
}

}  // namespace

bool RunDiff::same() const {
  const bool same_texts = std::all_of(
      texts.begin(), texts.end(), [](const TextDifference& t) { return t.part == "environment"; });
  return same_texts && curves.empty() && only_a.empty() && only_b.empty() && !tensor;
}

RunDiff diff_runs(const RunRecord& a, const RunRecord& b) {
  RunDiff diff;
  diff_texts("setting", a.settings, b.settings, diff);
  diff_texts("model", a.model, b.model, diff);
  diff_texts("environment", a.environment, b.environment, diff);
  diff_curves(a.steps, b.steps, "", diff);
  diff_curves(a.epochs, b.epochs, " (epochs)", diff);
  std::stable_sort(diff.curves.begin(), diff.curves.end(),
                   [](const auto& x, const auto& y) { return x.step < y.step; });
  diff_checkpoints(a, b, diff);
  diff_lens(a, b, diff);
  return diff;
}

std::string to_text(const RunDiff& diff, const RunRecord& a, const RunRecord& b) {
  using page::short_number;
  std::string out = text("A: ", a.path, " (", a.state(), ", ", a.step, " steps)\nB: ", b.path, " (",
                         b.state(), ", ", b.step, " steps)\n");
  for (const TextDifference& t : diff.texts) {
    out += text("\n", t.part, " ", t.name, "\n  A ", t.a, "\n  B ", t.b, "\n");
  }
  out += text("\ncurves: ", diff.equal_curves, " are the same, ", diff.curves.size(), " differ\n");
  if (!diff.curves.empty()) {
    out += text("  the first step that differs: ", short_number(diff.curves[0].step), " (",
                diff.curves[0].key, ")\n");
  }
  for (const CurveDifference& c : diff.curves) {
    out += text("  ", c.key, ": from step ", short_number(c.step), ", A ", c.a, ", B ", c.b,
                "; at the end A ", short_number(c.last_a), ", B ", short_number(c.last_b), "\n");
  }
  for (const auto& [keys, where] : {std::pair(&diff.only_a, "A"), {&diff.only_b, "B"}}) {
    for (const std::string& key : *keys) {
      out += text("  ", key, ": only in ", where, "\n");
    }
  }
  if (diff.tensor) {
    const TensorDifference& t = *diff.tensor;
    out +=
        text("\nthe first tensor that differs: ", t.tensor, " at step ", t.step, " (", t.where, ")",
             t.note.empty() ? "" : ": " + t.note,
             std::isfinite(t.most) ? text(", by at most ", short_number(t.most)) : std::string(),
             t.tensors > 1 ? text("; ", t.tensors, " tensors differ there") : std::string(), "\n");
  } else {
    out += "\ntensors: no difference was found\n";
  }
  for (const std::string& note : diff.notes) {
    out += "note: " + note + "\n";
  }
  return out + (diff.same() ? "the runs are the same\n" : "");
}

}  // namespace binade::train
