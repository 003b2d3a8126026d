#include "training.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>
#include <optional>

namespace study {
namespace {

double mean_of(const double* begin, const double* end) {
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

double seconds_on(Device device) {
  if (device.is_cpu()) {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  }
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct MemoryUse {
  int64_t allocated, peak;
};
MemoryUse memory_of(Device device) {
  if (device.is_cpu()) {
    return {memory_stats().allocated, memory_stats().peak};
  }
  const DeviceMemoryStats stats = memory_stats(device);
  return {stats.allocated, stats.peak};
}
void forget_peak(Device device) {
  device.is_cpu() ? reset_peak_memory() : reset_peak_memory(device);
}

Batch on(Device device, const Batch& batch) { return {batch.x.to(device), batch.y.to(device)}; }

std::unique_ptr<optim::Optimizer> make_optimizer(const ParameterList& list, const Recipe& recipe) {
  const double lr = recipe.lr / recipe.loss_factor;
  if (recipe.adam) {
    return std::make_unique<optim::AdamW>(
        list, optim::AdamWOptions{.lr = lr, .weight_decay = recipe.decay});
  }
  return std::make_unique<optim::SGD>(
      list, optim::SGDOptions{.lr = lr, .momentum = recipe.momentum, .weight_decay = recipe.decay});
}

// The dynamic scale starts at 2^16 and grows after 500 steps, so that it adapts within a short run.
// At its floor it skips steps, so that a run that cannot work still runs to its end.
optim::LossScaler make_scaler(const Recipe& recipe) {
  if (recipe.loss_scale == kDynamic) {
    return optim::LossScaler({.growth_interval = 500, .at_floor = optim::AtFloor::skip});
  }
  return optim::LossScaler::fixed(recipe.loss_scale);
}

// The lens on the gradients of a run, if its recipe asks for it.
class GradientLens {
 public:
  GradientLens(const ParameterList& list, const optim::Optimizer& optimizer, const Recipe& recipe) {
    if (recipe.lens > 0) {
      lens_.emplace(list, optimizer,
                    train::LensOptions{.every = recipe.lens, .kinds = {kActivations, kWeights}});
    }
  }
  void begin(int64_t step) {
    if (lens_) {
      lens_->begin(step);
    }
  }
  // After the backward.
  void end(int64_t step, Run& run) {
    if (!lens_ || !lens_->looks_at(step)) {
      return;
    }
    lens_->before_update();
    lens_->end();
    for (const train::LensRecord& record : lens_->records()) {
      (record.kind == kActivations ? run.activation_gradients : run.weight_gradients)
          .add(record.counts);
    }
  }

 private:
  static constexpr train::LensKind kActivations = train::LensKind::activation_gradient,
                                   kWeights = train::LensKind::weight_gradient;
  std::optional<train::Lens> lens_;
};

// Counts the elements of a step that have a gradient and do not change.
class UpdateCount {
 public:
  UpdateCount(nn::Module& model, const optim::Optimizer& optimizer)
      : model_(model), optimizer_(optimizer), before_(kept_values(model, optimizer)) {
    for (Tensor& value : before_) {
      value = value.clone();
    }
    for (const Parameter& parameter : model.parameters()) {
      gradients_.push_back(parameter.value.grad().to(Device{}).contiguous());
    }
  }
  void after_step(Run& run) const {
    const std::vector<Tensor> after = kept_values(model_, optimizer_);
    for (size_t p = 0; p < after.size(); ++p) {
      for (int64_t i = 0; i < after[p].numel(); ++i) {
        if (gradients_[p].at(i) != 0) {
          ++run.updates;
          run.swallowed += after[p].at(i) == before_[p].at(i);
        }
      }
    }
  }

 private:
  nn::Module& model_;
  const optim::Optimizer& optimizer_;
  std::vector<Tensor> before_, gradients_;
};

void evaluate(nn::Module& model, const Task& task, Run& run) {
  NoGradGuard no_grad;
  model.eval();
  double loss = 0;
  int64_t right = 0, count = 0;
  for (const Batch& rows : task.test) {
    const Batch batch = on(task.device, rows);
    const Tensor logits = model(batch.x);
    const int64_t size = batch.y.numel();
    loss += cross_entropy(logits, batch.y).item() * static_cast<double>(size);
    right += static_cast<int64_t>(sum(eq(argmax(logits, 1), batch.y).to(DType::f32)).item());
    count += size;
  }
  run.test_loss = loss / static_cast<double>(count);
  run.accuracy = static_cast<double>(right) / static_cast<double>(count);
}

}  // namespace

std::vector<Tensor> kept_values(nn::Module& model, const optim::Optimizer& optimizer) {
  std::map<std::string, Tensor> masters;
  for (const auto& [name, tensor] : optimizer.state_tensors()) {
    masters.emplace(name, tensor);
  }
  std::vector<Tensor> kept;
  for (const Parameter& parameter : model.parameters()) {
    const auto master = masters.find("master." + parameter.name);
    const Tensor& value = master != masters.end() ? master->second : parameter.value;
    kept.push_back(value.detach().to(Device{}).contiguous());
  }
  return kept;
}

double Run::end_loss() const {
  const size_t count = std::max<size_t>(losses.size() / 10, 1);
  return mean_of(losses.data() + losses.size() - count, losses.data() + losses.size());
}

Run train_model(const Task& task, const Recipe& recipe, const Look& look) {
  Run run;
  const double start = seconds_on(task.device);
  forget_peak(task.device);
  const int64_t allocated = memory_of(task.device).allocated;
  manual_seed(recipe.seed);
  const std::unique_ptr<nn::Module> model = task.make_model();
  model->to(task.device, recipe.precision);
  const auto optimizer = make_optimizer(model->parameters(), recipe);
  if (recipe.low_updates != LowUpdates::nearest) {
    optimizer->set_low_updates(recipe.low_updates, recipe.seed);
  }
  optim::LossScaler scaler = make_scaler(recipe);
  std::optional<optim::WarmupCosine> schedule;
  if (recipe.cosine) {
    schedule.emplace(
        *optimizer, optim::WarmupCosineOptions{.warmup = recipe.steps / 10, .total = recipe.steps});
  }
  GradientLens lens(model->parameters(), *optimizer, recipe);
  for (int64_t step = 0; step < recipe.steps && run.finite; ++step) {
    const Batch batch = on(task.device, task.draw(recipe.seed, step));
    lens.begin(step);
    const int64_t saved = saved_bytes().live;
    const Tensor loss = cross_entropy((*model)(batch.x), batch.y);
    run.saved_bytes = saved_bytes().live - saved;
    run.losses.push_back(loss.item());
    run.finite = std::isfinite(run.losses.back());
    scaler.scale(loss, recipe.loss_factor).backward();
    if (look) {
      look({step, *model, *optimizer});
    }
    lens.end(step, run);
    std::optional<UpdateCount> updates;
    if (recipe.count_updates > 0 && step % recipe.count_updates == 0) {
      updates.emplace(*model, *optimizer);
    }
    const StepOutcome outcome = scaler.step(*optimizer);
    if (updates && outcome == StepOutcome::applied) {
      updates->after_step(run);
    }
    if (schedule) {
      schedule->advance(outcome);
    }
  }
  run.skipped = scaler.skipped_steps();
  run.last_scale = scaler.scale();
  run.peak_bytes = memory_of(task.device).peak - allocated;
  evaluate(*model, task, run);
  run.seconds = seconds_on(task.device) - start;
  return run;
}

Curve smooth(const std::vector<double>& losses, int64_t width) {
  Curve curve;
  for (size_t end = static_cast<size_t>(width); end <= losses.size();
       end += static_cast<size_t>(width)) {
    curve.x.push_back(static_cast<double>(end));
    curve.y.push_back(mean_of(losses.data() + end - width, losses.data() + end));
  }
  return curve;
}

}  // namespace study
