#include <binade/core/observe/timeline.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/background_saves_internal.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/evaluator_internal.h>
#include <binade/train/loop/named_values_internal.h>
#include <binade/train/loop/prediction_internal.h>
#include <binade/train/loop/running_values_internal.h>
#include <binade/train/metrics/accuracy.h>

namespace binade::train {
namespace {

// Puts a model into evaluation mode, with the averages of its Ema if it has one, for a scope.
class EvaluationMode {
 public:
  EvaluationMode(nn::Module& model, Ema* ema) : model_(model), before_(model.training_modes()) {
    if (ema) {
      averages_ = std::make_unique<Ema::Applied>(*ema);
    }
    model_.eval();
  }
  ~EvaluationMode() { model_.set_training_modes(before_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  nn::Module& model_;
  std::vector<bool> before_;
  std::unique_ptr<Ema::Applied> averages_;
  NoGradGuard no_grad_;
};

// Restores buffers and random numbers at its end.
class Untouched {
 public:
  explicit Untouched(const nn::Module& model)
      : buffers_(model.named_buffers()), copies_(copies(buffers_)), random_(generator()) {}
  ~Untouched() {
    generator() = random_;
    const NoGradGuard guard;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].second.detach().copy_(copies_[i].second);
    }
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  NamedTensors buffers_, copies_;
  Generator random_;
};

}  // namespace

// One pass over a loader.
class Evaluator::Pass {
 public:
  Pass(const Evaluator& evaluator, const char* what) : evaluator_(evaluator), what_(what) {
    for (const MetricPtr& metric : evaluator_.metrics_) {
      metric->reset();
    }
  }

  void run(data::Loader& loader, int64_t most) {
    nn::Module& model = evaluator_.parts_.model;
    loader.epoch(0);
    data::Batch batch;
    for (int64_t i = 0; (most == 0 || i < most) && loader.next(batch); ++i) {
      const data::Batch own = batch.to(model.device());
      StepOutput output = evaluator_.step_(model, own);
      check_mean_loss(what_, output.loss);
      check_log(output, "loss");
      means_.add(output, "loss", weight_of(output, own.size), 0);
      for (const MetricPtr& metric : evaluator_.metrics_) {
        metric->update(output, own);
      }
      samples_ += own.size;
    }
  }

  void reduce(const Ranks& ranks) {
    means_.reduce(ranks);
    samples_ = static_cast<int64_t>(ranks.sum({static_cast<double>(samples_)})[0]);
    if (!ranks.alone()) {
      for (const MetricPtr& metric : evaluator_.metrics_) {
        metric->reduce(*ranks.group());
      }
    }
    check(samples_ > 0, "trainer: got no samples to evaluate on");
  }

  Evaluation result() const {
    Evaluation all{.loss = means_.mean("loss"), .values = {}, .samples = samples_};
    for (const auto& [name, value] : means_.means()) {
      if (name != "loss") {
        all.values.emplace_back(name, value);
      }
    }
    for (const MetricPtr& metric : evaluator_.metrics_) {
      for (const auto& [name, value] : metric->values()) {
        check(name != "loss" && !find_value(all.values, name), "trainer: got two values named ",
              name, " in the ", what_, ", from a metric and from ",
              name == "loss" ? "the loss" : "another metric or StepOutput::log",
              "; give one of them another name");
        all.values.emplace_back(name, value);
      }
    }
    return all;
  }

 private:
  const Evaluator& evaluator_;
  const char* what_;
  RunningValues means_;
  int64_t samples_ = 0;
};

Evaluator::Evaluator(const RunParts& parts, const TrainerOptions& options, const Ranks& ranks)
    : parts_(parts),
      ranks_(ranks),
      step_(options.validation_step ? options.validation_step
            : parts.is_single()     ? parts.first().step
                                    : TrainingStep()),
      prediction_(options.predict_step),
      classifies_(!options.step && !options.validation_step && parts.is_single() &&
                  parts.first().name.empty()),
      metrics_(options.metrics) {
  for (const MetricPtr& metric : metrics_) {
    check(static_cast<bool>(metric), "trainer: got an empty MetricPtr in TrainerOptions::metrics");
    if (metric->state().empty()) {
      warn(text("metric ", metric->name(),
                ": got no MetricSum, MetricCount or MetricRows, expected update() to collect in "
                "one; what it keeps elsewhere is neither reset, added over ranks nor saved"));
    }
  }
  if (classifies_ && metrics_.empty()) {
    metrics_.emplace_back(Accuracy());
  }
}

void Evaluator::check_step(const char* what) const {
  check(static_cast<bool>(step_), "trainer: got ", what,
        " in a run with phases, whose steps are for training, expected "
        "TrainerOptions::validation_step");
}

Evaluation Evaluator::evaluate(data::Loader& loader, const char* what, int64_t most,
                               bool averages) const {
  const PhaseSpan phase("validation");
  check_step(what);
  const EvaluationMode mode(parts_.model, averages ? parts_.ema : nullptr);
  Pass pass(*this, what);
  pass.run(loader, most);
  pass.reduce(ranks_);
  return pass.result();
}

Evaluation Evaluator::try_out(data::Loader& loader, int64_t most) const {
  const PhaseSpan phase("validation");
  check_step("a validation loader");
  const Untouched untouched(parts_.model);
  const EvaluationMode mode(parts_.model, nullptr);
  try {
    Pass pass(*this, "validation");
    pass.run(loader, most);
    Evaluation result = pass.result();
    for (const MetricPtr& metric : metrics_) {
      metric->reset();
    }
    return result;
  } catch (Error& error) {
    error.add_context(
        "(in the sanity check of the validation, before the first step; "
        "TrainerOptions::validation_step says what validation is)");
    throw;
  }
}

NamedTensors Evaluator::predict(data::Loader& loader, bool averages) const {
  nn::Module& model = parts_.model;
  const EvaluationMode mode(model, averages ? parts_.ema : nullptr);
  Prediction all;
  loader.epoch(0);
  data::Batch batch;
  while (loader.next(batch)) {
    const data::Batch own = batch.to(model.device());
    if (prediction_) {
      StepOutput output = prediction_(model, own);
      if (!output.output.defined() && output.outputs.empty()) {
        output.output = output.loss;  // a step that returns a Tensor
      }
      all.add(output, own);
    } else if (classifies_) {
      all.add({.loss = {}, .output = model(own.images)}, own);
    } else {
      check_step("predict()");
      try {
        all.add(step_(model, own), own);
      } catch (Error& error) {
        error.add_context(
            "(in predict(), which ran the step of the validation; for data without targets give "
            "TrainerOptions::predict_step)");
        throw;
      }
    }
  }
  return all.join();
}

std::vector<int64_t> Evaluator::predict(const Tensor& images, bool averages) const {
  const EvaluationMode mode(parts_.model, averages ? parts_.ema : nullptr);
  const Tensor classes = argmax(parts_.model(images.to(parts_.model.device())), 1).to(Device{});
  return {classes.data<int64_t>(), classes.data<int64_t>() + classes.numel()};
}

bool Evaluation::has(const std::string& name) const {
  return name == "loss" || find_value(values, name) != nullptr;
}

double Evaluation::operator[](const std::string& name) const {
  if (name == "loss") {
    return loss;
  }
  const double* value = find_value(values, name);
  check(value != nullptr, "evaluation: got no value named '", name, "', expected loss",
        values.empty() ? "" : ", ", values.empty() ? "" : list_value_names(values));
  return *value;
}

}  // namespace binade::train
