// The purpose of f32 masters, as in Figure 2a of the paper.
#include "experiment.h"
#include "training.h"

namespace study {
namespace {

// Small steps, as at the end of a long training: the updates are a few thousandths of the weights
// and less.
constexpr int64_t kSteps = 4000, kWindow = 100;
constexpr double kRate = 5e-4, kMomentum = 0.9, kLossScale = 1024;
constexpr double kSameLoss = 0.01, kWorse = 0.2;

void run(const Lab& lab, Report& report) {
  const Task task = mlp_task(lab.data);
  const double rate = kRate * task.step_factor;
  struct Arm {
    const char* name;
    Precision precision;
    double scale;
  };
  const Precision low = Precision::half(DType::f16);
  const Arm arms[] = {
      {"f32", Precision::full(), kUnscaled},
      {"f16, f32 masters", lab.broken ? low : Precision::mixed(DType::f16), kLossScale},
      {"f16, no masters", low, kLossScale}};
  Plot plot{.title = "Training loss of an MLP",
            .caption = "SGD, learning rate " + number(rate) +
                       ", momentum 0.9; means over 100 steps. Without masters the f16 weights do "
                       "not take in the small updates.",
            .x = {.label = "step"},
            .y = {.label = "cross-entropy (nats)"},
            .series = {}};
  Table table{.caption = "After 4000 steps",
              .head = {"weights", "training loss", "test loss", "test accuracy", "skipped steps"},
              .rows = {}};
  std::vector<Run> runs;
  for (const Arm& arm : arms) {
    runs.push_back(train_model(task, {.precision = arm.precision,
                                      .loss_scale = arm.scale,
                                      .lr = rate,
                                      .momentum = kMomentum,
                                      .steps = kSteps}));
    const Run& run = runs.back();
    const Curve curve = smooth(run.losses, kWindow);
    plot.series.push_back({arm.name, curve.x, curve.y});
    table.rows.push_back({arm.name, fixed(run.end_loss(), 4), fixed(run.test_loss, 4),
                          percent(run.accuracy), std::to_string(run.skipped)});
  }
  report.plots.push_back(plot);
  report.tables.push_back(table);
  const double base = runs[0].end_loss();
  report.at_most("f32: training loss / that of chance", base / task.chance_loss, 0.6);
  report
      .at_most("f16 with masters: training loss / f32 - 1", runs[1].end_loss() / base - 1,
               kSameLoss)
      .by_mechanism = true;
  report.at_least("f16 without masters: training loss / f32 - 1", runs[2].end_loss() / base - 1,
                  kWorse);
  report.remarks.push_back(
      "At a learning rate of ordinary size (0.01) a model this small learns in f16 without masters "
      "too: its updates are large. The step is small here so that the effect appears within "
      "minutes; the paper's speech model shows it after days.");
}

}  // namespace

const Experiment kThreeCurves{
    .name = "three-curves",
    .title = "Without f32 masters training stalls",
    .section = "section 3.1, Figure 2a",
    .claim =
        "A model trained with f32 master weights behind its f16 weights follows the curve of "
        "f32 training; updating f16 weights themselves lost 80% of the accuracy, relatively, "
        "of a speech recognition model.",
    .method =
        "One MLP from one initialisation on the same batches, three times: in f32; with f16 "
        "weights and activations and f32 masters (policy mixed); and with f16 weights alone "
        "(policy half). Both f16 runs have a loss scale of 1024.",
    .mechanism = "the f32 masters",
    .run = run};

}  // namespace study
