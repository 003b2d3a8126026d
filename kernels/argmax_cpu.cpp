// CPU argmax: one sequential scan per output.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/reduce_checks.h>

namespace binade::kernels::cpu {
namespace {

template <class T>
auto comparable(T x) {
  if constexpr (is_half(dtype_of<T>)) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

template <class T>
bool is_nan(T value) {
  return value != value;  // NOLINT(misc-redundant-expression): also for integers
}

template <class T>
int64_t scan(const T* x, int64_t stride, int64_t n) {
  int64_t best = 0;
  auto largest = comparable(x[0]);
  for (int64_t i = 1; i < n && !is_nan(largest); ++i) {  // the first NaN wins
    const auto value = comparable(x[i * stride]);
    if (value > largest || is_nan(value)) {
      largest = value;
      best = i;
    }
  }
  return best;
}

// Offsets of output `index` (row-major over all dimensions but `dim`) in x and y.
struct Offsets {
  int64_t x = 0, y = 0;
};
Offsets offsets_at(const ArgMax& a, int64_t index) {
  Offsets at;
  const bool kept = a.y.dim() == a.x.dim();
  for (int d = a.x.dim() - 1; d >= 0; --d) {
    if (d == a.dim) {
      continue;
    }
    const int64_t i = index % a.x.size(d);
    index /= a.x.size(d);
    at.x += i * a.x.strides[d];
    at.y += i * a.y.strides[kept || d < a.dim ? d : d - 1];
  }
  return at;
}

template <class T>
void argmax_of(const ArgMax& a) {
  const int64_t n = a.x.size(a.dim), stride = a.x.strides[a.dim];
  parallel_for(a.y.numel, 32768 / n + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Offsets at = offsets_at(a, i);
      a.y.as<int64_t>()[at.y] = scan(a.x.as<const T>() + at.x, stride, n);
    }
  });
}

}  // namespace

void argmax(const ArgMax& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  switch (a.x.dtype) {
    case DType::i64: return argmax_of<int64_t>(a);
    case DType::i32: return argmax_of<int32_t>(a);
    default:
      dispatch_floating("argmax", a.x.dtype,
                        [&](auto type) { argmax_of<typename decltype(type)::type>(a); });
  }
}

}  // namespace binade::kernels::cpu
