#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/metrics/accuracy.h>
#include <binade/train/metrics/class_tensors_internal.h>
#include <binade/train/report/numbers_internal.h>

#include <limits>

namespace binade::train {
namespace {

// i64 [2]: how many of the counted positions are right, and how many there are.
Tensor right_and_all(const Tensor& right, const Tensor& counted) {
  return cat({number_of(logical_and(right, counted)), number_of(counted)});
}

double share(const MetricCount& counts) {
  return static_cast<double>(counts.value(0)) / static_cast<double>(counts.value(1));
}

}  // namespace

void Accuracy::add_classes(const ClassTensors& t) {
  counts_.add(right_and_all(eq(t.predicted, t.target), t.counted));
}

double Accuracy::value() const { return has_nan() ? kNaN : share(counts_); }

TopK::TopK(int64_t k, const ClassMetricOptions& options)
    : ClassMetric(text("top", k).c_str(), options), k_(k) {
  check(k >= 1, name(), ": got k = ", k, ", expected at least 1");
  check(!options.threshold && options.classes == 0, name(), ": got the option ",
        options.threshold ? "threshold" : "classes",
        ", which is for outputs without scores per class; expected such scores");
}

void TopK::add_classes(const ClassTensors& t) {
  check(t.scores.defined(), name(), ": got an output of classes, expected scores [N, C, ...]");
  check(k_ <= t.classes, name(), ": got scores of ", t.classes,
        " classes, expected at least k = ", k_);
  Dims sizes = Dims::of(t.scores.dim(), 1);
  sizes[1] = t.classes;
  const Tensor target = unsqueeze(where(t.counted, t.target, zeros_like(t.target)), 1);
  const Tensor own = gather(t.scores, 1, target);
  const Tensor number = reshape(arange(t.classes, DType::i64, target.device()), sizes);
  // The rank of the target's class: the number of classes before it.
  const Tensor before =
      logical_or(gt(t.scores, own), logical_and(eq(t.scores, own), lt(number, target)));
  counts_.add(right_and_all(lt(sum(before, {1}), static_cast<double>(k_)), t.counted));
}

double TopK::value() const { return has_nan() ? kNaN : share(counts_); }

}  // namespace binade::train
