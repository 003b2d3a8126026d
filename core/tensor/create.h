// Making tensors: constants, values, random numbers.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <initializer_list>
#include <span>

namespace binade {

Tensor full(const Dims& sizes, double value, DType dtype = DType::f32, Device device = {});
inline Tensor zeros(const Dims& sizes, DType dtype = DType::f32, Device device = {}) {
  static_cast<void>(element_count(sizes, "zeros"));
  return full(sizes, 0, dtype, device);
}
inline Tensor ones(const Dims& sizes, DType dtype = DType::f32, Device device = {}) {
  static_cast<void>(element_count(sizes, "ones"));
  return full(sizes, 1, dtype, device);
}
// The sizes, device and (unless given) dtype of t, and its strides if they are dense.
Tensor full_like(const Tensor& t, double value);
Tensor full_like(const Tensor& t, double value, DType dtype);
inline Tensor zeros_like(const Tensor& t) { return full_like(t, 0); }
inline Tensor zeros_like(const Tensor& t, DType dtype) { return full_like(t, 0, dtype); }
inline Tensor ones_like(const Tensor& t) { return full_like(t, 1); }
inline Tensor ones_like(const Tensor& t, DType dtype) { return full_like(t, 1, dtype); }
// Ones on the diagonal, zeros elsewhere.
Tensor eye(int64_t rows, int64_t columns, DType dtype = DType::f32, Device device = {});
inline Tensor eye(int64_t size, DType dtype = DType::f32, Device device = {}) {
  return eye(size, size, dtype, device);
}

// 0, 1, ... count - 1.
Tensor arange(int64_t count, DType dtype = DType::i64, Device device = {});
namespace detail {
struct WholeRange {
  int64_t start, end, step;
};
struct RealRange {
  double start, end, step;
};
Tensor arange(const WholeRange& range, DType dtype, Device device);
Tensor arange(const RealRange& range, DType dtype, Device device);
template <class... T>
inline constexpr bool kWhole = (std::is_integral_v<T> && ...);
template <class... T>
inline constexpr bool kNumbers = (std::is_arithmetic_v<T> && ...);
}  // namespace detail
// start + i step for i = 0, 1, ... below end (above it if the step is negative). i64 if the three
// are integers, which makes the values exact; else f32, computed in f64 and rounded once.
template <class A, class B, class C = int>
requires(detail::kNumbers<A, B, C>) Tensor
    arange(A start, B end, C step = 1,
           DType dtype = detail::kWhole<A, B, C> ? DType::i64 : DType::f32, Device device = {}) {
  using Range = std::conditional_t<detail::kWhole<A, B, C>, detail::WholeRange, detail::RealRange>;
  using Number = decltype(Range::start);
  return detail::arange(
      Range{static_cast<Number>(start), static_cast<Number>(end), static_cast<Number>(step)}, dtype,
      device);
}
// `count` values from start to end, both included, at equal distances; logspace: base to these
// powers. Computed in f64 and rounded once.
Tensor linspace(double start, double end, int64_t count, DType dtype = DType::f32,
                Device device = {});
struct LogspaceOptions {
  double base = 10;
  DType dtype = DType::f32;
  Device device = {};
};
Tensor logspace(double start, double end, int64_t count, const LogspaceOptions& options = {});
// Values in row-major order; there must be as many as the sizes need.
Tensor from_values(std::span<const double> values, const Dims& sizes, DType dtype = DType::f32,
                   Device device = {});
Tensor from_values(std::initializer_list<double> values, const Dims& sizes,
                   DType dtype = DType::f32, Device device = {});

// The source of random numbers of a thread: a Philox key and how many numbers were drawn. Ops that
// draw n numbers take the offsets [offset, offset + n), so a run is repeated by restoring the
// state. Every draw begins at a multiple of 8 (kernels::kRandomGroup).
//
// Every thread has its own generator, which begins with seed 0: two new threads draw the same
// numbers. manual_seed() seeds only the generator of the calling thread. If threads must draw
// different numbers, call it on each thread, with another seed.
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
Tensor rand_like(const Tensor& t);
Tensor randn_like(const Tensor& t);
// Integers in [low, high), equally likely (up to 2^-64 of the range). Element i uses the numbers 2
// i and 2 i + 1 of the call. An integer dtype must hold them; a floating one rounds.
Tensor randint(int64_t low, int64_t high, const Dims& sizes, DType dtype = DType::i64,
               Device device = {});
inline Tensor randint(int64_t high, const Dims& sizes, DType dtype = DType::i64,
                      Device device = {}) {
  return randint(0, high, sizes, dtype, device);
}
// 0 ... count - 1 in random order (i64): the order of `count` random integers of 64 bits.
Tensor randperm(int64_t count, Device device = {});
void fill_uniform(const Tensor& t, double low, double high);
void fill_normal(const Tensor& t, double mean, double std);

}  // namespace binade
