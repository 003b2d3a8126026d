// f32 against mixed over pairs of runs that differ only in the precision.
#include <cmath>

#include "experiment.h"
#include "training.h"

namespace study {
namespace {

constexpr int kSeeds = 8;
constexpr double kQuantile = 2.365;  // of Student's t with 7 degrees of freedom, 97.5%
// A share of the spread over seeds: the difference must be smaller than the effect of another seed.
constexpr double kOfSpread = 1;

struct Interval {
  double mean, half_width, spread;  // spread: of the f32 runs, over seeds
  double reach() const { return std::abs(mean) + half_width; }
};

double mean_of(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) {
    mean += value / static_cast<double>(values.size());
  }
  return mean;
}

// The standard deviation of the sample.
double spread_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

// The 95% interval of the mean of paired differences.
Interval interval_of(const std::vector<double>& differences, double spread) {
  const double half_width =
      kQuantile * spread_of(differences) / std::sqrt(static_cast<double>(differences.size()));
  return {mean_of(differences), half_width, spread};
}

struct Means {
  double test_loss = 0, accuracy = 0, seconds = 0, saved = 0, peak = 0;
  void add(const Run& run) {
    test_loss += run.test_loss / kSeeds;
    accuracy += run.accuracy / kSeeds;
    seconds += run.seconds / kSeeds;
    saved += static_cast<double>(run.saved_bytes) / kSeeds;
    peak += static_cast<double>(run.peak_bytes) / kSeeds;
  }
};

struct Figures {
  Table quality{
      .caption = "Means over 8 seeds; the difference is mixed - f32, in % of the test loss",
      .head = {"model", "steps", "f32", "mixed f16", "difference, 95% interval",
               "spread over seeds"},
      .rows = {}};
  Table cost{.caption =
                 "Means over 8 seeds. Time is CPU time on the CPU (which converts f16 to f32 "
                 "for arithmetic), else time of the clock",
             .head = {"model", "time f32", "time mixed", "kept for backward f32", "kept, mixed",
                      "peak memory f32", "peak, mixed"},
             .rows = {}};
  Series intervals{
      .name = "mixed - f32, 95% interval", .x = {}, .y = {}, .kind = Series::points, .error = {}};
  std::vector<std::string> models;
};

void add_figures(const Task& task, int64_t steps, const Means& full, const Means& mixed,
                 const Interval& interval, Figures& figures) {
  const auto quality = [&](const Means& m) {
    return task.classifies ? percent(m.accuracy) + " accuracy" : fixed(m.test_loss, 4) + " nats";
  };
  const std::string unit = "%";
  figures.quality.rows.push_back(
      {task.name, std::to_string(steps), quality(full), quality(mixed),
       fixed(interval.mean, 4) + " \u00b1 " + fixed(interval.half_width, 4) + unit,
       fixed(interval.spread, 4) + unit});
  figures.cost.rows.push_back({task.name, fixed(full.seconds, 2) + " s",
                               fixed(mixed.seconds, 2) + " s", bytes(full.saved),
                               bytes(mixed.saved), bytes(full.peak), bytes(mixed.peak)});
  figures.intervals.x.push_back(static_cast<double>(figures.models.size()));
  figures.intervals.y.push_back(interval.mean / interval.spread);
  figures.intervals.error.push_back(interval.half_width / interval.spread);
  figures.models.push_back(task.name);
}

void pair_up(const Task& task, Recipe recipe, const Lab& lab, Report& report, Figures& figures) {
  Means full, mixed;
  std::vector<double> differences, of_f32;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    recipe.seed = static_cast<uint64_t>(seed);
    recipe.precision = Precision::full();
    recipe.loss_scale = kUnscaled;
    const Run wide = train_model(task, recipe);
    recipe.precision = lab.broken ? Precision::half(DType::bf16) : Precision::mixed(DType::f16);
    recipe.loss_scale = lab.broken ? kUnscaled : kDynamic;
    const Run low = train_model(task, recipe);
    full.add(wide);
    mixed.add(low);
    of_f32.push_back(100 * wide.test_loss);
    differences.push_back(100 * (low.test_loss / wide.test_loss - 1));
  }
  // In % of the test loss, which has more digits than the accuracy.
  const Interval interval = interval_of(differences, spread_of(of_f32) / full.test_loss);
  add_figures(task, recipe.steps, full, mixed, interval, figures);
  report.at_most(task.name + ": f32 test loss / that of chance", full.test_loss / task.chance_loss,
                 0.6);
  report
      .at_most(task.name + ": far end of the 95% interval / spread over seeds",
               interval.reach() / interval.spread, kOfSpread)
      .by_mechanism = true;
}

void run(const Lab& lab, Report& report) {
  Figures figures;
  const Recipe adam{.adam = true, .lr = 3e-3, .cosine = true};
  // The MLP takes small steps: with large ones a rounding grows to the difference of two seeds.
  Recipe longer = adam, small = adam;
  longer.steps = 600;
  small.lr = 3e-4;
  small.steps = 2000;
  pair_up(mlp_task(lab.data), small, lab, report, figures);
  pair_up(cnn_task(lab.data), longer, lab, report, figures);
  pair_up(gpt_task(lab.data), adam, lab, report, figures);
  pair_up(lstm_task(lab.data), adam, lab, report, figures);
  report.tables.push_back(figures.quality);
  report.tables.push_back(figures.cost);
  report.plots.push_back(
      {.title = "Paired differences over 8 seeds",
       .caption =
           "In units of the bound, the standard deviation of the test loss of the f32 runs over "
           "seeds. Inside -1 to 1 the claim holds.",
       .x = {.label = "model", .categories = figures.models},
       .y = {.label = "difference / bound"},
       .series = {figures.intervals,
                  {"upper bound", {-0.5, 3.5}, {1, 1}},
                  {"lower bound", {-0.5, 3.5}, {-1, -1}}}});
}

}  // namespace

const Experiment kPairedSeeds{
    .name = "paired-seeds",
    .title = "Mixed precision matches f32",
    .section = "section 4, Tables 1 to 3",
    .claim =
        "Networks of many kinds reach the accuracy of f32 training in mixed precision with the "
        "same hyper-parameters.",
    .method =
        "Four models, each trained with AdamW in f32 and in mixed f16 with a dynamic scale, "
        "from the same initial weights on the same batches, for 8 seeds. The 95% interval of "
        "the paired difference must lie within the standard deviation of the f32 runs over seeds.",
    .mechanism =
        "masters, scaler and f16: the second run of each pair has bf16 weights without "
        "masters",
    .run = run};

}  // namespace study
