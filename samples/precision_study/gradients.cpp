#include "gradients.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace study {
namespace {

constexpr double kLargestHalf = 65504;

}  // namespace

void Samples::add(const Tensor& t) {
  const Tensor wide = t.detach().to(Device{}).to(DType::f32).contiguous();
  values_.insert(values_.end(), wide.data<float>(), wide.data<float>() + wide.numel());
}

template <class F>
double Samples::share(F&& counts) const {
  int64_t of = 0, hits = 0;
  for (const float value : values_) {
    if (value != 0) {
      ++of;
      hits += counts(value) ? 1 : 0;
    }
  }
  return of ? static_cast<double>(hits) / static_cast<double>(of) : 0;
}

double Samples::zeros() const {
  const auto zeros = std::count(values_.begin(), values_.end(), 0.0F);
  return static_cast<double>(zeros) / static_cast<double>(count());
}

double Samples::below(double bound) const {
  return share([bound](float value) { return std::abs(value) < bound; });
}

double Samples::flushed(double scale) const {
  const auto factor = static_cast<float>(scale);
  return share([factor](float value) { return static_cast<float>(half(value * factor)) == 0; });
}

double Samples::overflown(double scale) const {
  const auto factor = static_cast<float>(scale);
  return share(
      [factor](float value) { return std::isinf(static_cast<float>(half(value * factor))); });
}

double Samples::largest() const {
  float largest = 0;
  for (const float value : values_) {
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

double Samples::best_scale() const {
  return std::exp2(std::floor(std::log2(kLargestHalf / largest())));
}

Series Samples::histogram(const std::string& name) const {
  std::map<int, int64_t> bins;
  for (const float value : values_) {
    if (value != 0) {
      ++bins[std::ilogb(value)];
    }
  }
  Series series{.name = name, .x = {}, .y = {}, .kind = Series::steps};
  const int last = bins.empty() ? 0 : bins.rbegin()->first;
  for (int exponent = -42; exponent <= last + 1; ++exponent) {
    const auto bin = bins.find(exponent);
    const double hits = bin == bins.end() ? 0 : static_cast<double>(bin->second);
    series.x.push_back(exponent);
    series.y.push_back(100 * hits / static_cast<double>(count()));
  }
  return series;
}

GradientSamples sample_gradients(const Task& task, const Recipe& recipe, int64_t every) {
  GradientSamples samples;
  bool wanted = true;  // in step 0
  const ActivationWatch watch([&](const Tensor& gradient) {
    if (wanted) {
      samples.activations.add(gradient);
    }
  });
  (void)train_model(task, recipe, [&](const Moment& moment) {
    for (const Parameter& parameter : moment.model.parameters()) {
      if (wanted && parameter.value.grad().defined()) {
        samples.weights.add(parameter.value.grad());
      }
    }
    wanted = (moment.step + 1) % every == 0;
  });
  return samples;
}

}  // namespace study
