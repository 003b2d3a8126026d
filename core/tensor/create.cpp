#include <binade/core/device/host_sync.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/random/draw.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace binade {
namespace {

// Values from a formula, computed on the host in f64 and rounded once.
template <class F>
Tensor computed(int64_t count, DType dtype, Device device, const F& value) {
  const Tensor wide = empty({count}, DType::f64);
  auto* values = wide.data<double>();
  for (int64_t i = 0; i < count; ++i) {
    values[i] = value(i);
  }
  return cast(wide, dtype).to(device);
}

// True if every value of `from` is one of `to`.
bool holds(DType to, DType from) {
  if (to == from || from == DType::boolean) {
    return true;
  }
  switch (from) {
    case DType::u8: return to != DType::boolean;
    case DType::i32: return to == DType::i64 || to == DType::f64;
    case DType::f32: return to == DType::f64;
    case DType::f16:
    case DType::bf16: return to == DType::f32 || to == DType::f64;
    default: return false;
  }
}

}  // namespace

Tensor Tensor::copied(const void* values, size_t count, DType dtype, const Dims& sizes,
                      Device device) {
  check(element_count(sizes, "from") == static_cast<int64_t>(count), "from: got ", count,
        " values for shape ", sizes, ", expected ", element_count(sizes));
  Tensor y = empty(sizes, dtype);
  if (count > 0) {
    std::memcpy(y.view().data, values, count * size_of(dtype));
  }
  return y.to(device);
}

void Tensor::copy_to(void* values, DType dtype, SourceLine where) const {
  check(defined(), "to_vector: got an undefined tensor");
  check(holds(dtype, this->dtype()), "to_vector: got a tensor of dtype ", this->dtype(),
        " for a vector of ", dtype, ", expected the same or a wider type; convert it with to()");
  const detail::HostSyncCall reads("to_vector", where);
  kernels::copy({.x = to_device(detach(), Device{}), .y = view_of(values, dtype, sizes())});
}

Tensor full_like(const Tensor& t, double value, DType dtype) {
  check(t.defined(), "full_like: got an undefined tensor");
  Tensor y = empty_like(t, dtype);
  kernels::fill({.y = y, .value = value});
  return y;
}

Tensor full_like(const Tensor& t, double value) {
  check(t.defined(), "full_like: got an undefined tensor");
  return full_like(t, value, t.dtype());
}

Tensor eye(int64_t rows, int64_t columns, DType dtype, Device device) {
  check(rows >= 0 && columns >= 0, "eye: got ", rows, " rows and ", columns,
        " columns, expected 0 or more");
  static_cast<void>(element_count({rows, columns}, "eye"));
  Tensor y = zeros({rows, columns}, dtype, device);
  kernels::fill({.y = make_view(y, {std::min(rows, columns)}, {columns + 1}), .value = 1});
  return y;
}

Tensor detail::arange(const WholeRange& range, DType dtype, Device device) {
  const auto [start, end, step] = range;
  check(step != 0, "arange: got step 0, expected another");
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(end) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(end);
  const uint64_t size = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const bool any = step > 0 ? start < end : start > end;
  const uint64_t count = any ? (distance - 1) / size + 1 : 0;
  check(count <= uint64_t(1) << 59, "arange: got ", start, " to ", end, " in steps of ", step,
        ", expected fewer values");
  const Tensor values = empty({static_cast<int64_t>(count)}, DType::i64);
  auto* value = values.data<int64_t>();
  for (uint64_t i = 0; i < count; ++i) {
    value[i] = static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step));
  }
  return cast(values, dtype).to(device);
}

Tensor detail::arange(const RealRange& range, DType dtype, Device device) {
  const auto [start, end, step] = range;
  check(std::isfinite(start) && std::isfinite(end) && std::isfinite(step) && step != 0,
        "arange: got ", start, " to ", end, " in steps of ", step,
        ", expected finite numbers and a step other than 0");
  const double count = std::max(0.0, std::ceil((end - start) / step));
  check(count <= 0x1p59, "arange: got ", start, " to ", end, " in steps of ", step,
        ", expected fewer values");
  return computed(static_cast<int64_t>(count), dtype, device,
                  [range](int64_t i) { return range.start + static_cast<double>(i) * range.step; });
}

