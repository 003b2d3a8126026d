#include <binade/kernels/index_isa.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kBlock = 64;  // columns that are summed at a time

template <class T>
void sum_rows_of(const SumRows& a) {
  using C = Compute<T>;
  const T* src = reinterpret_cast<const T*>(a.src);
  T* y = reinterpret_cast<T*>(a.y);
  if (a.columns == 1) {
    C sum = 0;
    for (int64_t k = 0; k < a.count; ++k) {
      sum += static_cast<C>(src[a.order[k] * a.stride]);
    }
    y[0] = static_cast<T>(static_cast<C>(y[0]) + sum);
    return;
  }
  for (int64_t c = 0; c < a.columns; c += kBlock) {
    const int64_t n = a.columns - c < kBlock ? a.columns - c : kBlock;
    C sum[kBlock] = {};
    for (int64_t k = 0; k < a.count; ++k) {
      const T* row = src + a.order[k] * a.stride + c;
      for (int64_t i = 0; i < n; ++i) {
        sum[i] += static_cast<C>(row[i]);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      y[c + i] = static_cast<T>(static_cast<C>(y[c + i]) + sum[i]);
    }
  }
}

}  // namespace

void sum_rows(const SumRows& a) {
  dispatch_floating("scatter_add", a.dtype,
                    [&](auto type) { sum_rows_of<typename decltype(type)::type>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
