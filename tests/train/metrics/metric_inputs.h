// Random inputs for tests of metrics, and the devices to test.
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/batch.h>
#include <binade/kernels/base/error.h>
#include <binade/train/metrics/target_metric.h>
#include <binade/train/step.h>

#include <limits>
#include <string>
#include <vector>

namespace binade::train::test {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The CPU, and the emulated device if this build has it.
inline std::vector<Device> devices() {
  std::vector<Device> all = {Device{}};
  try {
    all.push_back(Device::parse("emulated"));
  } catch (const Error&) {
  }
  return all;
}

// Rows begin .. end - 1 of x, as a view.
inline Tensor rows(const Tensor& x, int64_t begin, int64_t end) {
  return x.defined() ? narrow(x, 0, begin, end - begin) : x;
}

inline data::Batch batch_of(const std::string& name, const Tensor& target) {
  data::Batch batch;
  batch.size = target.size(0);
  batch.set(name, target);
  return batch;
}

inline void update(TargetMetric& metric, const Tensor& output, const Tensor& target) {
  metric.update({.loss = {}, .output = output}, batch_of("labels", target));
}

}  // namespace binade::train::test
