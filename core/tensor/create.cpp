#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/random/random.h>

namespace binade {

Tensor full(const Dims& sizes, double value, DType dtype, Device device) {
  Tensor y = empty(sizes, dtype, device);
  kernels::fill({.y = y, .value = value});
  return y;
}

Tensor arange(int64_t count, DType dtype, Device device) {
  check(count >= 0, "arange: got ", count, ", expected a count of at least 0");
  Tensor values = empty({count}, DType::i64);
  for (int64_t i = 0; i < count; ++i) {
    values.data<int64_t>()[i] = i;
  }
  return cast(values, dtype).to(device);
}

Tensor from_values(std::span<const double> values, const Dims& sizes, DType dtype, Device device) {
  check(element_count(sizes) == static_cast<int64_t>(values.size()), "from_values: got ",
        values.size(), " values for shape ", sizes);
  Tensor wide = empty(sizes, DType::f64);
  for (size_t i = 0; i < values.size(); ++i) {
    wide.data<double>()[i] = values[i];
  }
  return cast(wide, dtype).to(device);
}

Tensor from_values(std::initializer_list<double> values, const Dims& sizes, DType dtype,
                   Device device) {
  return from_values(std::span<const double>(values.begin(), values.size()), sizes, dtype, device);
}

Generator& generator() {
  static thread_local Generator instance;
  return instance;
}

void manual_seed(uint64_t seed) { generator() = {seed, 0}; }

void fill_uniform(const Tensor& t, double low, double high) {
  check(is_floating(t.dtype()) && low <= high, "fill_uniform: got dtype ", t.dtype(), " and range ",
        low, " to ", high, ", expected a floating dtype and low <= high");
  Generator& source = generator();
  kernels::fill_uniform({.y = t,
                         .low = low,
                         .high = high,
                         .seed = source.seed,
                         .offset = source.take(static_cast<uint64_t>(t.numel())),
                         .advance = source.advance});
  t.bump_version();
}

void fill_normal(const Tensor& t, double mean, double std) {
  check(is_floating(t.dtype()), "fill_normal: got dtype ", t.dtype(),
        ", expected a floating dtype");
  Generator& source = generator();
  kernels::fill_normal({.y = t,
                        .mean = mean,
                        .std = std,
                        .seed = source.seed,
                        .offset = source.take(static_cast<uint64_t>(t.numel())),
                        .advance = source.advance});
  t.bump_version();
}

Tensor rand(const Dims& sizes, DType dtype, Device device) {
  Tensor y = empty(sizes, dtype, device);
  fill_uniform(y, 0, 1);
  return y;
}

Tensor randn(const Dims& sizes, DType dtype, Device device) {
  Tensor y = empty(sizes, dtype, device);
  fill_normal(y, 0, 1);
  return y;
}

}  // namespace binade
