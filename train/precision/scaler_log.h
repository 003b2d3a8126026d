// The log of a loss scaler: one line per step with its scale, its outcome and, if the run records
// them, the sizes of its gradients. The Trainer writes RUN/scaler.jsonl; `binade replay` reads it
// (train/precision/scale_replay.h).
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/kernels/base/dtype.h>
#include <binade/optim/loss_scaler.h>

#include <optional>
#include <string>
#include <vector>

namespace binade::train {

// True magnitudes (the loss scale is divided out) of the gradients of a step that were stored in
// `stored`: of activations, after the sum over their uses, and of weights.
struct GradientSizes {
  DType stored = DType::f16;
  double largest = 0, smallest = 0;  // of those that are finite and not 0
  int64_t elements = 0, zeros = 0;
  int64_t chosen_zeros = 0;  // zeros that rounding cannot have made: masks of relu, dropout
  // Elements with 2^e <= |g| < 2^(e + 1), for e from least_exponent on.
  int least_exponent = 0;
  std::vector<int64_t> exponents = {};
};

struct ScalerRecord {
  int64_t step = 0;
  std::string phase = {};  // of a run with several phases
  double scale = 1;        // that the backward used
  bool overflow = false;   // the step was skipped
  std::string bad = {};    // the first parameter whose gradient was not finite
  std::string cause = {};  // to_string(OverflowCause), if the step was diagnosed
  // Empty unless the run records gradients. If the step overflowed, they come from a backward at
  // the largest scale that fits, and are empty if none was run.
  std::optional<GradientSizes> gradients = {};
};
std::string to_json(const ScalerRecord& record);

// Appends records to a file, 256 at a time.
class ScalerLogFile {
 public:
  // Writes a line that describes the scaler, at the end (`append`) or to a new file. Throws if the
  // file cannot be written. REQUIRES: `files` outlives it.
  ScalerLogFile(std::string path, const optim::LossScalerOptions& options, bool append,
                FileSystem& files = file_system());
  ~ScalerLogFile();  // flushes; an error of that is lost
  ScalerLogFile(const ScalerLogFile&) = delete;
  ScalerLogFile& operator=(const ScalerLogFile&) = delete;

  void add(const ScalerRecord& record);
  void flush();

 private:
  std::string path_, lines_;
  int64_t count_ = 0;
  FileSystem& files_;
};

struct ScalerLog {
  optim::LossScalerOptions options;  // of the run
  std::vector<ScalerRecord> records;
};

// The records of one phase, in the order of steps. Throws if the file cannot be read or a line is
// not a record, and if there are several phases and none is named. An incomplete last line, left by
// a killed run, is ignored.
ScalerLog read_scaler_log(const std::string& file, const std::string& phase = {},
                          FileSystem& files = file_system());

// Moves the lines of steps from `first_step` on, which a resumed run writes again, to another file
// (keep_lines in train/run_directory.h).
void keep_scaler_lines(const std::string& file, int64_t first_step,
                       FileSystem& files = file_system());

}  // namespace binade::train
