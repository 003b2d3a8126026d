#include <binade/core/ops.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/evaluator_internal.h>
#include <binade/train/running_loss_internal.h>

namespace binade::train {
namespace {

int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  const Tensor predicted = argmax(logits, 1).to(Device{}), expected = labels.to(Device{});
  int64_t correct = 0;
  for (int64_t i = 0; i < labels.numel(); ++i) {
    correct += predicted.data<int64_t>()[i] == expected.data<int64_t>()[i];
  }
  return correct;
}

// Puts a model into evaluation mode, and back.
class EvaluationMode {
 public:
  explicit EvaluationMode(nn::Module& model) : model_(model), before_(model.training_modes()) {
    model_.eval();
  }
  ~EvaluationMode() { model_.set_training_modes(before_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  nn::Module& model_;
  std::vector<bool> before_;
  NoGradGuard no_grad_;
};

}  // namespace

Evaluation Evaluator::validate(data::Loader& loader) const {
  const EvaluationMode mode(model_);
  loader.epoch(0);
  data::Batch batch;
  RunningLoss loss;
  int64_t correct = 0, samples = 0;
  while (loader.next(batch)) {
    const auto weight = static_cast<double>(batch.size);
    if (step_) {
      const Tensor mean = step_(model_, batch).loss;
      check_mean_loss("validation", mean);
      loss.add(mean, weight, 0);
    } else {
      const Tensor logits = model_(batch.images);
      loss.add(cross_entropy(logits, batch.labels), weight, 0);
      correct += count_correct(logits, batch.labels);
    }
    samples += batch.size;
  }
  const std::vector<double> all =
      ranks_.sum({loss.total(), static_cast<double>(correct), static_cast<double>(samples)});
  check(all[2] > 0, "trainer: got no samples to evaluate on");
  return {.loss = all[0] / all[2],
          .accuracy = step_ ? std::nullopt : std::optional(all[1] / all[2]),
          .samples = static_cast<int64_t>(all[2])};
}

std::vector<int64_t> Evaluator::predict(const Tensor& images) const {
  const EvaluationMode mode(model_);
  const Tensor classes = argmax(model_(images.to(model_.device())), 1).to(Device{});
  return {classes.data<int64_t>(), classes.data<int64_t>() + classes.numel()};
}

}  // namespace binade::train
