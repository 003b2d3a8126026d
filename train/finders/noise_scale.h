// The gradient noise scale (S. McCandlish et al., "An empirical model of large-batch training",
// 2018): the batch size up to which a larger batch still saves almost as many steps. Far below it
// the gradient is mostly noise, and twice the batch needs about half the steps; far above it a
// larger batch gains nothing.
#pragma once
#include <binade/train/finders/finder_parts.h>

#include <cstdint>
#include <string>

namespace binade::train {

struct NoiseScaleOptions {
  int64_t micro_batches = 8;  // gradients of these are compared with that of all together
  int64_t repeats = 4;        // more make the estimate steadier
};

// B_simple = tr(S) / |G|^2, with the unbiased estimates of appendix A.1 from the squared norms at
// batch and at micro_batches * batch.
struct NoiseScale {
  double scale = 0;          // samples; infinite: no gradient beyond the noise
  double gradient_norm = 0;  // |G|, of the true gradient
  double variance = 0;       // tr(S): of the gradient of one sample, summed over all elements
  int64_t small_batch = 0, large_batch = 0;  // samples
  int64_t repeats = 0;
};

// Runs forward and backward only; everything is restored. It changes during training (it grows as
// the loss falls): measure it where you want to know it. Abandons an epoch in progress.
NoiseScale measure_noise_scale(const FinderParts& parts, data::Loader& loader,
                               const NoiseScaleOptions& options = {});
std::string to_string(const NoiseScale& noise);

}  // namespace binade::train
