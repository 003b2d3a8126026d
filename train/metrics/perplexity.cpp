#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/batch.h>
#include <binade/train/metrics/class_tensors_internal.h>
#include <binade/train/metrics/perplexity.h>
#include <binade/train/metrics/probability_rows_internal.h>
#include <binade/train/report/numbers_internal.h>
#include <binade/train/step.h>

#include <cmath>
#include <limits>

namespace binade::train {
namespace {

constexpr int64_t kIgnored = -100;  // no class

}  // namespace

Perplexity::Perplexity(const PerplexityOptions& options)
    : TargetMetric(options.name, {options.output, options.target, options.mask}),
      options_(options) {}

void Perplexity::update(const StepOutput& step, const data::Batch& batch) {
  if (!options_.from_loss) {
    check(!options_.output.empty() || step.output.defined(), name(),
          ": got a step that returns no output, expected logits; return {.loss = loss, .output = "
          "logits} from the step, or set the option from_loss");
    TargetMetric::update(step, batch);
    return;
  }
  check(step.loss.defined() && step.loss.numel() == 1 && is_floating(step.loss.dtype()), name(),
        ": got a loss that is not one floating number, expected the mean cross entropy");
  const NoGradGuard no_grad;
  const double weight = step.weight > 0 ? step.weight : static_cast<double>(batch.size);
  loss_.add(mul(step.loss.detach().to(DType::f64), weight));
  weight_.add(weight);
}

void Perplexity::add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) {
  const Tensor scores = scores_by_class(name(), output, options_.class_dim, "");
  const ClassTensors t = class_tensors(
      name(), {.ignore_index = options_.ignore_index, .class_dim = options_.class_dim}, output,
      target, mask);
  // The positions that do not count may hold any value.
  const bool is_soft = is_floating(target.dtype());
  const Tensor classes = is_soft ? movedim(target, options_.class_dim, 1).to(scores.dtype())
                                 : where(t.counted, t.target, full_like(t.target, kIgnored));
  const Tensor loss =
      cross_entropy(scores, classes, {.reduction = Reduction::none, .ignore_index = kIgnored});
  loss_.add(where(t.nan, kNaN, loss), logical_or(t.counted, t.nan));
  counts_.add(cat({number_of(t.counted), number_of(t.bad), probability_rows(scores)}));
}

double Perplexity::value() const {
  check(counts_.value(1) == 0, out_of_range(name(), counts_.value(1)));
  check_logits(name(), counts_.value(2), counts_.value(3), "give it the logits");
  const double positions =
      options_.from_loss ? weight_.value() : static_cast<double>(counts_.value(0));
  return std::exp(loss_.value() / positions);
}

}  // namespace binade::train
