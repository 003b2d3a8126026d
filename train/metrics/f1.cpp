#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/metrics/class_tensors_internal.h>
#include <binade/train/metrics/f1.h>
#include <binade/train/report/numbers_internal.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace binade::train {
namespace {

double f1_of(int64_t right, int64_t predicted, int64_t samples) {
  return static_cast<double>(2 * right) / static_cast<double>(predicted + samples);
}

// i64 [classes]: how often each class is in `classes_of` where `counted`.
Tensor histogram(const Tensor& classes_of, const Tensor& counted, int64_t classes) {
  const Tensor place =
      flatten(masked_fill(classes_of, logical_not(counted), static_cast<double>(classes)));
  const Tensor none = zeros({classes + 1}, DType::i64, place.device());
  return narrow(scatter_add(none, 0, place, ones_like(place)), 0, 0, classes);
}

// i64 [L]: in how many positions [N, L, ...] each label is positive.
Tensor positives(const Tensor& positive, const Tensor& counted) {
  const Tensor both = transpose(logical_and(positive, counted), 0, 1);
  return sum(flatten(both, 1), {1});
}

}  // namespace

F1::F1(F1Average average, const ClassMetricOptions& options)
    : ClassMetric("f1", options), average_(average) {
  check(average != F1Average::binary || options.classes == 0 || options.classes == 2, name(),
        ": got F1Average::binary and ", options.classes, " classes, expected two");
}

void F1::add_classes(const ClassTensors& t) {
  check(t.classes > 0, name(),
        ": got an output of classes, expected scores, or the number of classes in the options "
        "(.classes)");
  check(average_ != F1Average::binary || t.classes == 2, name(), ": got F1Average::binary and ",
        t.classes, " classes, expected two; choose macro, micro or weighted");
  const bool labels =
      t.is_binary && average_ != F1Average::binary && t.target.dim() >= 2 && t.target.size(1) >= 2;
  const int64_t classes = labels ? t.target.size(1) : t.classes;
  check(right_.size() == 0 || right_.size() == classes, name(), ": got ", classes,
        " classes after ", right_.size(), ", expected the same in every batch");
  const Tensor right = logical_and(eq(t.predicted, t.target), t.counted);
  if (labels) {
    const Tensor predicted = eq(t.predicted, 1.0), target = eq(t.target, 1.0);
    right_.add(positives(logical_and(predicted, target), t.counted));
    predicted_.add(positives(predicted, t.counted));
    samples_.add(positives(target, t.counted));
    return;
  }
  right_.add(histogram(t.target, right, classes));
  predicted_.add(histogram(t.predicted, t.counted, classes));
  samples_.add(histogram(t.target, t.counted, classes));
}

std::vector<double> F1::per_class() const {
  const std::vector<int64_t> right = right_.values(), predicted = predicted_.values(),
                             samples = samples_.values();
  std::vector<double> all(right.size(), kNaN);
  for (size_t c = 0; c < all.size() && !has_nan(); ++c) {
    all[c] = f1_of(right[c], predicted[c], samples[c]);
  }
  return all;
}

double F1::value() const {
  const std::vector<int64_t> right = right_.values(), predicted = predicted_.values(),
                             samples = samples_.values();
  const auto total = [](const std::vector<int64_t>& x) {
    return std::accumulate(x.begin(), x.end(), int64_t{0});
  };
  if (has_nan() || right.empty()) {
    return kNaN;
  }
  if (average_ == F1Average::binary) {
    return f1_of(right[1], predicted[1], samples[1]);
  }
  if (average_ == F1Average::micro) {
    return f1_of(total(right), total(predicted), total(samples));
  }
  double sum = 0, weights = 0;
  for (size_t c = 0; c < right.size(); ++c) {
    if (predicted[c] + samples[c] > 0) {
      const double weight = average_ == F1Average::macro ? 1 : static_cast<double>(samples[c]);
      sum += weight * f1_of(right[c], predicted[c], samples[c]);
      weights += weight;
    }
  }
  return sum / weights;
}

}  // namespace binade::train
