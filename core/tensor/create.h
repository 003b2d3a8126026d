// Making tensors: constants, values, random numbers.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <initializer_list>
#include <span>

namespace binade {

Tensor full(const Dims& sizes, double value, DType dtype = DType::f32, Device device = {});
inline Tensor zeros(const Dims& sizes, DType dtype = DType::f32, Device device = {}) {
  return full(sizes, 0, dtype, device);
}
inline Tensor ones(const Dims& sizes, DType dtype = DType::f32, Device device = {}) {
  return full(sizes, 1, dtype, device);
}
Tensor arange(int64_t count, DType dtype = DType::i64, Device device = {});
// Values in row-major order; there must be as many as the sizes need.
Tensor from_values(std::span<const double> values, const Dims& sizes, DType dtype = DType::f32,
                   Device device = {});
Tensor from_values(std::initializer_list<double> values, const Dims& sizes,
                   DType dtype = DType::f32, Device device = {});

// A thread's source of random numbers: a Philox key and how many numbers were drawn. An op that
// draws n numbers takes the offsets [offset, offset + n), so restoring the state repeats a run.
// Every draw begins at a multiple of 8 (kernels::kRandomGroup).
struct Generator {
  uint64_t seed = 0;
  uint64_t offset = 0;
  // Set while a graph is captured: a device scalar that kernels add to their offset, because the
  // offsets themselves are part of the graph (train/graphed_step.h).
  Tensor advance = {};

  uint64_t take(uint64_t count) {
    const uint64_t start = offset;
    offset += (count + 7) / 8 * 8;
    return start;
  }
};
Generator& generator();  // of this thread
void manual_seed(uint64_t seed);

// Uniform in [0, 1), and standard normal. The numbers are the same on every device.
Tensor rand(const Dims& sizes, DType dtype = DType::f32, Device device = {});
Tensor randn(const Dims& sizes, DType dtype = DType::f32, Device device = {});
void fill_uniform(const Tensor& t, double low, double high);
void fill_normal(const Tensor& t, double mean, double std);

}  // namespace binade
