// RunRecord: what a run directory tells about its run, for the report, `binade diff`, `binade runs`
// and `binade watch`. Reading never fails on what a killed process or another program left: a line
// that cannot be read is counted, a file that cannot be read is a note.
//
//   metrics.jsonl     train/metrics.h; of a loop of your own log.jsonl (train/logging/json_lines.h)
//   run.json          settings, environment, model, outcome (train/report/run_journal_internal.h)
//   timeline.jsonl    speed, waiting, memory, loss, rates and loss scales over time
//   checkpoint/, lens.jsonl, trace.json
#pragma once
#include <binade/train/lens_report.h>
#include <binade/train/profile/trace_tables.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace binade::train {

// Values over the steps, in the order of the steps. NaN: a value that was not finite.
struct Curve {
  std::vector<double> step, value;
  bool empty() const { return step.empty(); }
  double last() const;          // NaN if it is empty
  double least_finite() const;  // NaN if there is none
  double most_finite() const;
};
using Curves = std::map<std::string, Curve>;

struct RecordedCheckpoint {
  std::string name;  // "step-00000100", "best", "step-00000200.damaged"
  int64_t step = -1;
  uint64_t bytes = 0;
  std::string note = {};  // why its manifest cannot be read
};

using Texts = std::vector<std::pair<std::string, std::string>>;
// The value of this name, or null.
const std::string* find_text(const Texts& texts, const std::string& name);

struct RunRecord {
  std::string path;
  std::string name;  // the last part of the path
  // By key of metrics.jsonl. A line of a step has numbers only; a line of an epoch or a validation
  // has words, too.
  Curves steps = {}, epochs = {};
  Texts words = {};      // of the last line: "precision", "state_hash"
  Curves timeline = {};  // by key of timeline.jsonl
  Curves memory = {};    // bytes by module path, of the timeline
  Texts settings = {}, environment = {}, model = {};
  std::string started = {}, outcome = {};  // empty: not known
  bool is_running = false;                 // a process holds the lock
  double seconds = 0;
  int64_t step = 0, epoch = -1;  // the last ones
  std::vector<RecordedCheckpoint> checkpoints = {};
  std::optional<LensReport> lens = {};
  std::vector<TraceRow> ops = {}, modules = {};  // of trace.json, per step, slowest first
  int64_t traced_steps = 0;
  double step_milliseconds = 0;  // of the traced steps
  std::string stalls = {};       // what the stall adviser says of the traces of all ranks
  std::vector<std::string> notes = {};

  const Curve* curve(const std::string& key) const;  // of steps, else of epochs; null: none
  // "running", the outcome, or "ended without a word" (killed, or an older version).
  std::string state() const;
};

struct ReadRunOptions {
  bool lens = true, trace = true, checkpoints = true;
};

// Throws if `path` is no directory or has neither metrics.jsonl, log.jsonl nor run.json.
RunRecord read_run(const std::string& path, const ReadRunOptions& options = {});
// True if read_run() would take it.
bool is_run(const std::string& path);

// At most about 4 * `buckets` points: of each bucket the first, the smallest, the largest and the
// last value, and one that is not finite. A curve that is short already stays as it is.
Curve downsampled(const Curve& curve, size_t buckets);

}  // namespace binade::train
