// Finds the loss scales that work.
#include <algorithm>
#include <cmath>

#include "experiment.h"
#include "training.h"

namespace study {
namespace {

constexpr int64_t kSteps = 500;
constexpr double kLossFactor = 0x1p-20;  // makes gradients small in this experiment
constexpr double kSameLoss = 0.05, kWorse = 0.5;

Run run_at(const Task& task, double scale, double factor, Precision precision) {
  return train_model(task, {.precision = precision,
                            .loss_scale = scale,
                            .lr = 0.02,
                            .momentum = 0.9,
                            .cosine = true,
                            .steps = kSteps,
                            .loss_factor = factor});
}

void run(const Lab& lab, Report& report) {
  const Task task = mlp_task(lab.data);
  const Precision mixed = Precision::mixed(DType::f16);
  const Run base = run_at(task, kUnscaled, 1, Precision::full());
  Table table{.caption = "MLP, 500 steps of SGD",
              .head = {"loss scale", "test loss, ordinary gradients", "test loss, gradients / 2^20",
                       "accuracy, ordinary", "accuracy, / 2^20", "skipped steps (/ 2^20)"},
              .rows = {{"f32", fixed(base.test_loss, 4), fixed(base.test_loss, 4),
                        percent(base.accuracy), percent(base.accuracy), "0"}}};
  Series ordinary{.name = "f16, ordinary gradients", .x = {}, .y = {}};
  Series small{.name = "f16, gradients / 2^20", .x = {}, .y = {}};
  double unscaled = 0, largest = 0, harm = 0;
  for (const double scale : {1.0, 8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0, 32768.0}) {
    const double used = lab.broken ? 1 : scale;
    const Run at_one = run_at(task, used, 1, mixed),
              at_small = run_at(task, used, kLossFactor, mixed);
    ordinary.x.push_back(scale);
    ordinary.y.push_back(at_one.test_loss);
    small.x.push_back(scale);
    small.y.push_back(at_small.test_loss);
    table.rows.push_back({fixed(scale, 0), fixed(at_one.test_loss, 4), fixed(at_small.test_loss, 4),
                          percent(at_one.accuracy), percent(at_small.accuracy),
                          std::to_string(at_small.skipped)});
    harm = std::max(harm, std::abs(at_one.test_loss / base.test_loss - 1));
    unscaled = scale == 1 ? at_small.test_loss : unscaled;
    largest = at_small.test_loss;
  }
  const Run dynamic = run_at(task, lab.broken ? kUnscaled : kDynamic, kLossFactor, mixed);
  table.rows.push_back({"dynamic, ends at " + fixed(dynamic.last_scale, 0), "",
                        fixed(dynamic.test_loss, 4), "", percent(dynamic.accuracy),
                        std::to_string(dynamic.skipped)});
  const std::vector<double> ends = {1, 32768};
  report.plots.push_back(
      {.title = "Test loss against the loss scale",
       .caption = "Gradients of ordinary size need no scale in this model. Divided by 2^20 (the "
                  "learning rate times 2^20 undoes it, exactly in f32) they do.",
       .x = {.label = "loss scale", .scale = Axis::log2},
       .y = {.label = "test loss (nats)"},
       .series = {ordinary,
                  small,
                  {"dynamic scale, gradients / 2^20", ends, {dynamic.test_loss, dynamic.test_loss}},
                  {"f32", ends, {base.test_loss, base.test_loss}}}});
  report.tables.push_back(table);
  report.at_least("small gradients, scale 1: test loss / f32 - 1", unscaled / base.test_loss - 1,
                  kWorse);
  report
      .at_most("small gradients, scale 32768: test loss / f32 - 1", largest / base.test_loss - 1,
               kSameLoss)
      .by_mechanism = true;
  report.at_most("ordinary gradients, any scale: | test loss / f32 - 1 |", harm, kSameLoss);
  report
      .at_most("small gradients, dynamic scale: test loss / f32 - 1",
               dynamic.test_loss / base.test_loss - 1, kSameLoss)
      .by_mechanism = true;
  report.remarks.push_back(
      "The paper's networks have tens of layers and losses averaged over many more terms; the "
      "gradients of an MLP are large enough as they are. So the case is constructed: the loss is "
      "multiplied by 2^-20 and the learning rate by 2^20, which changes no bit of an f32 run.");
}

}  // namespace

const Experiment kLossScales{
    .name = "loss-scales",
    .title = "Static scales from 8 to 32768, and a dynamic one",
    .section = "section 3.2",
    .claim =
        "Scaling the loss shifts gradients into the range of f16; networks were trained with "
        "factors from 8 to 32K, many need none, and a factor may be chosen so that its product "
        "with the largest gradient stays below 65504. A large factor does no harm as long as "
        "nothing overflows.",
    .method =
        "An MLP with f16 weights and f32 masters under SGD, at each scale, for gradients of "
        "ordinary size and for the same divided by 2^20.",
    .mechanism = "the scaler: every run uses scale 1",
    .run = run};

}  // namespace study
