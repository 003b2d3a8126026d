#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/metrics/auroc.h>
#include <binade/train/metrics/class_tensors_internal.h>
#include <binade/train/metrics/probability_rows_internal.h>
#include <binade/train/report/numbers_internal.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::train {
namespace {

struct Scored {
  double score;
  bool positive;
};

// The pairs of a positive and a negative sample in which the positive one has the larger score,
// over all pairs; a tie is half a pair. Empty if there is no pair, NaN if a score is NaN.
std::optional<double> area(std::vector<Scored>& samples) {
  if (std::any_of(samples.begin(), samples.end(),
                  [](const Scored& s) { return std::isnan(s.score); })) {
    return kNaN;
  }
  std::sort(samples.begin(), samples.end(),
            [](const Scored& a, const Scored& b) { return a.score < b.score; });
  uint64_t positives = 0, negatives = 0, half_pairs = 0;
  for (size_t i = 0; i < samples.size();) {
    uint64_t positive = 0, negative = 0;  // with the same score
    const double score = samples[i].score;
    for (; i < samples.size() && samples[i].score == score; ++i) {
      ++(samples[i].positive ? positive : negative);
    }
    half_pairs += positive * (2 * negatives + negative);
    positives += positive;
    negatives += negative;
  }
  if (positives == 0 || negatives == 0) {
    return std::nullopt;
  }
  return static_cast<double>(half_pairs) /
         (2 * static_cast<double>(positives) * static_cast<double>(negatives));
}

// [N, C, ...] -> [positions, C].
Tensor rows_of(const Tensor& scores) {
  return reshape(movedim(scores, 1, -1), {-1, scores.size(1)});
}

Tensor column_of(const Tensor& x) { return reshape(x, {-1, 1}); }

bool is_one_per_position(const Tensor& output, const Tensor& target) {
  const bool is_single = output.dim() < 2 || (output.dim() == 2 && output.size(1) == 1);
  return is_single || (!is_floating(target.dtype()) && target.sizes() == output.sizes());
}

// i64 [2]: numbers below 0 or above 1, and 0.
Tensor outside_of_probabilities(const Tensor& scores) {
  const Tensor outside = number_of(logical_or(lt(scores, 0.0), gt(scores, 1.0)));
  return cat({outside, zeros_like(outside)});
}

}  // namespace

AUROC::AUROC(const AUROCOptions& options)
    : TargetMetric(options.name, {options.output, options.target, options.mask}),
      options_(options) {}

void AUROC::add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) {
  check(is_floating(output.dtype()), name(), ": got output ", output.dtype(), " ", output.sizes(),
        ", expected floating scores");
  ClassMetricOptions how{.ignore_index = options_.ignore_index, .class_dim = options_.class_dim};
  const bool by_position = options_.multilabel || is_one_per_position(output, target);
  if (by_position) {
    how.threshold = 0;
  }
  check(!options_.multilabel || output.dim() >= 2, name(), ": got output ", output.sizes(),
        " with the option multilabel, expected scores [N, L, ...]");
  const ClassTensors t = class_tensors(name(), how, output, target, mask);
  Tensor classes = where(logical_or(t.counted, t.nan), t.target, full_like(t.target, -1));
  Tensor scores, look = zeros({2}, DType::i64, output.device());
  if (options_.multilabel) {
    scores = rows_of(movedim(where(t.nan, kNaN, output), options_.class_dim, 1));
    classes = rows_of(movedim(classes, options_.class_dim, 1));
  } else if (by_position) {
    scores = column_of(where(t.nan, kNaN, output));
    classes = column_of(classes);
  } else {
    look = options_.probabilities ? outside_of_probabilities(t.scores) : probability_rows(t.scores);
    scores = where(column_of(t.nan), kNaN, comparable(t.scores));
    classes = column_of(classes);
  }
  scores_.add(is_half(scores.dtype()) ? scores.to(DType::f32) : scores);
  targets_.add(classes);
  bad_.add(cat({number_of(t.bad), look}));
}

// [positions, C], or for two classes [positions, 1]: scores that may be compared between positions.
// Logarithms of probabilities have the same order, with less ties near 1.
Tensor AUROC::comparable(const Tensor& scores) const {
  const Tensor rows = rows_of(scores);
  if (rows.size(1) > 2) {
    return options_.probabilities ? rows : log_softmax(rows, 1);
  }
  const Tensor second = narrow(rows, 1, 1, 1);
  return options_.probabilities ? second
                                : sub(second.to(DType::f64), narrow(rows, 1, 0, 1).to(DType::f64));
}

std::vector<std::optional<double>> AUROC::areas() const {
  check(bad_.value(0) == 0, out_of_range(name(), bad_.value(0)));
  if (options_.probabilities) {
    check(bad_.value(1) == 0, name(), ": got ", bad_.value(1),
          " scores below 0 or above 1 with the option probabilities, expected probabilities");
  } else {
    check_logits(name(), bad_.value(1), bad_.value(2), "set the option probabilities");
  }
  const Tensor scores = scores_.read(), targets = targets_.read();
  if (scores.numel() == 0) {
    return {};
  }
  const auto classes = static_cast<size_t>(scores.size(1));
  const bool by_label = targets.size(1) > 1 || options_.multilabel;
  const std::vector<double> score = scores.to_vector<double>();
  const std::vector<int64_t> target = targets.to_vector<int64_t>();
  const size_t rows = score.size() / classes;
  std::vector<std::optional<double>> all;
  std::vector<Scored> samples;
  for (size_t c = 0; c < classes; ++c) {
    samples.clear();
    for (size_t row = 0; row < rows; ++row) {
      const int64_t own = by_label ? target[row * classes + c] : target[row];
      const int64_t positive = by_label || classes == 1 ? 1 : static_cast<int64_t>(c);
      if (own >= 0) {
        samples.push_back({score[row * classes + c], own == positive});
      }
    }
    all.push_back(area(samples));
  }
  return all;
}

std::vector<double> AUROC::per_class() const {
  std::vector<double> all;
  for (const std::optional<double>& area : areas()) {
    all.push_back(area.value_or(kNaN));
  }
  return all;
}

double AUROC::value() const {
  double sum = 0;
  int64_t number = 0;
  for (const std::optional<double>& area : areas()) {
    sum += area.value_or(0);  // a NaN stays
    number += area.has_value() ? 1 : 0;
  }
  return sum / static_cast<double>(number);
}

}  // namespace binade::train
