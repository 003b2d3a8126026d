// The run of a Trainer: its epochs, validations and ends. Internal to train. StepRunner does the
// steps; Evaluator, RunCheckpoints, RunLog, Monitor and RunDisplay do the rest.
#pragma once
#include <binade/train/evaluator_internal.h>
#include <binade/train/loop/monitor_internal.h>
#include <binade/train/loop/run_log_internal.h>
#include <binade/train/loop/step_runner_internal.h>
#include <binade/train/report/run_journal_internal.h>
#include <binade/train/run_checkpoints_internal.h>
#include <binade/train/run_directory.h>

#include <chrono>

namespace binade::train {

class Shadow;
class StopSignal;

// Throws an error for invalid options, before anything is made or opened.
TrainerOptions checked(TrainerOptions options);
void check_parts(const RunParts& parts, const TrainerOptions& options);
// Throws if a phase would take part in none of the `steps` steps of a run. (The lens and the shadow
// look at the first step whatever their interval is.)
void check_intervals(const RunParts& parts, int64_t steps);

class TrainerRun {
 public:
  TrainerRun(const TrainingParts& parts, TrainerOptions options);
  ~TrainerRun();
  TrainerRun(const TrainerRun&) = delete;
  TrainerRun& operator=(const TrainerRun&) = delete;

  // See Trainer.
  void fit(data::Loader& train, data::Loader* validation);
  Evaluation validate(data::Loader& loader);
  Evaluation test(data::Loader& loader);
  void save_model();
  NamedTensors predict(data::Loader& loader) const {
    return evaluator_.predict(loader, uses_averages());
  }
  std::vector<int64_t> predict(const Tensor& images) const {
    return evaluator_.predict(images, uses_averages());
  }
  int64_t epoch() const { return state_.epoch; }
  int64_t steps() const { return state_.steps; }
  bool resumed() const { return resumed_; }
  int64_t rollbacks() const { return state_.rollbacks; }
  int stopped_by() const { return stopped_by_; }
  const std::string& stop_reason() const { return stop_reason_; }
  const NamedValues& values() const { return log_->values(); }
  optim::Optimizer& optimizer(size_t phase) const;
  Ema* ema() const { return parts_.ema; }
  int64_t graph_replays() const { return runner_.graph_replays(); }
  const std::string& why_no_graph() const { return runner_.why_no_graph(); }

 private:
  using Clock = std::chrono::steady_clock;
  class RankSeed;
  // The functions of one fit() need these.
  struct Fit {
    data::Loader& train;
    data::Loader* validation;  // null: none
    const StopSignal& signal;
    const RankSeed& seed;
  };

  // A line of metrics that is being made.
  struct Report {
    ScalarRecord record;  // what training gave so far
    NamedValues rest;     // comes after the values of a validation
    double decode_errors = 0;
  };
  struct ReportKind {
    bool validates, ends_epoch;
  };

  void begin(data::Loader& train, data::Loader*& validation);
  void check_use_of(const data::Loader* validation) const;
  void check_position(const data::Loader& train);
  void try_validation(data::Loader* validation);
  void set_training_mode();
  void run(const Fit& fit);
  void run_epoch(const Fit& fit);
  void train_epoch(const Fit& fit);
  void enter_epoch(data::Loader& train) const;
  void after_step(const Fit& fit, const data::Batch& batch, bool last);
  void look_at_steps();
  void end_epoch(const Fit& fit);
  void finish();
  std::string reason_of_end() const;
  void end_with(const std::exception& error);
  void roll_back(const Error& error, const RankSeed& seed);
  int64_t epochs() const;  // the limit
  bool is_over() const;
  int64_t batches_of_epoch(const data::Loader& train) const;
  int64_t steps_of_run(const data::Loader& train) const;  // at most
  int64_t limit_of_validation() const;
  void agree();
  void agree_on_stop(const StopSignal& signal);
  bool uses_averages() const { return parts_.ema && !ended_; }
  void open_files();
  void open_scaler_log();
  void flush_scaler_log();
  void write_lens_page() const;
  void open_shadow();
  void write_shadow_page() const;

  // In loop/run_records.cpp.
  void begin_journal();
  void record_step();
  void end_journal(const std::string& outcome);
  void explain(OutOfMemory& error, data::Loader& train) const;
  std::string largest_batch_words(data::Loader& train, const MemoryRefusal& refusal) const;

  // In loop/run_reports.cpp.
  void report_mid_epoch(const Fit& fit, bool validates);
  void report_step();
  Report begin_report(const Fit& fit) const;
  void finish_report(const Fit& fit, Report& report, const ReportKind& kind);
  void validate_into(const Fit& fit, Report& report);
  bool look_at_monitor(const ScalarRecord& record, const ReportKind& kind);
  NamedValues training_values(const RunningValues& losses, const RunningValues& logs) const;
  void add_rates(NamedValues& values) const;
  void add_state(NamedValues& values) const;
  std::string hash_of_state() const;
  void save();
  void check_saved();
  void emit(Event event, int64_t epoch, const data::Batch* batch = nullptr,
            const std::exception* error = nullptr);
  void show_progress(const data::Loader& loader) const;

  TrainerOptions options_;
  RunParts parts_;
  Ranks ranks_;
  RunState state_;
  RunDisplay display_;
  Evaluator evaluator_;
  DivergenceWatch divergence_;
  StepRunner runner_;
  Monitor monitor_;
  std::unique_ptr<RunDirectory> directory_;  // of rank 0; null without one
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<RunCheckpoints> checkpoints_;
  NamedTensors best_;  // copies of RunParts::evaluated_state() at the best monitored value
  std::unique_ptr<Lens> lens_;
  std::unique_ptr<Shadow> shadow_;
  std::unique_ptr<RunJournal> journal_;     // of rank 0; null without a run directory
  std::unique_ptr<MemoryTracker> tracker_;  // during fit()
  const data::Loader* loader_ = nullptr;    // of fit()
  int64_t samples_ = 0;                     // since fit() began
  bool warned_of_leak_ = false;
  std::unique_ptr<ScalerLogFile> scaler_log_;  // of rank 0
  bool resumed_ = false;
  bool apart_ = false;           // sums and buffers differ between ranks
  bool can_be_stopped_ = false;  // by a signal, the clock or a callback of any rank
  int stopped_by_ = 0;
  std::string stop_request_;    // of a callback of this rank
  bool asked_to_stop_ = false;  // all ranks know
  std::string stop_reason_;
  bool ended_ = false;         // fit() came to the end of the run
  Clock::time_point started_;  // of fit()
  double seconds_before_ = 0;  // of training, in earlier processes
  // For speed and progress: since the epoch began in this process.
  Clock::time_point epoch_started_, shown_;
  int64_t epoch_samples_ = 0, first_step_ = 0, first_batch_ = 0;
};

}  // namespace binade::train
