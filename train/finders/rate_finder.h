// The learning rate by a range test (L. N. Smith, "Cyclical learning rates for training neural
// networks", WACV 2017): a short training whose rate grows exponentially from step to step. The
// loss falls while the rate is useful and rises where it is too large.
//
//   const train::FoundRate found = train::find_rate({.model = net, .optimizer = sgd}, loader);
//
// Everything is restored bit for bit. The rate that is found holds for this batch size; for another
// size use scale_rate() and a warm-up.
#pragma once
#include <binade/train/finders/finder_parts.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade::train {

struct RateFinderOptions {
  double least = 1e-7, most = 10;
  int64_t steps = 100;
  double smoothing = 0.9;  // of the loss: an exponential average, without its bias at the beginning
  // The test ends where the smoothed loss is this many times its smallest value, or not finite.
  double stop_factor = 4;
};

struct FoundRate {
  double rate = 0;  // where the smoothed loss falls fastest (per decade of the rate); 0: none
  double at_least_loss = 0;  // the rate at the smallest smoothed loss, which is already too large
  std::vector<double> rates, losses, smoothed;  // per step
  std::string stopped = {};                     // why the test ended before its last step
};

// Groups of the optimizer keep their ratios. Goes through the data from epoch 0, and on into the
// next epochs if there are too few batches. Abandons an epoch in progress.
FoundRate find_rate(const FinderParts& parts, data::Loader& loader,
                    const RateFinderOptions& options = {});
std::string to_string(const FoundRate& found);
// One page with the plot (train/report/page.h).
std::string to_html(const FoundRate& found);

// The rule for another batch size (P. Goyal et al., "Accurate, large minibatch SGD", 2017, for SGD;
// the square root for Adam and its kin). linear: rate * batch / base_batch.
enum class RateScaling : uint8_t { none, linear, square_root };
double scale_rate(double rate, int64_t batch, int64_t base_batch, RateScaling scaling);

}  // namespace binade::train
