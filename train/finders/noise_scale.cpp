#include <binade/train/finders/noise_scale.h>
#include <binade/train/report/page.h>

#include <cmath>
#include <limits>
#include <vector>

namespace binade::train {
namespace {

void backward_of(const FinderParts& parts, const data::Batch& batch) {
  const StepOutput output =
      parts.step ? parts.step(parts.model, batch) : classification_step(parts.model, batch);
  if (parts.scaler) {
    parts.scaler->scale(output.loss).backward();
  } else {
    output.loss.backward();
  }
}

// The squared norm of the gradients, which are a sum over `count` backwards; clears them.
double take_square(const FinderParts& parts, double count) {
  const optim::GradientSummary summary = parts.optimizer.gradient_summary();
  check(summary.non_finite == 0, "noise scale: got ", summary.non_finite,
        " elements of gradients that are not finite; use a smaller loss scale");
  parts.optimizer.zero_grad();
  return summary.norm * summary.norm / (count * count);
}

std::vector<data::Batch> full_batches(data::Loader& loader, int64_t count, Device device) {
  std::vector<data::Batch> batches;
  data::Batch batch;
  while (static_cast<int64_t>(batches.size()) < count && loader.next(batch)) {
    if (batch.size == loader.options().batch || batches.empty()) {
      batches.push_back(batch.to(device));
    }
  }
  return batches;
}

}  // namespace

NoiseScale measure_noise_scale(const FinderParts& parts, data::Loader& loader,
                               const NoiseScaleOptions& options) {
  check(options.micro_batches >= 2 && options.repeats >= 1, "noise scale: got ",
        options.micro_batches, " micro-batches and ", options.repeats,
        " repeats, expected at least 2 and 1");
  StateSnapshot snapshot(parts);
  parts.model.train();
  loader.epoch(0);
  NoiseScale noise;
  double small = 0, large = 0;  // sums of squared norms
  const auto k = static_cast<double>(options.micro_batches);
  for (; noise.repeats < options.repeats; ++noise.repeats) {
    const auto batches = full_batches(loader, options.micro_batches, parts.optimizer.device());
    if (static_cast<int64_t>(batches.size()) < options.micro_batches) {
      break;
    }
    noise.small_batch = batches[0].size;
    for (const data::Batch& batch : batches) {
      backward_of(parts, batch);
      small += take_square(parts, 1) / k;
    }
    for (const data::Batch& batch : batches) {
      backward_of(parts, batch);
    }
    large += take_square(parts, k);
  }
  check(noise.repeats > 0, "noise scale: got fewer than ", options.micro_batches,
        " batches in an epoch, expected at least as many; use a smaller batch");
  small /= static_cast<double>(noise.repeats);
  large /= static_cast<double>(noise.repeats);
  noise.large_batch = options.micro_batches * noise.small_batch;
  const auto b = static_cast<double>(noise.small_batch),
             big = static_cast<double>(noise.large_batch);
  const double square = (big * large - b * small) / (big - b);
  noise.variance = (small - large) / (1 / b - 1 / big);
  noise.gradient_norm = std::sqrt(std::max(square, 0.0));
  noise.scale =
      square > 0 ? std::max(noise.variance, 0.0) / square : std::numeric_limits<double>::infinity();
  return noise;
}

std::string to_string(const NoiseScale& noise) {
  using page::short_number;
  std::string advice = text(
      "a batch far below it wastes little, and a larger one needs fewer steps; far above it a "
      "larger batch gains nothing");
  return text("gradient noise scale ", short_number(noise.scale), " samples, from batches of ",
              noise.small_batch, " and ", noise.large_batch, " (", noise.repeats, " repeats), |G| ",
              short_number(noise.gradient_norm), ": ", advice, "\n");
}

}  // namespace binade::train
