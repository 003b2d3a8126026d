// The run of a Trainer: what it holds, and the parts of an epoch; internal. trainer_run.cpp has
// epochs, trainer_step.cpp steps, trainer_scaler.cpp the loss scale, trainer_ranks.cpp what ranks
// agree on, trainer_checkpoint.cpp what a run resumes from.
#pragma once
#include <binade/optim/accumulation.h>
#include <binade/optim/scaler_notes.h>
#include <binade/train/graphed_step.h>
#include <binade/train/metrics.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/running_loss_internal.h>
#include <binade/train/trainer.h>

#include <map>

namespace binade::train {

class CheckpointStore;
class Lens;
class StopSignal;
struct CheckpointFile;

class TrainerRun {
 public:
  TrainerRun(const TrainingParts& parts, TrainerOptions options);
  ~TrainerRun();
  TrainerRun(const TrainerRun&) = delete;
  TrainerRun& operator=(const TrainerRun&) = delete;

  // As Trainer's.
  void fit(data::Loader& train, data::Loader* validation);
  Evaluation validate(data::Loader& loader);
  Evaluation test(data::Loader& loader);
  std::vector<int64_t> predict(const Tensor& images);
  int64_t epoch() const { return state_.epoch; }
  int64_t steps() const { return state_.steps; }
  bool resumed() const { return resumed_; }
  int stopped_by() const { return stopped_by_; }
  int64_t graph_replays() const { return graph_ ? graph_->replays() : 0; }
  const std::string& why_no_graph() const { return why_no_graph_; }

 private:
  // All that a resumed run needs beside tensors.
  struct State {
    int64_t epoch = 0, batch = 0;  // the next batch to train on
    int64_t steps = 0;
    RunningLoss loss;     // summed over this rank's samples of the epoch so far
    int64_t samples = 0;  // of all ranks
    double best_loss = 0;
    int64_t best_epoch = -1, bad_epochs = 0;
    bool finished = false;
  };

  struct Resumed;
  Resumed read_checkpoint();
  void resume();
  // Of several ranks (trainer_ranks.cpp).
  void check_loader(const data::Loader& loader, const char* what, bool equal_shards) const;
  void check_position(const data::Loader& train);
  void make_data_parallel();
  void agree();
  double loss_of_all() const;
  bool asked_to_stop(const StopSignal& signal);
  void train_epoch(data::Loader& loader, const StopSignal& signal);
  bool train_batch(const data::Batch& batch, bool last);
  Tensor run_batch(const data::Batch& batch, double weight, optim::StepResult& result);
  Tensor run_graph(const data::Batch& batch, optim::StepResult& result);
  optim::StepResult step();
  void open_lens();
  void write_lens_page() const;
  void choose_graph(const data::Loader& train);
  void make_graph();
  void give_up_graph(const std::string& reason);
  int64_t skipped() const;  // these two wait for a device
  // Of the scaler (trainer_scaler.cpp).
  void begin_step(const data::Batch& batch);  // notes the samples
  void end_step();
  // Throws where a step met an overflow at the floor; says what there is to say.
  void check_scaler();
  void follow_floor();  // goes on in full precision where the scaler asks for it
  void go_on_in_full_precision();
  void name_samples(optim::OverflowAtFloor& error, int64_t newest) const;
  std::string skipped_words() const;  // "3/200, last in conv1"
  void end_epoch(data::Loader& train, data::Loader* validation, double seconds, int64_t samples);
  bool improved(double loss);
  void restore_best();
  void save();
  std::string hash_of_state() const;
  std::map<std::string, std::string> fields() const;
  void read_fields(const std::map<std::string, std::string>& fields);
  std::vector<CheckpointFile> files(const NamedTensors& model, const NamedTensors& optimizer) const;
  bool shows_progress() const;
  void show_progress(const data::Loader& loader, double seconds, int64_t samples) const;
  void show_epoch(const EpochMetrics& metrics) const;

  TrainingParts parts_;
  TrainerOptions options_;
  Ranks ranks_;
  State state_;
  optim::AccumulationWindow window_;
  std::unique_ptr<CheckpointStore> store_;
  MetricsFile metrics_;
  NamedTensors best_;           // copies of the model's state at the best validation loss
  int64_t applied_before_ = 0;  // steps of the optimizer that are not ours
  std::unique_ptr<GraphedStep> graph_;
  std::string why_no_graph_;
  std::unique_ptr<Lens> lens_;
  std::unique_ptr<optim::ScalerNotes> notes_;
  bool full_precision_ = false;  // AtFloor::fp32 came into effect
  // Samples of the step under way, and of steps that the scaler has not been asked about.
  std::vector<int64_t> samples_;
  std::vector<std::vector<int64_t>> unasked_;
  bool resumed_ = false;
  std::unique_ptr<dist::DistributedDataParallel> data_parallel_;  // null where alone
  bool apart_ = false;        // ranks have sums and buffers that the others do not know
  int64_t global_batch_ = 0;  // ranks x batch of the checkpoint, 0: not known
  int stopped_by_ = 0;
};

}  // namespace binade::train
