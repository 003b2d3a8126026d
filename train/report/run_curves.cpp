#include <binade/train/report/run_curves_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace binade::train {
namespace {

using page::Axis;
using page::Plot;
using page::Series;

constexpr double kPlotWidth = 400, kPlotHeight = 260, kMega = 1e6;

// A range of more than two decades of positive values is easier to read on a logarithmic axis.
Axis::Scale scale_for(const Plot& plot) {
  double least = INFINITY, most = 0;
  for (const Series& series : plot.series) {
    for (const double v : series.y) {
      if (std::isfinite(v)) {
        if (v <= 0) {
          return Axis::linear;
        }
        least = std::min(least, v);
        most = std::max(most, v);
      }
    }
  }
  constexpr double kDecades = 100;
  return most > kDecades * least ? Axis::log10 : Axis::linear;
}

bool has_prefix(const std::string& key, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&key](const char* prefix) { return key.starts_with(prefix); });
}

// "loss" of "train_loss", "validation_loss" and "test_loss"; the key itself of others.
std::string base_of(const std::string& key) {
  for (const std::string prefix : {"train_", "validation_", "test_"}) {
    if (key.starts_with(prefix) && key.size() > prefix.size()) {
      return key.substr(prefix.size());
    }
  }
  return key;
}

// Keys that other plots show, or that say nothing as a curve.
bool is_of_machine(const std::string& key) {
  return has_prefix(key, {"learning_rate", "loss_scale", "gradient_norm", "weight_norm",
                          "skipped_steps", "samples_per_second", "workers", "decode_errors"});
}

// The first value that is not finite gets a mark.
void mark_lost(Plot& plot) {
  double first = INFINITY;
  size_t lost = 0;
  for (const Series& series : plot.series) {
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) {
        ++lost;
        first = std::min(first, series.x[i]);
      }
    }
  }
  if (lost > 0) {
    plot.marks.push_back({first, "not finite"});
  }
}

void in_megabytes(Plot& plot) {
  for (Series& series : plot.series) {
    for (double& v : series.y) {
      v /= kMega;
    }
  }
}

bool has_value(const Plot& plot) {
  return std::any_of(plot.series.begin(), plot.series.end(),
                     [](const Series& series) { return !series.x.empty(); });
}

}  // namespace

const Curves& RunPlots::curves(const RunRecord& run, From from) {
  switch (from) {
    case From::steps: return run.steps;
    case From::epochs: return run.epochs;
    case From::timeline: return run.timeline;
    default: return run.memory;
  }
}

std::set<std::string> RunPlots::keys(From from) const {
  std::set<std::string> all;
  for (const RunRecord& run : runs_) {
    for (const auto& [key, curve] : curves(run, from)) {
      all.insert(key);
    }
  }
  return all;
}

// The title has the unit.
Plot RunPlots::plot(const std::string& title) const {
  Plot plot{.title = title, .x = {.label = "step"}};
  plot.width = kPlotWidth;
  plot.height = kPlotHeight;
  return plot;
}

void RunPlots::add_curve(Plot& plot, const RunRecord& run, const Curve& curve,
                         const std::string& name) const {
  Curve shown = downsampled(curve, buckets_);
  const bool single = shown.step.size() == 1;
  plot.series.push_back({.name = runs_.size() == 1 ? name : run.name + ": " + name,
                         .x = std::move(shown.step),
                         .y = std::move(shown.value),
                         .kind = single ? Series::points : Series::line});
}

// The curve of each run that has the key. With several runs their names come first.
void RunPlots::add(Plot& plot, From from, const std::string& key, const std::string& name) const {
  for (const RunRecord& run : runs_) {
    const auto found = curves(run, from).find(key);
    if (found != curves(run, from).end() && !found->second.empty()) {
      add_curve(plot, run, found->second, name);
    }
  }
}

// The curve with the shortest steps.
const Curve* RunPlots::finest(const RunRecord& run, const std::string& key) {
  for (const From from : kFinestFirst) {
    const auto found = curves(run, from).find(key);
    if (found != curves(run, from).end() && !found->second.empty()) {
      return &found->second;
    }
  }
  return nullptr;
}

void RunPlots::keep(std::vector<Plot>& plots, Plot plot) const {
  if (has_value(plot) && plots.size() < most_) {
    mark_lost(plot);
    plots.push_back(std::move(plot));
  }
}

