#include <binade/core/observe/text_table_internal.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/metrics/class_tensors_internal.h>
#include <binade/train/metrics/confusion_matrix.h>
#include <binade/train/report/numbers_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

namespace binade::train {
namespace {

constexpr int64_t kWidest = 20;  // classes with a column each
constexpr size_t kPairs = 20;

std::vector<std::string> numbers_to(int64_t classes) {
  check(classes >= 2, "confusion matrix: got ", classes, " classes, expected at least two");
  std::vector<std::string> names;
  for (int64_t c = 0; c < classes; ++c) {
    names.push_back(std::to_string(c));
  }
  return names;
}

ClassMetricOptions with_classes(ClassMetricOptions options, size_t classes) {
  check(options.classes == 0 || options.classes == static_cast<int64_t>(classes),
        "confusion matrix: got ", classes, " names and the option classes = ", options.classes,
        ", expected as many");
  options.classes = static_cast<int64_t>(classes);
  return options;
}

std::string rounded(double share) {
  if (std::isnan(share)) {
    return "nan";
  }
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%.4f", share);
  return buffer;
}

double ratio(int64_t part, int64_t all) {
  return static_cast<double>(part) / static_cast<double>(all);
}

// A line for each of the pairs that are confused most, in order.
std::string most_confused(const std::vector<int64_t>& counts,
                          const std::vector<std::string>& names) {
  const size_t classes = names.size();
  std::vector<size_t> cells;
  for (size_t cell = 0; cell < counts.size(); ++cell) {
    if (cell / classes != cell % classes && counts[cell] > 0) {
      cells.push_back(cell);
    }
  }
  std::stable_sort(cells.begin(), cells.end(),
                   [&](size_t a, size_t b) { return counts[a] > counts[b]; });
  cells.resize(std::min(cells.size(), kPairs));
  std::vector<std::vector<std::string>> rows = {{"target", "predicted", "samples"}};
  for (size_t cell : cells) {
    rows.push_back({printable(names[cell / classes]), printable(names[cell % classes]),
                    std::to_string(counts[cell])});
  }
  return cells.empty() ? "" : "\nMost confused:\n" + text_table(rows);
}

}  // namespace

struct ConfusionMatrix::Sums {
  std::vector<int64_t> right, samples, predicted;  // per class
};

ConfusionMatrix::ConfusionMatrix(std::vector<std::string> names, const ClassMetricOptions& options)
    : ClassMetric("balanced_accuracy", with_classes(options, names.size())),
      names_(std::move(names)),
      counts_(*this, "counts", classes() * classes()) {
  check(classes() >= 2, "confusion matrix: got ", classes(), " names, expected at least two");
  check(!options.threshold || classes() == 2, "confusion matrix: got ", classes(),
        " names and a threshold, expected two: of 0 and 1");
}

ConfusionMatrix::ConfusionMatrix(int64_t classes, const ClassMetricOptions& options)
    : ConfusionMatrix(numbers_to(classes), options) {}

void ConfusionMatrix::add_classes(const ClassTensors& t) {
  const int64_t cells = classes() * classes();
  const Tensor cell = binade::add(mul(t.target, static_cast<double>(classes())), t.predicted);
  // One more place takes the positions that do not count.
  const Tensor place =
      flatten(masked_fill(cell, logical_not(t.counted), static_cast<double>(cells)));
  const Tensor none = zeros({cells + 1}, DType::i64, cell.device());
  counts_.add(narrow(scatter_add(none, 0, place, ones_like(place)), 0, 0, cells));
}

int64_t ConfusionMatrix::count(int64_t target, int64_t predicted) const {
  check_class("count", target);
  check_class("count", predicted);
  return counts_.value(target * classes() + predicted);
}

std::vector<int64_t> ConfusionMatrix::counts() const {
  (void)has_nan();  // throws if a class was out of range
  return counts_.values();
}

void ConfusionMatrix::check_class(const char* function, int64_t c) const {
  check(c >= 0 && c < classes(), "confusion matrix: got class ", c, " in ", function,
        "(), expected 0 to ", classes() - 1);
}

ConfusionMatrix::Sums ConfusionMatrix::sums() const {
  const std::vector<int64_t> all = counts();
  const auto classes = names_.size();
  Sums sums{std::vector<int64_t>(classes), std::vector<int64_t>(classes),
            std::vector<int64_t>(classes)};
  for (size_t target = 0; target < classes; ++target) {
    for (size_t predicted = 0; predicted < classes; ++predicted) {
      const int64_t count = all[target * classes + predicted];
      sums.samples[target] += count;
      sums.predicted[predicted] += count;
    }
    sums.right[target] = all[target * classes + target];
  }
  return sums;
}

double ConfusionMatrix::value() const {
  const Sums s = sums();
  double recalls = 0;
  int64_t present = 0;
  for (size_t c = 0; c < names_.size(); ++c) {
    if (s.samples[c] > 0) {
      recalls += ratio(s.right[c], s.samples[c]);
      ++present;
    }
  }
  return has_nan() ? kNaN : recalls / static_cast<double>(present);
}

double ConfusionMatrix::accuracy() const {
  const Sums s = sums();
  const auto total = [](const std::vector<int64_t>& x) {
    return std::accumulate(x.begin(), x.end(), int64_t{0});
  };
  return has_nan() ? kNaN : ratio(total(s.right), total(s.samples));
}

double ConfusionMatrix::precision(int64_t c) const {
  check_class("precision", c);
  const Sums s = sums();
  const auto at = static_cast<size_t>(c);
  return has_nan() ? kNaN : ratio(s.right[at], s.predicted[at]);
}

double ConfusionMatrix::recall(int64_t c) const {
  check_class("recall", c);
  const Sums s = sums();
  const auto at = static_cast<size_t>(c);
  return has_nan() ? kNaN : ratio(s.right[at], s.samples[at]);
}

double ConfusionMatrix::f1(int64_t c) const {
  check_class("f1", c);
  const Sums s = sums();
  const auto at = static_cast<size_t>(c);
  return has_nan() ? kNaN : ratio(2 * s.right[at], s.samples[at] + s.predicted[at]);
}

std::string ConfusionMatrix::report() const {
  const std::vector<int64_t> all = counts();
  const Sums s = sums();
  const size_t classes = names_.size();
  const bool wide = this->classes() <= kWidest;
  std::vector<std::vector<std::string>> rows(1 + classes);
  rows[0].push_back(wide ? "target \\ predicted" : "target");
  for (size_t c = 0; wide && c < classes; ++c) {
    rows[0].push_back(printable(names_[c]));
  }
  rows[0].insert(rows[0].end(), {"samples", "precision", "recall"});
  for (size_t target = 0; target < classes; ++target) {
    std::vector<std::string>& row = rows[target + 1];
    row.push_back(printable(names_[target]));
    for (size_t c = 0; wide && c < classes; ++c) {
      row.push_back(std::to_string(all[target * classes + c]));
    }
    row.insert(row.end(), {std::to_string(s.samples[target]),
                           rounded(ratio(s.right[target], s.predicted[target])),
                           rounded(ratio(s.right[target], s.samples[target]))});
  }
  std::string text = text_table(rows);
  if (!wide) {
    text += most_confused(all, names_);
  }
  if (has_nan()) {
    text += "Outputs or targets that are not a number are in no cell; the value is NaN.\n";
  }
  return text;
}

}  // namespace binade::train
