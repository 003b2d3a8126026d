#include <binade/core/observe/timeline.h>
#include <binade/core/ops.h>
#include <binade/nn/freeze_others.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/loop/step_runner_internal.h>
#include <binade/train/precision/shadow.h>

#include <algorithm>

namespace binade::train {
namespace {

Tensor detached(const Tensor& t) { return t.defined() ? t.detach() : t; }

// The output without history, so that it keeps no graph.
StepOutput detached(StepOutput output) {
  output.loss = detached(output.loss);
  output.output = detached(output.output);
  for (auto& entry : output.outputs) {
    entry.second = detached(entry.second);
  }
  for (auto& [name, value] : output.log) {
    if (value.is_tensor()) {
      value = LogValue(value.tensor().detach());
    }
  }
  return output;
}

}  // namespace

StepRunner::StepRunner(const RunParts& parts, const TrainerOptions& options, const Ranks& ranks,
                       const RunDisplay& display, DivergenceWatch& divergence)
    : parts_(parts),
      options_(options),
      ranks_(ranks),
      display_(display),
      divergence_(divergence),
      window_(options.accumulate, 1),
      results_(parts.phases.size(), StepOutcome::accumulating) {
  for (const auto& phase : parts_.phases) {
    watches_.push_back(std::make_unique<ScalerWatch>(*phase, ranks, display));
    overflows_.push_back(std::make_unique<OverflowWatch>(*phase, parts.model, options, ranks));
  }
}

void StepRunner::make_data_parallel() {
  data_parallel_.clear();
  if (ranks_.alone()) {
    return;
  }
  for (const auto& phase : parts_.phases) {
    data_parallel_.push_back(std::make_unique<dist::DistributedDataParallel>(
        *ranks_.group(), parts_.is_single() ? parts_.model.parameters() : phase->parameters(),
        options_.data_parallel));
  }
}

void StepRunner::begin(const data::Loader& train) {
  window_ = optim::AccumulationWindow(options_.accumulate, train.options().batch);
  micro_batches_.clear();
  for (const auto& phase : parts_.phases) {
    phase->optimizer->zero_grad();
  }
  for (const auto& watch : overflows_) {
    watch->begin();
  }
  graph_.reset();
  why_no_graph_ = reason_against_graph(train);
  if (why_no_graph_.empty()) {
    make_graph();
  } else if (!parts_.device().is_cpu() && options_.graph != StepGraph::off) {
    give_up_graph(why_no_graph_);
  }
}

void StepRunner::begin_again() {
  window_.reset();
  micro_batches_.clear();
  for (const auto& phase : parts_.phases) {
    phase->optimizer->zero_grad();
  }
  for (size_t i = 0; i < watches_.size(); ++i) {
    watches_[i]->begin_again();
    overflows_[i]->begin_again();
  }
  make_data_parallel();
  if (graph_) {
    make_graph();
  }
}

// a batch -----------------------------------------------------------------------------------------

bool StepRunner::run(const data::Batch& batch, bool last, RunState& state) {
  const bool first = window_.samples() == 0;
  const MicroBatch micro{batch.to(parts_.device()), window_.add(batch.size)};
  if (last) {
    window_.close();
  }
  for (size_t i = 0; i < watches_.size(); ++i) {
    if (parts_.phases[i]->takes_part(state.steps)) {
      watches_[i]->begin_step(batch, window_.full());
      if (first) {
        overflows_[i]->begin_step();
      }
    }
  }
  if (first) {
    divergence_.begin_step();
    step_values_ = RunningValues();
  }
  const bool looks = lens_ && lens_->looks_at(state.steps);
  if (looks && first) {
    lens_->begin(state.steps);
  }
  if (shadow_ && first && shadow_->looks_at(state.steps)) {
    look_in_f64(micro, state.steps);
  }
  if (!parts_.is_single()) {
    micro_batches_.push_back(micro);
    if (window_.full()) {
      run_phases(state);
    }
  } else if (graph_ && batch.size == window_.nominal_batch() && !looks) {
    take(parts_.first(), run_graph(micro, state.steps), micro.batch, state);
    look_for_overflow(0, state.steps);
  } else {
    const StepOutput output = forward_backward(parts_.first(), micro, window_.full(), state.steps);
    if (window_.full()) {
      update(0, state.steps);
      look_for_overflow(0, state.steps);
    }
    take(parts_.first(), output, micro.batch, state);
  }
  divergence_.check_read_losses(state);
  if (!window_.full()) {
    return false;
  }
  end_step(state);
  return true;
}

void StepRunner::run_phases(RunState& state) {
  for (size_t i = 0; i < parts_.phases.size(); ++i) {
    const Phase& phase = *parts_.phases[i];
    if (!phase.takes_part(state.steps)) {
      continue;
    }
    std::vector<const ParameterList*> groups;
    for (size_t k = 0; k < phase.optimizer->group_count(); ++k) {
      groups.push_back(&phase.optimizer->parameters(k));
    }
    const nn::FreezeOthers others(parts_.model, groups);
    try {
      for (const MicroBatch& micro : micro_batches_) {
        const bool reduce = &micro == &micro_batches_.back();
        take(phase, forward_backward(phase, micro, reduce, state.steps), micro.batch, state);
      }
      update(i, state.steps);
      look_for_overflow(i, state.steps);
    } catch (Error& error) {
      error.add_context(text("(in the phase ", phase.name,
                             ", which trains the parameters of its own optimizer alone)"));
      throw;
    }
  }
}

// Each name is logged by one phase.
void StepRunner::check_output(const Phase& phase, const StepOutput& output) {
  check_log(output, phase.loss_name());
  for (const auto& entry : output.log) {
    const Phase* owner = log_owners_.emplace(entry.first, &phase).first->second;
    check(owner == &phase, "trainer: the step", phase.words(), " logs a value named '", entry.first,
          "', as the step", owner->words(), " does, expected a name of its own");
    for (const auto& other : parts_.phases) {
      check(entry.first != other->loss_name(), "trainer: the step", phase.words(),
            " logs a value named '", entry.first, "', which is the loss", other->words());
    }
  }
}

// The output without history. `reduce`: the last backward of the phase in this step.
StepOutput StepRunner::forward_backward(const Phase& phase, const MicroBatch& micro, bool reduce,
                                        int64_t step) {
  for (size_t i = 0; i < data_parallel_.size(); ++i) {
    if (parts_.phases[i].get() == &phase) {
      data_parallel_[i]->set_reduce(reduce);
    }
  }
  OverflowWatch& watch = overflow_watch(phase);
  const Generator random = generator();
  watch.add(micro.batch, micro.weight, random);
  StepOutput output;
  Tensor checked;
  {
    const PhaseSpan forward("forward");
    output = phase.step(parts_.model, micro.batch);
    check_mean_loss("training", output.loss);
    check_output(phase, output);
    watch.add_loss(output.loss, micro.weight);
    checked = checked_loss(phase, output.loss, micro, random, step);
  }
  const std::unique_ptr<ObserverScope> recorder = watch.observe_backward();
  if (phase.scaler) {
    phase.scaler->scale(checked, micro.weight).backward();
  } else {
    backward(checked, full(checked.sizes(), micro.weight, checked.dtype(), checked.device()));
  }
  return detached(output);
}

// Runs the first micro-batch of the step as it will run, and again in f64; undoes all effects.
void StepRunner::look_in_f64(const MicroBatch& micro, int64_t step) {
  const Phase& phase = parts_.first();
  shadow_->look(step, {.model = parts_.model,
                       .step = phase.step,
                       .parameters = phase.parameters(),
                       .batches = {{micro.batch, micro.weight, generator()}},
                       .scale = phase.scaler ? phase.scaler->scale() : 1});
}

OverflowWatch& StepRunner::overflow_watch(const Phase& phase) const {
  size_t index = 0;
  while (parts_.phases[index].get() != &phase) {
    ++index;
  }
  return *overflows_[index];
}

// The loss for backward(). If it ends the run, the black box keeps the step.
Tensor StepRunner::checked_loss(const Phase& phase, const Tensor& loss, const MicroBatch& micro,
                                const Generator& random, int64_t step) {
  try {
    return divergence_.check_loss(phase, loss, micro.batch, random, step);
  } catch (const Diverged&) {
    if (options_.black_box.bytes > 0) {
      (void)overflow_watch(phase).cause_of_failure(step);
    }
    throw;
  }
}

void StepRunner::update(size_t index, int64_t step) {
  const Phase& phase = *parts_.phases[index];
  if (!data_parallel_.empty()) {
    const PhaseSpan reduction("reduction");
    data_parallel_[index]->finish();
  }
  if (lens_) {
    lens_->before_update();
  }
  overflows_[index]->before_update(step);
  const optim::StepOptions options{.divisor = window_.divisor(),
                                   .clip_norm = options_.clip_norm,
                                   .check_finite = divergence_.checks_gradients(phase),
                                   .measure_norm = options_.log_norms};
  try {
    results_[index] = phase.scaler ? phase.scaler->step(*phase.optimizer, options)
                                   : phase.optimizer->step(options);
  } catch (optim::OverflowAtFloor& error) {
    watches_[index]->name_samples(error, step);
    const std::string cause = overflows_[index]->cause_of_failure(step);
    if (!cause.empty()) {
      error.add_context("; the step, run again: " + cause);
    }
    throw;
  }
  if (lens_) {
    lens_->end();
  }
}

// Looks for an overflow after a step. A graph does not call it: its steps run without the host.
void StepRunner::look_for_overflow(size_t index, int64_t step) {
  overflows_[index]->end_step(results_[index], step);
}

void StepRunner::take(const Phase& phase, const StepOutput& output, const data::Batch& batch,
                      RunState& state) {
  const double weight = weight_of(output, batch.size);
  for (const auto& [name, value] : output.log) {
    state.logs.add(name, value, weight, state.steps);
  }
  state.losses.add(phase.loss_name(), LogValue(output.loss), weight, state.steps);
  if (options_.log_every > 0 && (state.steps + 1) % options_.log_every == 0) {
    step_values_.add(output, phase.loss_name(), weight, state.steps);
  }
  output_ = output;
}

void StepRunner::end_step(RunState& state) {
  window_.reset();
  micro_batches_.clear();
  const int64_t step = state.steps++;
  bool asked = false;
  for (size_t i = 0; i < parts_.phases.size(); ++i) {
    const Phase& phase = *parts_.phases[i];
    if (!phase.takes_part(step)) {
      continue;
    }
    divergence_.end_step(phase, results_[i], step);
    if (phase.schedule) {
      phase.schedule->advance(results_[i]);
    }
    asked |= watches_[i]->end_step(state.steps);
  }
  if (ranks_.group()) {
    ranks_.group()->set_step(state.steps);
  }
  if (parts_.ema) {
    parts_.ema->update();
  }
  if (asked) {
    follow_floor(state);
  }
}

// scalers -----------------------------------------------------------------------------------------

void StepRunner::ask(int64_t steps) {
  for (const auto& watch : watches_) {
    watch->ask(steps);
  }
}

void StepRunner::set_scaler_log(ScalerLogFile* log, FileSystem* files) {
  for (const auto& watch : overflows_) {
    watch->set_log(log);
    watch->set_files(files);
  }
}

void StepRunner::note_steps() {
  for (const auto& watch : overflows_) {
    watch->read_device();
  }
}

void StepRunner::follow_floor(RunState& state) {
  for (const auto& watch : watches_) {
    if (watch->wants_full_precision(state.steps)) {
      go_on_in_full_precision();
      state.full_precision = true;
      return;
    }
  }
}

void StepRunner::go_on_in_full_precision() {
  parts_.model.to_full_precision();
  if (!data_parallel_.empty()) {
    make_data_parallel();
  }
  for (const auto& watch : watches_) {
    watch->begin_full_precision();
  }
  if (graph_) {
    make_graph();
  }
}

std::string StepRunner::skipped_words(const RunState& state) const {
  std::string words;
  for (size_t i = 0; i < watches_.size(); ++i) {
    const std::string& name = parts_.phases[i]->name;
    words +=
        text(i == 0 ? "" : ", ", name, name.empty() ? "" : " ", watches_[i]->skipped_words(state));
  }
  return words;
}

// graphs ------------------------------------------------------------------------------------------

std::string StepRunner::reason_against_graph(const data::Loader& train) const {
  if (parts_.device().is_cpu() || options_.graph == StepGraph::off) {
    return parts_.device().is_cpu() ? "on the CPU there are none" : "they are switched off";
  }
  if (!ranks_.alone()) {
    return "ranks average their gradients, and the host takes part in that";
  }
  if (!parts_.is_single()) {
    return "a step has several phases";
  }
  if (options_.record_gradients) {
    return "the gradients of each step are recorded";
  }
  if (options_.accumulate > 1) {
    return text("gradients accumulate over ", options_.accumulate, " micro-batches");
  }
  if (options_.step && options_.graph == StepGraph::automatic) {
    return "the step is not the Trainer's own; StepGraph::on says that it may be replayed";
  }
  return train.samples_per_epoch() < train.options().batch ? "no batch is full" : "";
}

void StepRunner::make_graph() {
  graph_ = std::make_unique<GraphedStep>(
      parts_.device(), [this](std::span<const Tensor> fields) { return step_in_graph(fields); });
  graph_fields_.clear();
}

namespace {

// The tensors of an output except the loss, in a fixed order.
std::vector<Tensor*> tensors_of(StepOutput& output) {
  std::vector<Tensor*> all;
  if (output.output.defined()) {
    all.push_back(&output.output);
  }
  for (auto& entry : output.outputs) {
    all.push_back(&entry.second);
  }
  return all;
}

}  // namespace

// Returns the loss, the outcome of the step, the logged values and the outputs.
std::vector<Tensor> StepRunner::step_in_graph(std::span<const Tensor> fields) {
  MicroBatch micro{{}, 1};
  for (size_t i = 0; i < fields.size(); ++i) {
    micro.batch.set(graph_fields_[i], fields[i]);
  }
  micro.batch.size = fields[0].size(0);
  graph_output_ = forward_backward(parts_.first(), micro, true, 0);
  update(0, 0);
  std::vector<Tensor> all{graph_output_.loss, results_[0].device_outcome()};
  for (const auto& [name, value] : graph_output_.log) {
    if (value.is_tensor()) {
      all.push_back(value.tensor());
    }
  }
  for (const Tensor* tensor : tensors_of(graph_output_)) {
    all.push_back(*tensor);
  }
  return all;
}

// Runs a batch that is a whole step.
StepOutput StepRunner::run_graph(const MicroBatch& micro, int64_t step) {
  if (graph_fields_.empty()) {
    graph_fields_ = micro.batch.names();
  }
  std::vector<Tensor> out, fields;
  try {
    for (const std::string& name : graph_fields_) {
      fields.push_back(micro.batch[name]);
    }
    out = (*graph_)(std::move(fields));
  } catch (const Error& error) {
    // Nothing ran on the device. If the step itself is wrong, it throws again now.
    give_up_graph(error.what());
    parts_.optimizer().zero_grad();
    StepOutput output = forward_backward(parts_.first(), micro, true, step);
    update(0, step);
    return output;
  }
  results_[0] = optim::StepResult(out[1], nullptr);
  StepOutput output = graph_output_;
  output.loss = out[0];
  std::vector<LogValue*> logged;
  for (auto& [name, value] : output.log) {
    if (value.is_tensor()) {
      logged.push_back(&value);
    }
  }
  const std::vector<Tensor*> outputs = tensors_of(output);
  check(logged.size() + outputs.size() + 2 == out.size(),
        "trainer: the step gives other log values or outputs for this batch than for the one that "
        "was recorded, expected the same names; or switch graphs off with StepGraph::off");
  size_t next = 2;
  for (LogValue* value : logged) {
    *value = LogValue(out[next++]);
  }
  for (Tensor* tensor : outputs) {
    *tensor = out[next++];
  }
  return output;
}

void StepRunner::give_up_graph(const std::string& reason) {
  graph_.reset();
  why_no_graph_ = reason;
  display_.note("steps are not replayed as a graph: " + reason);
}

}  // namespace binade::train
