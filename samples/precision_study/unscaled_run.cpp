// A run that fails without a loss scale and succeeds with one.
#include "experiment.h"
#include "training.h"

namespace study {
namespace {

constexpr int64_t kSteps = 600;
constexpr double kLossFactor = 0x1p-14, kLossScale = 8192;
constexpr double kSameLoss = 0.01, kWorse = 0.2;

Recipe recipe(Precision precision, double scale) {
  return {.precision = precision,
          .loss_scale = scale,
          .lr = 0.1,
          .momentum = 0.9,
          .steps = kSteps,
          .loss_factor = kLossFactor};
}

void run(const Lab& lab, Report& report) {
  const Task task = lstm_task(lab.data);
  const Precision mixed = Precision::mixed(DType::f16);
  const Run full = train_model(task, recipe(Precision::full(), kUnscaled));
  const Run unscaled = train_model(task, recipe(mixed, kUnscaled));
  const Run scaled = train_model(task, recipe(mixed, lab.broken ? kUnscaled : kLossScale));
  Plot plot{.title = "Training loss of a char-LSTM",
            .caption = "Loss times 2^-14, learning rate times 2^14; means over 20 steps.",
            .x = {.label = "step"},
            .y = {.label = "cross-entropy (nats)"},
            .series = {}};
  Table table{.caption = "After 600 steps",
              .head = {"run", "training loss", "test loss", "test accuracy"},
              .rows = {}};
  const std::pair<const char*, const Run*> arms[] = {
      {"f32", &full}, {"f16, no loss scale", &unscaled}, {"f16, loss scale 8192", &scaled}};
  for (const auto& [name, run] : arms) {
    const Curve curve = smooth(run->losses, 20);
    plot.series.push_back({name, curve.x, curve.y});
    table.rows.push_back(
        {name, fixed(run->end_loss(), 4), fixed(run->test_loss, 4), percent(run->accuracy)});
  }
  report.plots.push_back(plot);
  report.tables.push_back(table);
  report.at_least("unscaled: test loss / f32 - 1", unscaled.test_loss / full.test_loss - 1, kWorse);
  report.at_most("scaled: test loss / f32 - 1", scaled.test_loss / full.test_loss - 1, kSameLoss)
      .by_mechanism = true;
  report.remarks.push_back(
      "In the paper the SSD detector diverges without a scale, and the big LSTM after 300,000 "
      "steps (section 4.5, Figure 5). A model of this size has neither fate within minutes at its "
      "own gradients, so they are made small by a factor on the loss. The unscaled run then sees "
      "only the largest of them, and diverges.");
}

}  // namespace

const Experiment kUnscaledRun{
    .name = "unscaled-run",
    .title = "A run that fails unscaled and converges scaled",
    .section = "sections 3.2 and 4.5, Figure 5",
    .claim =
        "An SSD detector diverges when gradients are not scaled, and a factor of 8 is enough to "
        "match f32; a big LSTM language model diverges without and matches f32 with a factor "
        "of 128.",
    .method =
        "A character LSTM in f32, in f16 with f32 masters without a loss scale, and the same "
        "with a loss scale of 8192.",
    .mechanism = "the loss scale",
    .run = run};

}  // namespace study
