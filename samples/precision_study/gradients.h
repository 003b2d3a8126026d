// Samples of gradients, and which share of them f16 cannot hold.
#pragma once
#include "plot.h"
#include "training.h"

namespace study {

// Values with their f32 digits, zeros included.
class Samples {
 public:
  void add(const Tensor& t);  // any floating dtype

  int64_t count() const { return static_cast<int64_t>(values_.size()); }
  double zeros() const;              // share of all
  double below(double bound) const;  // share of the non-zero ones whose magnitude is less
  // Share of the non-zero ones that times `scale` become zero, or infinite, when cast to f16.
  double flushed(double scale) const;
  double overflown(double scale) const;
  double largest() const;
  // The largest power of two S for which largest() S is a finite f16.
  double best_scale() const;
  // The share of all values with each exponent (floor of the binary logarithm), zeros apart.
  Series histogram(const std::string& name) const;

 private:
  template <class F>
  double share(F&& counts) const;  // of the non-zero ones
  std::vector<float> values_;
};

struct GradientSamples {
  Samples activations, weights;
};
// An f32 run of the task under the recipe; gradients are sampled at every `every`-th step.
GradientSamples sample_gradients(const Task& task, const Recipe& recipe, int64_t every);

}  // namespace study
