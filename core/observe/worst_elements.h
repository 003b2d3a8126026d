// The elements of a tensor that 16 bits change most, per exponent: beside the counts of the
// exponent lens (core/observe/exponents.h) they say where to look.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <cstdint>
#include <map>
#include <vector>

namespace binade {

struct WorstElement {
  Dims place = {};    // the element's index in its tensor
  int64_t order = 0;  // the same as one number: its place in row-major order
  float value = 0;    // the true value
  float in_f16 = 0, in_bf16 = 0;

  // The worse of two elements of one exponent has the larger relative error in f16; if these are
  // equal, the larger magnitude, then the smaller index.
  bool is_worse_than(const WorstElement& other) const;
};

// For each exponent, as in ExponentCounts::at(), at most so many elements. Zeros, infinities and
// NaN are left out.
class WorstElements {
 public:
  explicit WorstElements(size_t per_exponent = 2) : per_exponent_(per_exponent) {}

  // Adds the elements of x, a floating tensor that holds `scale` times the true values, a power of
  // two. f64 is rounded to f32. A tensor on a device is copied to the host, which waits.
  void add(const Tensor& x, double scale = 1);
  // By exponent; of each the worst first.
  const std::map<int, std::vector<WorstElement>>& all() const { return by_exponent_; }

 private:
  size_t per_exponent_;
  std::map<int, std::vector<WorstElement>> by_exponent_;
};

}  // namespace binade
