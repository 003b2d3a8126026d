// A step of the Trainer, from a batch to new weights. Nothing here waits for a device: how a step
// ended is counted by the optimizer and moves the schedule where it is known.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/lens.h>
#include <binade/train/trainer_run_internal.h>

#include <cstdio>

namespace binade::train {

Tensor classification_step(nn::Module& model, const data::Batch& batch) {
  return cross_entropy(model(batch.images), batch.labels);
}

// Returns true if the batch completed a step.
bool TrainerRun::train_batch(const data::Batch& batch, bool last) {
  const double weight = window_.add(batch.size);
  if (last) {
    window_.close();
  }
  begin_step(batch);
  optim::StepResult result = StepOutcome::accumulating;
  const bool full = batch.size == window_.nominal_batch();
  const bool looks = lens_ && lens_->looks_at(state_.steps);
  if (looks && window_.samples() == batch.size) {
    lens_->begin(state_.steps);
  }
  const Tensor loss =
      graph_ && full && !looks ? run_graph(batch, result) : run_batch(batch, weight, result);
  state_.loss.add(loss, static_cast<double>(batch.size));
  state_.samples += batch.size * ranks_.count();
  apart_ = !ranks_.alone();
  if (!window_.full()) {
    return false;
  }
  window_.reset();
  ++state_.steps;
  if (ranks_.group()) {
    ranks_.group()->set_step(state_.steps);
  }
  if (parts_.schedule) {
    parts_.schedule->advance(result);
  }
  end_step();
  return true;
}

Tensor TrainerRun::run_batch(const data::Batch& batch, double weight, optim::StepResult& result) {
  if (data_parallel_) {
    data_parallel_->set_reduce(window_.full());
  }
  const Tensor loss =
      options_.step ? options_.step(parts_.model, batch) : classification_step(parts_.model, batch);
  if (parts_.scaler) {
    parts_.scaler->scale(loss, weight).backward();
  } else {
    backward(loss, full({}, weight, loss.dtype(), loss.device()));
  }
  if (window_.full()) {
    if (data_parallel_) {
      data_parallel_->finish();
    }
    if (lens_) {
      lens_->before_update();
    }
    result = step();
    if (lens_) {
      lens_->end();
    }
  }
  return loss.detach();
}

optim::StepResult TrainerRun::step() {
  const optim::StepOptions options{.divisor = window_.divisor(), .clip_norm = options_.clip_norm};
  try {
    return parts_.scaler ? parts_.scaler->step(parts_.optimizer, options)
                         : parts_.optimizer.step(options);
  } catch (optim::OverflowAtFloor& error) {
    name_samples(error, state_.steps);
    throw;
  }
}

// A batch that is a whole step, as a graph.
Tensor TrainerRun::run_graph(const data::Batch& batch, optim::StepResult& result) {
  std::vector<Tensor> out;
  try {
    out = (*graph_)({batch.images, batch.labels});
  } catch (const Error& error) {
    // Nothing ran on the device. If the step itself is wrong, it says so again now.
    give_up_graph(error.what());
    parts_.optimizer.zero_grad();
    return run_batch(batch, 1, result);
  }
  result = optim::StepResult(out[1], nullptr);
  return out[0];
}

void TrainerRun::choose_graph(const data::Loader& train) {
  graph_.reset();
  why_no_graph_.clear();
  const Device device = parts_.optimizer.device();
  if (device.is_cpu() || options_.graph == StepGraph::off) {
    why_no_graph_ = device.is_cpu() ? "on the CPU there are none" : "they are switched off";
    return;
  }
  if (!ranks_.alone()) {
    give_up_graph("ranks average their gradients, and the host takes part in that");
    return;
  }
  if (options_.accumulate > 1) {
    give_up_graph(text("gradients accumulate over ", options_.accumulate, " micro-batches"));
    return;
  }
  if (options_.step && options_.graph == StepGraph::automatic) {
    give_up_graph("the step is not the Trainer's own; StepGraph::on says that it may be replayed");
    return;
  }
  if (train.samples_per_epoch() < train.options().batch) {
    give_up_graph("no batch is full");
    return;
  }
  make_graph();
}

void TrainerRun::make_graph() {
  graph_ =
      std::make_unique<GraphedStep>(parts_.optimizer.device(), [this](std::span<const Tensor> in) {
        data::Batch batch;
        batch.images = in[0];
        batch.labels = in[1];
        batch.size = in[0].size(0);
        optim::StepResult result = StepOutcome::accumulating;
        const Tensor loss = run_batch(batch, 1, result);
        return std::vector<Tensor>{loss, result.word()};
      });
}

void TrainerRun::give_up_graph(const std::string& reason) {
  graph_.reset();
  why_no_graph_ = reason;
  if (options_.progress) {
    std::printf("steps are not replayed as a graph: %s\n", reason.c_str());
    std::fflush(stdout);
  }
}

}  // namespace binade::train
