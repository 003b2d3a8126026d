// Where gradients lie on the axis of exponents, as in Figures 2b and 3 of the paper.
#include <cmath>

#include "experiment.h"
#include "gradients.h"

namespace study {
namespace {

constexpr int64_t kSteps = 500, kEvery = 50;
constexpr double kSmallest = 0x1p-24;  // of f16: its smallest subnormal
constexpr double kZeros = 0.3, kLostUnscaled = 0.02, kLostScaled = 0.005;

std::vector<std::string> row(const std::string& name, const Samples& samples) {
  const double scale = samples.best_scale();
  return {name,
          percent(samples.zeros()),
          percent(samples.below(kSmallest)),
          percent(samples.flushed(1)),
          power_of_two(scale),
          percent(samples.flushed(scale)),
          number(samples.largest())};
}

void run(const Lab& lab, Report& report) {
  const Task gpt = gpt_task(lab.data), cnn = cnn_task(lab.data);
  const GradientSamples of_gpt = sample_gradients(
      gpt, {.loss_scale = kUnscaled, .adam = true, .lr = 3e-3, .steps = kSteps}, kEvery);
  const GradientSamples of_cnn = sample_gradients(
      cnn, {.loss_scale = kUnscaled, .lr = 0.02, .momentum = 0.9, .steps = kSteps}, kEvery);
  Plot plot{.title = "Gradients of the char-GPT",
            .caption =
                "Share of all values per exponent, in f32, over the steps 0, 50, ... 450. "
                "What lies left of the first line is below the smallest f16; all up to the "
                "second line is subnormal and loses digits. Zeros are not drawn.",
            .x = {.label = "exponent: floor(log2 |gradient|)"},
            .y = {.label = "share of values (%)"},
            .series = {of_gpt.activations.histogram("activation gradients"),
                       of_gpt.weights.histogram("weight gradients")},
            .marks = {{-24, "2^-24"}, {-14, "2^-14"}}};
  report.plots.push_back(plot);
  plot.title = "Gradients of the CNN with batch norm";
  plot.series = {of_cnn.activations.histogram("activation gradients"),
                 of_cnn.weights.histogram("weight gradients")};
  report.plots.push_back(plot);

  Table table{
      .caption = "S is the largest power of two with max |g| S below 65504",
      .head = {"gradients of", "zero", "below 2^-24 (of non-zero)", "flushed by f16", "S",
               "flushed with S", "largest"},
      .rows = {row("char-GPT, activations", of_gpt.activations),
               row("char-GPT, weights", of_gpt.weights),
               row("CNN, activations", of_cnn.activations), row("CNN, weights", of_cnn.weights)}};
  report.tables.push_back(table);

  const Samples& activations = of_cnn.activations;
  const double scale = lab.broken ? 1 : activations.best_scale();
  report.at_least("CNN: share of activation gradients that are zero", activations.zeros(), kZeros);
  report.at_least("CNN: share of the others below 2^-24", activations.below(kSmallest),
                  kLostUnscaled);
  report.at_most("CNN: share of activation gradients flushed with S", activations.flushed(scale),
                 kLostScaled);
  report.at_most("CNN: share of activation gradients that overflow with S",
                 activations.overflown(scale), 0);
  report.at_least("binary digits of the f16 range unused above the largest gradient",
                  std::log2(activations.best_scale()), 10);
  report.remarks.push_back(
      "A model this small has few gradients below 2^-24, and almost none of its weight gradients "
      "are: those are sums over a batch. The char-GPT shows the shape of Figure 2b without its "
      "5%.");
}

}  // namespace

const Experiment kGradientRange{
    .name = "gradient-range",
    .title = "Many gradients are too small for f16, and a scale brings them back",
    .section = "sections 3.1 and 3.2, Figures 2b and 3",
    .claim =
        "About 5% of the weight gradients of a speech model have exponents below -24 and become "
        "zero in f16; of the activation gradients of an SSD detector 67% are zero and others "
        "lie as low as 2^-34, while most of the range that f16 can represent is unused.",
    .method =
        "A char-GPT and a CNN are trained in f32; gradients of activations and weights are "
        "sampled every 50 steps, their exponents counted, and each value is cast to f16 with "
        "and without a scale.",
    .mechanism = "the scale: gradients are cast as they are",
    .run = run};

}  // namespace study
