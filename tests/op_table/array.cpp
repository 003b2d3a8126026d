#include <tests/op_table/array.h>

#include <algorithm>
#include <cmath>

namespace binade::op_table {

double Array::at(const Dims& index) const {
  int64_t flat = 0;
  const int skip = index.size() - dim();
  for (int i = 0; i < dim(); ++i) {
    flat = flat * sizes[i] + (sizes[i] == 1 ? 0 : index[i + skip]);
  }
  return values[static_cast<size_t>(flat)];
}

void for_each(const Dims& sizes, const std::function<void(const Dims&)>& f) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    count *= size;
  }
  Dims index = Dims::of(sizes.size());
  for (int64_t n = 0; n < count; ++n) {
    f(index);
    for (int i = sizes.size() - 1; i >= 0 && ++index[i] == sizes[i]; --i) {
      index[i] = 0;
    }
  }
}

Array generate(const Dims& sizes, const std::function<double(const Dims&)>& f) {
  Array y{sizes, {}};
  for_each(sizes, [&](const Dims& index) { y.values.push_back(f(index)); });
  return y;
}

Array map(const Array& x, const std::function<double(double)>& f) {
  Array y = x;
  std::transform(x.values.begin(), x.values.end(), y.values.begin(), f);
  return y;
}

Array zip(const Array& a, const Array& b, const std::function<double(double, double)>& f) {
  return generate(broadcast(a.sizes, b.sizes),
                  [&](const Dims& index) { return f(a.at(index), b.at(index)); });
}

Dims broadcast(const Dims& a, const Dims& b) {
  const int rank = std::max(a.size(), b.size());
  Dims sizes = Dims::of(rank, 1);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.size()), ib = i - (rank - b.size());
    sizes[i] = ia >= 0 && a[ia] != 1 ? a[ia] : ib >= 0 ? b[ib] : 1;
  }
  return sizes;
}

double round_to(DType dtype, double x) {
  switch (dtype) {
    case DType::f64: return x;
    case DType::f32: return static_cast<float>(x);
    case DType::f16: return static_cast<double>(half(x));
    case DType::bf16: return static_cast<double>(bfloat16(x));
    case DType::boolean: return x != 0;
    case DType::u8: return std::trunc(x) - 256 * std::floor(std::trunc(x) / 256);  // wraps
    default: return std::trunc(x);
  }
}

Array round_to(DType dtype, const Array& x) {
  return map(x, [dtype](double value) { return round_to(dtype, value); });
}

}  // namespace binade::op_table