std::vector<Plot> RunPlots::results() const {
  std::set<std::string> bases;
  for (const From from : {From::steps, From::epochs}) {
    for (const std::string& key : keys(from)) {
      if (!is_of_machine(key)) {
        bases.insert(base_of(key));
      }
    }
  }
  std::vector<std::string> order(bases.begin(), bases.end());
  std::stable_partition(order.begin(), order.end(),
                        [](const std::string& base) { return base == "loss"; });
  std::vector<Plot> plots;
  for (const std::string& base : order) {
    Plot p = plot(base);
    if (base == "loss" && !keys(From::steps).contains("train_loss")) {
      add(p, From::timeline, "loss", "train, a step");
    }
    add(p, From::steps, "train_" + base, "train, a step");
    add(p, From::steps, base, base);
    add(p, From::epochs, "train_" + base, "train, epoch");
    add(p, From::epochs, "validation_" + base, "validation");
    add(p, From::epochs, "test_" + base, "test");
    add(p, From::epochs, base, base);
    p.y.scale = scale_for(p);
    keep(plots, std::move(p));
  }
  return plots;
}

// Points where the count of skipped steps rose, at the height of the loss scale.
void RunPlots::add_skips(Plot& plot, const std::string& scale_key) const {
  for (const RunRecord& run : runs_) {
    const Curve* scale = finest(run, scale_key);
    const Curve* skipped = finest(run, "skipped_steps");
    if (!scale || !skipped) {
      continue;
    }
    Curve at;
    for (size_t i = 0; i < skipped->step.size() && i < scale->step.size(); ++i) {
      const double before = i == 0 ? 0 : skipped->value[i - 1];
      if (skipped->value[i] > before && scale->step[i] == skipped->step[i]) {
        at.step.push_back(scale->step[i]);
        at.value.push_back(scale->value[i]);
      }
    }
    if (!at.empty()) {
      Curve shown = downsampled(at, buckets_ / 4 + 1);
      plot.series.push_back(
          {.name = runs_.size() == 1 ? "steps were skipped" : run.name + ": steps were skipped",
           .x = std::move(shown.step),
           .y = std::move(shown.value),
           .kind = Series::points});
    }
  }
}

std::vector<Plot> RunPlots::optimizer() const {
  std::set<std::string> all;
  for (const From from : kFinestFirst) {
    all.merge(keys(from));
  }
  std::vector<Plot> plots;
  for (const char* prefix : {"learning_rate", "loss_scale", "gradient_norm", "weight_norm"}) {
    for (const std::string& key : all) {
      if (!key.starts_with(prefix)) {
        continue;
      }
      Plot p = plot(key);
      for (const RunRecord& run : runs_) {
        if (const Curve* curve = finest(run, key)) {
          add_curve(p, run, *curve, key);
        }
      }
      p.y.scale = scale_for(p);
      if (key.starts_with("loss_scale")) {
        p.y.scale = Axis::log2;
        add_skips(p, key);
      }
      keep(plots, std::move(p));
    }
  }
  return plots;
}

std::vector<Plot> RunPlots::speed() const {
  std::vector<Plot> plots;
  Plot rate = plot("samples per second");
  const bool fine = keys(From::timeline).contains("samples_per_second");
  add(rate, fine ? From::timeline : From::epochs, "samples_per_second", "samples per second");
  keep(plots, std::move(rate));
  Plot wait = plot("share of the time spent waiting for data");
  add(wait, From::timeline, "wait_share", "the step waits for the loader");
  wait.caption =
      "0: the loader keeps up. Near 1: reading, decoding or transforming is the bottleneck; more "
      "workers may help.";
  keep(plots, std::move(wait));
  return plots;
}

std::vector<Plot> RunPlots::memory() const {
  std::vector<Plot> plots;
  Plot total = plot("memory, MB");
  for (const auto& [key, name] : {std::pair("allocated", "in tensors"),
                                  {"reserved", "taken from the system"},
                                  {"peak", "most of the run's own since the point before"},
                                  {"device_allocated", "in tensors of the device"},
                                  {"device_reserved", "taken from the device"}}) {
    add(total, From::timeline, key, name);
  }
  in_megabytes(total);
  keep(plots, std::move(total));
  if (runs_.size() == 1) {
    Plot modules = plot("memory by module at the fullest moment, MB");
    std::vector<std::pair<double, std::string>> largest;
    for (const auto& [key, curve] : runs_[0].memory) {
      largest.emplace_back(-curve.most_finite(), key);
    }
    std::sort(largest.begin(), largest.end());
    for (size_t i = 0; i < std::min(largest.size(), page::kColors); ++i) {
      add(modules, From::memory, largest[i].second, largest[i].second);
    }
    modules.caption =
        "What modules' ops allocated and still held: saved activations, gradients on their way, "
        "workspaces.";
    in_megabytes(modules);
    keep(plots, std::move(modules));
  }
  return plots;
}

}  // namespace binade::train
