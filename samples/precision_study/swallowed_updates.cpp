// Finds the updates that do not change an f16 weight.
#include <cmath>

#include "experiment.h"
#include "training.h"

namespace study {
namespace {

constexpr int64_t kSteps = 600;
constexpr double kRate = 0.003;
constexpr double kLostWithout = 0.3, kLostWith = 1e-3;

bool swallowed(half weight, double update) {
  return half(static_cast<double>(weight) - update).bits == weight.bits;
}

// The share of all normal f16 weights (as far as the sum stays in range) that an update of |w| /
// ratio, upwards or downwards, does not change.
double swallowed_share(double ratio) {
  int64_t of = 0, hits = 0;
  for (uint16_t bits = 0x3000; bits < 0x7000; ++bits) {  // 2^-3 to 2^13: every significand
    const half weight = half::from_bits(bits);
    const double update = static_cast<double>(weight) / ratio;
    hits += swallowed(weight, update) + swallowed(weight, -update);
    of += 2;
  }
  return static_cast<double>(hits) / static_cast<double>(of);
}

struct Lost {
  int64_t updates = 0, by_f16 = 0, by_kept = 0;
  double share_f16() const { return share(by_f16); }
  double share_kept() const { return share(by_kept); }

 private:
  double share(int64_t hits) const {
    return updates ? static_cast<double>(hits) / static_cast<double>(updates) : 0;
  }
};

// One step's non-zero updates lr g of plain SGD: how many of them do not change an f16 copy of the
// weights, and how many do not change the value that the optimizer keeps (a master, or the f16
// weight itself).
Lost count_lost(const Moment& moment) {
  Lost lost;
  const std::vector<Tensor> all = kept_values(moment.model, moment.optimizer);
  const ParameterList parameters = moment.model.parameters();
  for (size_t p = 0; p < all.size(); ++p) {
    const Tensor gradient = parameters[p].value.grad().to(Device{}).contiguous();
    const Tensor& kept = all[p];
    const bool has_master = kept.dtype() == DType::f32;
    for (int64_t i = 0; i < gradient.numel(); ++i) {
      const double update = kRate * gradient.data<float>()[i];
      if (update == 0) {
        continue;
      }
      ++lost.updates;
      const double weight =
          has_master ? kept.data<float>()[i] : static_cast<double>(kept.data<half>()[i]);
      const bool by_f16 = swallowed(half(weight), update);
      lost.by_f16 += by_f16;
      lost.by_kept +=
          has_master ? static_cast<float>(weight - update) == static_cast<float>(weight) : by_f16;
    }
  }
  return lost;
}

void rule(Report& report) {
  Series series{.name = "f16 weights that swallow it", .x = {}, .y = {}};
  double below = 0, above = 1;
  for (double ratio = 512; ratio <= 16384; ratio *= std::exp2(0.25)) {
    const double share = swallowed_share(ratio);
    series.x.push_back(ratio);
    series.y.push_back(100 * share);
    if (ratio <= 2048) {
      below = std::max(below, share);
    }
    if (ratio > 4100) {
      above = std::min(above, share);
    }
  }
  report.plots.push_back({.title = "Updates that an f16 weight does not feel",
                          .caption = "Every f16 significand and exponent from 2^-3 to 2^12, moved "
                                     "up and down by |w| / ratio and rounded to nearest even.",
                          .x = {.label = "ratio |weight| / |update|", .scale = Axis::log2},
                          .y = {.label = "share of weights (%)"},
                          .series = {series},
                          .marks = {{2048, "2048"}, {4096, "4096"}}});
  report.at_most("rule: share swallowed at a ratio up to 2048", below, 0.001);
  report.at_least("rule: share swallowed at a ratio above 4096", above, 1);
}

void run(const Lab& lab, Report& report) {
  rule(report);
  Curve f16, kept;
  Lost total;
  const Task task = mlp_task(lab.data);
  const Precision precision =
      lab.broken ? Precision::half(DType::f16) : Precision::mixed(DType::f16);
  (void)train_model(task,
                    {.precision = precision, .loss_scale = 1024, .lr = kRate, .steps = kSteps},
                    [&](const Moment& moment) {
                      if (moment.step % 20 != 0) {
                        return;
                      }
                      const Lost lost = count_lost(moment);
                      total.updates += lost.updates;
                      total.by_f16 += lost.by_f16;
                      total.by_kept += lost.by_kept;
                      f16.x.push_back(static_cast<double>(moment.step));
                      f16.y.push_back(100 * lost.share_f16());
                      kept.x.push_back(static_cast<double>(moment.step));
                      kept.y.push_back(100 * lost.share_kept());
                    });
  report.plots.push_back({.title = "Updates lost in a training run",
                          .caption = "Of the non-zero updates of an MLP under SGD with a learning "
                                     "rate of 0.003, every 20th step.",
                          .x = {.label = "step"},
                          .y = {.label = "share of updates (%)"},
                          .series = {{"by f16 weights", f16.x, f16.y},
                                     {"by what the optimizer keeps", kept.x, kept.y}}});
  report.at_least("run: share of updates that f16 weights swallow", total.share_f16(),
                  kLostWithout);
  report
      .at_most("run: share of updates that what the optimizer keeps swallows", total.share_kept(),
               kLostWith)
      .by_mechanism = true;
}

}  // namespace

const Experiment kSwallowedUpdates{
    .name = "swallowed-updates",
    .title = "From 2048 to 4096 times smaller than its weight, an update is lost in f16",
    .section = "section 3.1",
    .claim =
        "Even an update that f16 can represent becomes zero in the addition when the weight is "
        "at least 2048 times larger: the implicit bit of the 11-bit significand is then "
        "shifted by 11 positions or more, to the right of the last.",
    .method =
        "First the rule itself, on every f16 significand, rounded to nearest even: at ratios up "
        "to 2048 no update is lost (but ties at powers of two), at ratios above 4096 all "
        "are; in between it depends on the significand. Then a real run: how large a share of each "
        "step's updates would f16 weights swallow, and how large a share do the f32 masters "
        "swallow?",
    .mechanism = "the f32 masters",
    .run = run};

}  // namespace study
