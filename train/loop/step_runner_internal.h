// StepRunner runs the steps of a run: forward, backward and update of each phase on each batch,
// plain or as a CUDA graph. Nothing here waits for a device: the optimizer counts the outcome of a
// step on the device, and the schedule advances there. Internal to train.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/optim/accumulation.h>
#include <binade/train/divergence_internal.h>
#include <binade/train/graphed_step.h>
#include <binade/train/lens.h>
#include <binade/train/precision/overflow_watch_internal.h>
#include <binade/train/scaler_watch_internal.h>

#include <memory>

namespace binade::train {

class Shadow;

class StepRunner {
 public:
  // REQUIRES: the arguments outlive it.
  StepRunner(const RunParts& parts, const TrainerOptions& options, const Ranks& ranks,
             const RunDisplay& display, DivergenceWatch& divergence);

  void make_data_parallel();              // collective
  void begin(const data::Loader& train);  // of fit(): an empty window; decides about a graph
  void begin_again();                     // after a return to a checkpoint
  void set_lens(Lens* lens) { lens_ = lens; }
  void set_shadow(Shadow* shadow) { shadow_ = shadow; }
  // The log of the scalers, and the file system for a black box; null: none. They outlive the
  // runner's steps.
  void set_scaler_log(ScalerLogFile* log, FileSystem* files);
  void note_steps();  // writes the steps that are still on a device to the log
  // True if the batch completed a step, which is then counted. `last`: it ends the epoch.
  bool run(const data::Batch& batch, bool last, RunState& state);
  // The losses and logs of the step that was completed, of this rank.
  const RunningValues& step_values() const { return step_values_; }
  const StepOutput& output() const { return output_; }  // of the last batch, without history

  // Asks the scalers how the steps went; throws if one overflowed at its floor.
  void ask(int64_t steps);
  // Goes on in full precision if a scaler asks for it.
  void follow_floor(RunState& state);
  void go_on_in_full_precision();
  std::string skipped_words(const RunState& state) const;

  int64_t graph_replays() const { return graph_ ? graph_->replays() : 0; }
  const std::string& why_no_graph() const { return why_no_graph_; }

 private:
  struct MicroBatch {
    data::Batch batch;  // on the model's device
    double weight;      // in the window
  };
  void run_phases(RunState& state);
  StepOutput forward_backward(const Phase& phase, const MicroBatch& micro, bool reduce,
                              int64_t step);
  Tensor checked_loss(const Phase& phase, const Tensor& loss, const MicroBatch& micro,
                      const Generator& random, int64_t step);
  void look_in_f64(const MicroBatch& micro, int64_t step);
  OverflowWatch& overflow_watch(const Phase& phase) const;
  void check_output(const Phase& phase, const StepOutput& output);
  void update(size_t phase, int64_t step);
  void look_for_overflow(size_t phase, int64_t step);
  StepOutput run_graph(const MicroBatch& micro, int64_t step);
  void take(const Phase& phase, const StepOutput& output, const data::Batch& batch,
            RunState& state);
  void end_step(RunState& state);
  std::string reason_against_graph(const data::Loader& train) const;
  void make_graph();
  std::vector<Tensor> step_in_graph(std::span<const Tensor> fields);
  void give_up_graph(const std::string& reason);

  const RunParts& parts_;
  const TrainerOptions& options_;
  const Ranks& ranks_;
  const RunDisplay& display_;
  DivergenceWatch& divergence_;
  std::vector<std::unique_ptr<ScalerWatch>> watches_;                          // per phase
  std::vector<std::unique_ptr<OverflowWatch>> overflows_;                      // per phase
  std::vector<std::unique_ptr<dist::DistributedDataParallel>> data_parallel_;  // empty if alone
  optim::AccumulationWindow window_;
  std::vector<MicroBatch> micro_batches_;   // of the window, where there are several phases
  std::vector<optim::StepResult> results_;  // of the phases in this step
  RunningValues step_values_;
  StepOutput output_;
  std::map<std::string, const Phase*> log_owners_;  // which phase logs a name
  std::unique_ptr<GraphedStep> graph_;
  std::vector<std::string> graph_fields_;  // of a batch
  StepOutput graph_output_;                // of the step that was run last: the names
  std::string why_no_graph_;
  Lens* lens_ = nullptr;
  Shadow* shadow_ = nullptr;
};

}  // namespace binade::train
