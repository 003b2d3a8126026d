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

// The source of random numbers of a thread: a Philox key and how many numbers were drawn. Ops that
// draw n numbers take the offsets [offset, offset + n), so a run is repeated by restoring the
// state. Every draw begins at a multiple of 8 (kernels::kRandomGroup).
//
// Every thread has a generator of its own, which begins with seed 0: two new threads draw the same
// numbers. manual_seed() seeds that of the calling thread alone; call it on each thread, with
// another seed on each where they shall differ.
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
Generator& generator();           // of the calling thread
void manual_seed(uint64_t seed);  // of the calling thread

// Uniform in [0, 1), and standard normal. The numbers are the same on every device.
Tensor rand(const Dims& sizes, DType dtype = DType::f32, Device device = {});
Tensor randn(const Dims& sizes, DType dtype = DType::f32, Device device = {});
void fill_uniform(const Tensor& t, double low, double high);
void fill_normal(const Tensor& t, double mean, double std);

}  // namespace binade
