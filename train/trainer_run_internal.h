// The run of a Trainer: its epochs and steps. Internal to train. Evaluator, RunCheckpoints,
// ScalerWatch and RunDisplay do the rest.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/optim/accumulation.h>
#include <binade/train/divergence_internal.h>
#include <binade/train/evaluator_internal.h>
#include <binade/train/graphed_step.h>
#include <binade/train/run_checkpoints_internal.h>
#include <binade/train/run_directory.h>
#include <binade/train/scaler_watch_internal.h>

namespace binade::train {

class Lens;
class RunDirectory;
class StopSignal;

class TrainerRun {
 public:
  TrainerRun(const TrainingParts& parts, TrainerOptions options);
  ~TrainerRun();
  TrainerRun(const TrainerRun&) = delete;
  TrainerRun& operator=(const TrainerRun&) = delete;

  // As in Trainer.
  void fit(data::Loader& train, data::Loader* validation);
  Evaluation validate(data::Loader& loader);
  Evaluation test(data::Loader& loader);
  void save_model();
  std::vector<int64_t> predict(const Tensor& images) const { return evaluator_.predict(images); }
  int64_t epoch() const { return state_.epoch; }
  int64_t steps() const { return state_.steps; }
  bool resumed() const { return resumed_; }
  int64_t rollbacks() const { return state_.rollbacks; }
  int stopped_by() const { return stopped_by_; }
  int64_t graph_replays() const { return graph_ ? graph_->replays() : 0; }
  const std::string& why_no_graph() const { return why_no_graph_; }

 private:
  void check_options() const;
  void check_position(const data::Loader& train);
  void make_data_parallel();
  void agree();
  bool asked_to_stop(const StopSignal& signal);
  void train_epoch(data::Loader& loader, const StopSignal& signal);
  bool train_batch(const data::Batch& batch, bool last);
  Tensor run_batch(const data::Batch& batch, double weight, optim::StepResult& result);
  Tensor run_graph(const data::Batch& batch, optim::StepResult& result);
  optim::StepResult step();
  void run_epoch(data::Loader& train, data::Loader* validation, const StopSignal& signal);
  class RankSeed;
  void roll_back(const Error& error, const RankSeed& seed);
  void open_lens();
  void write_lens_page() const;
  void choose_graph(const data::Loader& train);
  void make_graph();
  void give_up_graph(const std::string& reason);
  void follow_floor();  // goes to full precision if the scaler asks for it
  void go_on_in_full_precision();
  void end_epoch(data::Loader& train, data::Loader* validation, double seconds, int64_t samples);
  EpochMetrics metrics_of_epoch(const data::Loader& train, double seconds, int64_t samples) const;
  bool improved(double loss);
  void save();
  std::string hash_of_state() const;
  double mean_loss() const;
  void show_progress(const data::Loader& loader, double seconds, int64_t samples) const;

  TrainingParts parts_;
  TrainerOptions options_;
  Ranks ranks_;
  RunState state_;
  RunDisplay display_;
  Evaluator evaluator_;
  ScalerWatch scaler_watch_;
  DivergenceWatch divergence_;
  std::unique_ptr<RunDirectory> directory_;  // of rank 0; null without one
  std::unique_ptr<RunCheckpoints> checkpoints_;
  optim::AccumulationWindow window_;
  MetricsFile metrics_;
  NamedTensors best_;  // copies of the model's state at the best validation loss
  std::unique_ptr<GraphedStep> graph_;
  std::string why_no_graph_;
  std::unique_ptr<Lens> lens_;
  bool resumed_ = false;
  std::unique_ptr<dist::DistributedDataParallel> data_parallel_;  // null if alone
  bool apart_ = false;  // sums and buffers differ between ranks
  int stopped_by_ = 0;
  bool ended_ = false;  // fit() came to the end of the run
};

}  // namespace binade::train
