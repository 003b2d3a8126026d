#include <binade/core/observe/warning.h>
#include <binade/train/finders/rate_finder.h>
#include <binade/train/report/page.h>

#include <algorithm>
#include <cmath>

namespace binade::train {
namespace {

void check_options(const RateFinderOptions& o) {
  check(o.least > 0 && o.most > o.least && std::isfinite(o.most), "find_rate: got rates from ",
        o.least, " to ", o.most, ", expected 0 < least < most");
  check(o.steps >= 10, "find_rate: got ", o.steps, " steps, expected at least 10");
  check(o.smoothing >= 0 && o.smoothing < 1, "find_rate: got smoothing ", o.smoothing,
        ", expected [0, 1)");
  check(o.stop_factor > 1, "find_rate: got stop_factor ", o.stop_factor, ", expected more than 1");
}

// Batches without an end: starts the next epoch when one ends.
class Endless {
 public:
  explicit Endless(data::Loader& loader) : loader_(loader) { loader_.epoch(0); }
  data::Batch next(Device device) {
    data::Batch batch;
    if (!loader_.next(batch)) {
      loader_.epoch(++epoch_);
      check(loader_.next(batch), "find_rate: got a loader without batches, expected at least one");
    }
    return batch.to(device);
  }

 private:
  data::Loader& loader_;
  int64_t epoch_ = 0;
};

// Sets the rates of all groups; restores them at the end.
class Rates {
 public:
  explicit Rates(optim::Optimizer& optimizer) : optimizer_(optimizer) {
    for (size_t i = 0; i < optimizer.group_count(); ++i) {
      before_.push_back(optimizer.lr(i));
    }
  }
  ~Rates() { put(before_); }
  Rates(const Rates&) = delete;
  Rates& operator=(const Rates&) = delete;
  void set(double rate) const {
    std::vector<double> rates = before_;
    for (double& r : rates) {
      r = before_[0] > 0 ? rate * r / before_[0] : rate;
    }
    put(rates);
  }

 private:
  void put(const std::vector<double>& rates) const {
    for (size_t i = 0; i < rates.size(); ++i) {
      optimizer_.set_lr(i, rates[i]);
    }
  }
  optim::Optimizer& optimizer_;
  std::vector<double> before_;
};

// Finds the steepest fall of the smoothed loss per decade, before its smallest value. The first
// tenth of the steps only measures the initial loss.
void choose(FoundRate& found) {
  const auto least = std::min_element(found.smoothed.begin(), found.smoothed.end());
  const auto end = static_cast<size_t>(least - found.smoothed.begin());
  found.at_least_loss = found.smoothed.empty() ? 0 : found.rates[end];
  double steepest = 0;
  for (size_t i = found.smoothed.size() / 10 + 1; i < end; ++i) {
    const double slope = (found.smoothed[i + 1] - found.smoothed[i - 1]) /
                         std::log10(found.rates[i + 1] / found.rates[i - 1]);
    if (slope < steepest) {
      steepest = slope;
      found.rate = found.rates[i];
    }
  }
}

}  // namespace

FoundRate find_rate(const FinderParts& parts, data::Loader& loader,
                    const RateFinderOptions& options) {
  check_options(options);
  StateSnapshot snapshot(parts);
  const Rates rates(parts.optimizer);
  parts.model.train();
  Endless batches(loader);
  FoundRate found;
  double average = 0, weight = 0, best = INFINITY;
  for (int64_t i = 0; i < options.steps; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(options.steps - 1);
    const double rate = options.least * std::pow(options.most / options.least, share);
    rates.set(rate);
    const double loss = train_step(parts, batches.next(parts.optimizer.device()));
    if (!std::isfinite(loss)) {
      found.stopped = text("the loss is not finite at rate ", page::short_number(rate));
      break;
    }
    average = options.smoothing * average + (1 - options.smoothing) * loss;
    weight = options.smoothing * weight + (1 - options.smoothing);
    found.rates.push_back(rate);
    found.losses.push_back(loss);
    found.smoothed.push_back(average / weight);
    best = std::min(best, found.smoothed.back());
    if (found.smoothed.back() > options.stop_factor * std::abs(best) && i > options.steps / 10) {
      found.stopped = text("the loss is ", options.stop_factor,
                           " times its smallest value at rate ", page::short_number(rate));
      break;
    }
  }
  choose(found);
  return found;
}

std::string to_string(const FoundRate& found) {
  const std::string end = found.stopped.empty() ? "" : "; " + found.stopped;
  if (found.rate == 0) {
    return text("no learning rate was found: the loss did not fall in ", found.rates.size(),
                " steps", end, "\n");
  }
  return text("learning rate ", page::short_number(found.rate),
              ": there the loss falls fastest; it is smallest at ",
              page::short_number(found.at_least_loss), end, "\n");
}

std::string to_html(const FoundRate& found) {
  page::Plot plot{
      .title = "Loss over the learning rate",
      .caption = "The rate grows from step to step. Useful rates are where the loss falls.",
      .x = {.label = "learning rate", .scale = page::Axis::log10},
      .y = {.label = "loss"},
      .series = {{.name = "smoothed", .x = found.rates, .y = found.smoothed},
                 {.name = "loss of a step", .x = found.rates, .y = found.losses}}};
  if (found.rate > 0) {
    plot.marks.push_back({found.rate, "steepest"});
  }
  return page::head("Learning rate range test", true) + "<h1>Learning rate range test</h1>\n<p>" +
         page::escaped(to_string(found)) + "</p>\n" + page::figure_with_readout(plot) +
         page::foot();
}

double scale_rate(double rate, int64_t batch, int64_t base_batch, RateScaling scaling) {
  check(batch > 0 && base_batch > 0, "scale_rate: got batch ", batch, " and base batch ",
        base_batch, ", expected at least 1");
  const double ratio = static_cast<double>(batch) / static_cast<double>(base_batch);
  return scaling == RateScaling::none     ? rate
         : scaling == RateScaling::linear ? rate * ratio
                                          : rate * std::sqrt(ratio);
}

}  // namespace binade::train
