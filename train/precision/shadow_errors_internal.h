// Values of a step on the host in f64, and sums for computing errors. Internal to train.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/train/precision/shadow.h>

namespace binade::train {

// A copy on the host, row-major, in f64; undefined for an undefined tensor. `scale` is divided out.
Tensor on_host_f64(const Tensor& t, double scale = 1);
// Writes values that on_host_f64() made into a tensor of any device, dtype and strides.
void write_from_host(const Tensor& values, const Tensor& to);

// The difference of two numbers in units in the last place of a dtype, at the second one.
double ulp_of(double value, DType dtype);

double norm_squared(const Tensor& host);  // of the finite elements
double dot(const Tensor& host_a, const Tensor& host_b);

// The values of one result, which are added to ShadowErrors.
struct ShadowValue {
  const Tensor& low;         // as the step stored it
  const Tensor& introduced;  // low minus the op in f64 on the same inputs
  const Tensor& exact;       // of the f64 run
  DType stored;
  double inputs = 0;  // the square of the relative error of the inputs
};

class ShadowSums {
 public:
  // Returns the square of the relative error of the value.
  double add(const ShadowValue& value);
  void merge(const ShadowSums& other);
  ShadowErrors errors() const;

 private:
  int64_t elements_ = 0, not_finite_ = 0;
  double op_ = 0, exact_ = 0, low_ = 0;                // squares of values
  double introduced_ = 0, inherited_ = 0, total_ = 0;  // squares of errors
  double ulp_ = 0, worst_ulp_ = 0, signed_ = 0, magnitude_ = 0;
  double dot_ = 0;
  double grown_ = 0, given_ = 0;  // squares of relative errors, summed over calls
};

}  // namespace binade::train
