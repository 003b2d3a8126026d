// Two runs side by side: where they differ, and where they begin to.
#pragma once
#include <binade/train/report/run_record.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace binade::train {

struct TextDifference {
  std::string part, name;  // part: "setting", "model", "environment"
  std::string a, b;        // "-": it is not there
};

struct CurveDifference {
  std::string key;
  double step = 0;      // the first at which both have a value and the values differ
  double a = 0, b = 0;  // there
  double last_a = 0, last_b = 0;
  int64_t points = 0;  // at which both have a value
};

// The first tensor, in the order of the file, that differs.
struct TensorDifference {
  std::string where;  // "checkpoint step-00000100", "lens.jsonl, step 20, weight_gradient"
  std::string tensor;
  int64_t step = 0;
  int64_t tensors = 0;    // that differ there
  double most = 0;        // the largest difference of an element; NaN: not known
  std::string note = {};  // "only in A", "sizes [2, 3] and [3, 2]"
};

struct RunDiff {
  std::vector<TextDifference> texts;
  std::vector<CurveDifference> curves;      // that differ, the earliest first
  std::vector<std::string> only_a, only_b;  // keys
  int64_t equal_curves = 0;
  std::optional<TensorDifference> tensor;  // of the earliest step that shows one
  std::vector<std::string> notes;          // what could not be compared

  // True if settings, curves and tensors are the same. The environment, times and speed do not
  // count.
  bool same() const;
};

// Speed, times and memory are no curves of the comparison: two equal runs differ in them.
RunDiff diff_runs(const RunRecord& a, const RunRecord& b);
// For a terminal.
std::string to_text(const RunDiff& diff, const RunRecord& a, const RunRecord& b);

}  // namespace binade::train