Tensor linspace(double start, double end, int64_t count, DType dtype, Device device) {
  check(count >= 0, "linspace: got count ", count, ", expected 0 or more");
  static_cast<void>(element_count({count}, "linspace"));
  const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
  // Computed from both ends, so that both ends are exact and the values are symmetric.
  return computed(count, dtype, device, [=](int64_t i) {
    return i < (count + 1) / 2 ? start + static_cast<double>(i) * step
                               : end - static_cast<double>(count - 1 - i) * step;
  });
}

Tensor logspace(double start, double end, int64_t count, const LogspaceOptions& options) {
  check(count >= 0 && options.base > 0, "logspace: got count ", count, " and base ", options.base,
        ", expected 0 or more and a positive base");
  static_cast<void>(element_count({count}, "logspace"));
  const Tensor powers = linspace(start, end, count, DType::f64);
  return computed(count, options.dtype, options.device,
                  [&](int64_t i) { return std::pow(options.base, powers.data<double>()[i]); });
}

Tensor full(const Dims& sizes, double value, DType dtype, Device device) {
  static_cast<void>(element_count(sizes, "full"));  // the error names it
  Tensor y = empty(sizes, dtype, device);
  kernels::fill({.y = y, .value = value});
  return y;
}

Tensor arange(int64_t count, DType dtype, Device device) {
  check(count >= 0, "arange: got ", count, ", expected a count of at least 0");
  return detail::arange(detail::WholeRange{0, count, 1}, dtype, device);
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
  static_cast<void>(element_count(sizes, "rand"));
  Tensor y = empty(sizes, dtype, device);
  fill_uniform(y, 0, 1);
  return y;
}

Tensor randn(const Dims& sizes, DType dtype, Device device) {
  static_cast<void>(element_count(sizes, "randn"));
  Tensor y = empty(sizes, dtype, device);
  fill_normal(y, 0, 1);
  return y;
}

Tensor rand_like(const Tensor& t) {
  check(t.defined(), "rand_like: got an undefined tensor, expected one with a value");
  Tensor y = empty_like(t);
  fill_uniform(y, 0, 1);
  return y;
}

Tensor randn_like(const Tensor& t) {
  check(t.defined(), "randn_like: got an undefined tensor, expected one with a value");
  Tensor y = empty_like(t);
  fill_normal(y, 0, 1);
  return y;
}

Tensor randint(int64_t low, int64_t high, const Dims& sizes, DType dtype, Device device) {
  static_cast<void>(element_count(sizes, "randint"));
  check(low < high, "randint: got low ", low, " and high ", high, ", expected low < high");
  const int64_t least = dtype == DType::i64 ? INT64_MIN : dtype == DType::i32 ? INT32_MIN : 0;
  const int64_t most = dtype == DType::i64   ? INT64_MAX
                       : dtype == DType::i32 ? INT32_MAX
                       : dtype == DType::u8  ? 255
                                             : 1;
  check(is_floating(dtype) || (low >= least && high - 1 <= most), "randint: got ", low, " to ",
        high - 1, " for dtype ", dtype, ", expected ", least, " to ", most);
  Generator& source = generator();
  const Tensor y = empty(sizes, DType::i64, device);
  kernels::random_integers({.y = y,
                            .low = low,
                            .range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low),
                            .seed = source.seed,
                            .offset = source.take(2 * static_cast<uint64_t>(y.numel())),
                            .advance = source.advance});
  return cast(y, dtype);
}

Tensor randperm(int64_t count, Device device) {
  check(count >= 0, "randperm: got ", count, ", expected a count of at least 0");
  static_cast<void>(element_count({count}, "randperm"));
  Generator& source = generator();
  const Tensor keys = empty({count}, DType::i64, device);
  kernels::random_integers({.y = keys,
                            .range = 0,
                            .seed = source.seed,
                            .offset = source.take(2 * static_cast<uint64_t>(count)),
                            .advance = source.advance});
  return sort(keys).indices;
}

}  // namespace binade
