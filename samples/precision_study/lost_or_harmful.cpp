// Lost updates need not do harm: finds at which rate it matters that bf16 weights lose them, and
// whether stochastic rounding and compensation keep them.
#include <cmath>

#include "experiment.h"
#include "training.h"

namespace study {
namespace {

constexpr int kPairs = 5;  // seeds
constexpr double kSlow = 1e-4, kUsual = 1e-3;
constexpr double kHarm = 2, kNoHarm = 1;  // points of accuracy

struct Arm {
  const char* name;
  bool masters;
  LowUpdates how;
};
constexpr Arm kArms[] = {{"f32 masters", true, LowUpdates::nearest},
                         {"nearest", false, LowUpdates::nearest},
                         {"stochastic", false, LowUpdates::stochastic},
                         {"compensated", false, LowUpdates::compensated}};
enum : size_t { kMasters, kNearest, kStochastic, kCompensated };

// The results of one arm at one rate, over the seeds.
struct ArmResult {
  std::vector<double> points;  // accuracy in %
  double lost = 0;             // share of updates that changed nothing

  double mean() const {
    double sum = 0;
    for (const double p : points) {
      sum += p / static_cast<double>(points.size());
    }
    return sum;
  }
  double deviation() const {
    double squares = 0;
    for (const double p : points) {
      squares += (p - mean()) * (p - mean());
    }
    return std::sqrt(squares / (static_cast<double>(points.size()) - 1));
  }
};

ArmResult train_arm(const Task& task, const Arm& arm, double rate, bool broken) {
  ArmResult result;
  int64_t updates = 0, swallowed = 0;
  for (int seed = 1; seed <= kPairs; ++seed) {
    const Run run = train_model(task, {.precision = arm.masters ? Precision::mixed(DType::bf16)
                                                                : Precision::half(DType::bf16),
                                       .loss_scale = kUnscaled,
                                       .adam = true,
                                       .lr = rate,
                                       .steps = 1500,
                                       .seed = static_cast<uint64_t>(seed),
                                       .count_updates = 100,
                                       .low_updates = broken ? LowUpdates::nearest : arm.how});
    result.points.push_back(100 * run.accuracy);
    updates += run.updates;
    swallowed += run.swallowed;
  }
  result.lost = static_cast<double>(swallowed) / static_cast<double>(updates);
  return result;
}

std::vector<ArmResult> train_arms(const Task& task, double rate, const Lab& lab) {
  std::vector<ArmResult> all;
  for (const Arm& arm : kArms) {
    all.push_back(train_arm(task, arm, rate, lab.broken));
  }
  return all;
}

void add_row(const std::vector<ArmResult>& all, double rate, Table& table) {
  for (size_t i = 0; i < all.size(); ++i) {
    table.rows.push_back({number(rate), kArms[i].name,
                          fixed(all[i].mean(), 1) + " \u00b1 " + fixed(all[i].deviation(), 1),
                          percent(all[i].lost)});
  }
}

void run(const Lab& lab, Report& report) {
  const Task task = mlp_task(lab.data);
  const std::vector<ArmResult> slow = train_arms(task, kSlow, lab),
                               usual = train_arms(task, kUsual, lab);
  Table table{.caption =
                  "Test accuracy in %, mean and standard deviation over 5 seeds; share of "
                  "updates of nonzero gradients that left the weight as it was",
              .head = {"rate", "weights", "accuracy", "lost"},
              .rows = {}};
  add_row(slow, kSlow, table);
  add_row(usual, kUsual, table);
  report.tables.push_back(table);
  Series at_slow{.name = "rate 1e-4", .x = {}, .y = {}, .kind = Series::points, .error = {}};
  Series at_usual{.name = "rate 1e-3", .x = {}, .y = {}, .kind = Series::points, .error = {}};
  std::vector<std::string> names;
  for (size_t i = 0; i < slow.size(); ++i) {
    names.emplace_back(kArms[i].name);
    for (auto* series : {&at_slow, &at_usual}) {
      const ArmResult& own = series == &at_slow ? slow[i] : usual[i];
      series->x.push_back(static_cast<double>(i));
      series->y.push_back(own.mean());
      series->error.push_back(own.deviation());
    }
  }
  report.plots.push_back({.title = "Accuracy by the kind of update",
                          .caption = "An MLP under AdamW for 1500 steps; bars are one standard "
                                     "deviation over 5 seeds.",
                          .x = {.label = "bf16 weights", .categories = names},
                          .y = {.label = "accuracy (%)"},
                          .series = {at_slow, at_usual}});
  const double masters = slow[kMasters].mean();
  report.at_least("rate 1e-4: share of updates that nearest rounding loses", slow[kNearest].lost,
                  0.5);
  report.at_least("rate 1e-4: points that nearest rounding costs", masters - slow[kNearest].mean(),
                  kHarm);
  report.at_most("rate 1e-4: points that stochastic rounding costs",
                 masters - slow[kStochastic].mean(), kNoHarm);
  report.at_most("rate 1e-4: points that compensation costs", masters - slow[kCompensated].mean(),
                 kNoHarm);
  report.at_least("rate 1e-3: share of updates that nearest rounding loses", usual[kNearest].lost,
                  0.2);
  for (const size_t arm : {kNearest, kStochastic, kCompensated}) {
    report.at_most(std::string("rate 1e-3: points that weights cost, ") + kArms[arm].name,
                   usual[kMasters].mean() - usual[arm].mean(), kNoHarm);
  }
}

}  // namespace

const Experiment kLostOrHarmful{
    .name = "lost-or-harmful",
    .title = "A lost update is harm only where many small ones would have added up",
    .section = "section 3.1",
    .claim =
        "Updates that f16 weights lose cost accuracy, so weights need an f32 master copy. (The "
        "paper's example loses 80% in relative accuracy without masters.)",
    .method =
        "An MLP with bf16 weights, trained with AdamW at two rates over 5 seeds: with f32 masters, "
        "and without them with updates rounded to nearest, stochastically, and compensated. At the "
        "rate 1e-3 many updates are lost and nothing happens; at 1e-4 most are lost and so is "
        "accuracy, until rounding keeps them on average.",
    .mechanism =
        "stochastic rounding and compensation: all weights without masters round to "
        "nearest",
    .run = run};

}  // namespace study
