// OverflowWatch follows the loss scaler of a phase step by step for the Trainer: it logs scale and
// outcome, and finds the cause of an overflow that the scale does not explain. Internal to train.
//
// To find a cause the step runs again (overflow_cause.h), on the CPU and on one rank only. A step
// of the user's may have side effects, so it runs again only once it is clear that the scale is not
// the cause: if its loss is not finite, or if the scale is at its floor; and if the user asked for
// it (TrainerOptions::black_box, record_gradients). The Trainer's own step runs again at every
// overflow.
#pragma once
#include <binade/train/loop/run_parts_internal.h>
#include <binade/train/precision/black_box.h>
#include <binade/train/precision/gradient_recorder_internal.h>
#include <binade/train/precision/overflow_cause.h>
#include <binade/train/ranks_internal.h>

#include <memory>
#include <optional>
#include <set>

namespace binade {
class FileSystem;
}

namespace binade::train {

class OverflowWatch {
 public:
  // REQUIRES: the arguments outlive it.
  OverflowWatch(const Phase& phase, nn::Module& model, const TrainerOptions& options,
                const Ranks& ranks);

  // Null: no log. The file outlives the watch.
  void set_log(ScalerLogFile* log) { log_ = log; }
  // Where the black box is written; null: nowhere.
  void set_files(FileSystem* files) { files_ = files; }
  void begin();       // of fit(): the numbers of the scaler now
  void begin_step();  // before the first forward
  void add(const data::Batch& batch, double weight, const Generator& random);
  void add_loss(const Tensor& loss, double weight);
  // Observes a backward while the result exists; null if the run does not record gradients.
  std::unique_ptr<ObserverScope> observe_backward();
  void before_update(int64_t step);
  void end_step(const optim::StepResult& result, int64_t step);
  // For an error that ends the run in this step: the cause as text, empty if it is not known.
  std::string cause_of_failure(int64_t step);
  void read_device();  // notes the steps that are still on a device
  void begin_again();  // after a return to a checkpoint

 private:
  struct Pending {
    ScalerRecord record;
    Tensor numbers;
    GradientCounts counts;
  };
  bool on_cpu() const { return phase_.optimizer->device().is_cpu(); }
  bool can_diagnose() const { return on_cpu() && ranks_.alone() && !kept_.empty() && is_whole_; }
  bool may_repeat() const;
  void note(ScalerRecord record);
  OverflowReport diagnose(int64_t step);
  std::optional<GradientSizes> sizes_at_fitting_scale(const OverflowReport& report);
  void tell(const OverflowReport& report, int64_t step);
  bool repeats_freely() const;
  bool wants_black_box(OverflowCause cause) const;
  void keep_black_box(const OverflowReport& report, int64_t step);
  StepToDiagnose step_to_diagnose() const;

  const Phase& phase_;
  nn::Module& model_;
  const TrainerOptions& options_;
  const Ranks& ranks_;
  ScalerLogFile* log_ = nullptr;
  FileSystem* files_ = nullptr;
  GradientRecorder recorder_;
  std::vector<StepBatch> kept_;  // the micro-batches of the step
  uint64_t kept_bytes_ = 0;
  bool is_whole_ = true;            // all of them were kept
  std::vector<std::string> stale_;  // parameters with a gradient before the step
  NamedTensors scales_;             // what delayed scales remembered before the first forward
  std::string gradients_;           // with a black box: state_hash() of bad gradients
  double loss_ = 0;                 // of this step, on the CPU
  double scale_ = 1;                // of this step
  std::set<OverflowCause> told_;    // in a warning
  int64_t in_a_row_ = 0;            // skipped steps up to now
  // The black box that was written, or that was too large.
  std::optional<OverflowCause> kept_cause_;
  std::vector<Pending> pending_;  // steps on a device
  double device_scale_ = 1;       // before the first of them
  int64_t skipped_ = 0;           // by the scaler, before them
};

}  // namespace binade::train
