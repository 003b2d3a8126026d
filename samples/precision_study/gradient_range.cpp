// The exponents of gradients, as in Figures 2b and 3 of the paper.
#include <cmath>

#include "experiment.h"
#include "gradients.h"

namespace study {
namespace {

constexpr int64_t kSteps = 500, kEvery = 50;
constexpr int kSmallest = -24;  // the exponent of f16's smallest subnormal
constexpr double kZeros = 0.3, kLostUnscaled = 0.02, kLostScaled = 0.005;
// The constructed case: the loss is as small as a mean over 2^8 times as many terms.
constexpr double kLossFactor = 0x1p-8, kAsPublished = 0.03;

std::vector<std::string> row(const std::string& name, const ExponentCounts& counts) {
  const double scale = static_scale(counts.largest());
  return {name,
          percent(zeros_of(counts)),
          percent(below(counts, kSmallest)),
          percent(flushed(counts, 1)),
          power_of_two(scale),
          percent(flushed(counts, scale)),
          number(counts.largest())};
}

Plot plot_of(const std::string& title, const Run& run) {
  return {.title = title,
          .caption =
              "Share of all values per exponent, in f32, over the steps 0, 50, ... 450. What lies "
              "left of the first line is below the smallest f16; all up to the second line is "
              "subnormal and loses digits. Zeros are not drawn.",
          .x = {.label = "exponent: floor(log2 |gradient|)"},
          .y = {.label = "share of values (%)"},
          .series = {histogram(run.activation_gradients, "activation gradients"),
                     histogram(run.weight_gradients, "weight gradients")},
          // Bins are centred on exponents: a border lies half a bin left of its exponent's centre.
          .marks = {{kSmallest - 0.5, "2^-24"}, {-14 - 0.5, "2^-14"}}};
}

void run(const Lab& lab, Report& report) {
  const Recipe sgd{.loss_scale = kUnscaled,
                   .lr = 0.1,
                   .momentum = 0.9,
                   .steps = kSteps,
                   .lens = kEvery,
                   .loss_factor = kLossFactor};
  Recipe adam{.loss_scale = kUnscaled, .adam = true, .lr = 3e-3, .steps = kSteps, .lens = kEvery};
  Recipe slow = sgd;
  slow.lr = 0.02;
  slow.loss_factor = 1;
  const Run gpt = train_model(gpt_task(lab.data), adam),
            cnn = train_model(cnn_task(lab.data), slow),
            lstm = train_model(lstm_task(lab.data), sgd);
  report.plots = {plot_of("Gradients of the char-GPT", gpt),
                  plot_of("Gradients of the CNN with batch norm", cnn),
                  plot_of("Gradients of the char-LSTM, loss times 2^-8", lstm)};
  report.tables.push_back({.caption = "S is the largest power of two with max |g| S below 65504",
                           .head = {"gradients of", "zero", "below 2^-24 (of non-zero)",
                                    "flushed by f16", "S", "flushed with S", "largest"},
                           .rows = {row("char-GPT, activations", gpt.activation_gradients),
                                    row("char-GPT, weights", gpt.weight_gradients),
                                    row("CNN, activations", cnn.activation_gradients),
                                    row("CNN, weights", cnn.weight_gradients),
                                    row("char-LSTM / 2^8, activations", lstm.activation_gradients),
                                    row("char-LSTM / 2^8, weights", lstm.weight_gradients)}});

  const ExponentCounts &activations = cnn.activation_gradients, &weights = lstm.weight_gradients;
  const auto scale_for = [&lab](const ExponentCounts& counts) {
    return lab.broken ? 1 : static_scale(counts.largest());
  };
  report.at_least("CNN: share of activation gradients that are zero", zeros_of(activations),
                  kZeros);
  report.at_least("CNN: share of the others below 2^-24", below(activations, kSmallest),
                  kLostUnscaled);
  report
      .at_most("CNN: share of activation gradients flushed with S",
               flushed(activations, scale_for(activations)), kLostScaled)
      .by_mechanism = true;
  report.at_most("CNN: share of activation gradients that overflow with S",
                 overflown(activations, scale_for(activations)), 0);
  report.at_least("CNN: binary digits of the f16 range unused above the largest gradient",
                  std::log2(static_scale(activations.largest())), 10);
  report.at_least("char-LSTM / 2^8: share of weight gradients below 2^-24",
                  below(weights, kSmallest), kAsPublished);
  report
      .at_most("char-LSTM / 2^8: share of weight gradients flushed with S",
               flushed(weights, scale_for(weights)), kLostScaled)
      .by_mechanism = true;
  report.remarks.push_back(
      "A model this small has few gradients below 2^-24, and almost none of its weight gradients "
      "are: those are sums over a batch. The char-GPT shows the shape of Figure 2b without its "
      "5%. So a case with about as many is constructed: a char-LSTM whose loss is multiplied by "
      "2^-8 and whose learning rate by 2^8, which changes no bit of an f32 run. With 2^-14 it "
      "fails to train without a scale: that is the experiment unscaled-run.");
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
        "A char-GPT, a CNN and a char-LSTM are trained in f32; at every 50th step the exponent "
        "lens counts the gradients of all activations and weights, and which of them f16 holds "
        "with and without a scale.",
    .mechanism = "the scale: gradients are cast as they are",
    .run = run};

}  // namespace study
