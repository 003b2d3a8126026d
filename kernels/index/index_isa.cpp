#include <binade/kernels/index/index_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kBlock = 64;  // columns that are summed at a time
constexpr int64_t kLeaf = 32;   // rows that are summed before they join the total

// Sums columns c to c + n - 1.
template <class T>
void sum_columns(const SumRows& a, int64_t c, int64_t n) {
  using C = Compute<T>;
  const T* src = reinterpret_cast<const T*>(a.src) + c;
  T* y = reinterpret_cast<T*>(a.y) + c;
  C total[kBlock] = {};
  for (int64_t first = 0; first < a.count; first += kLeaf) {
    const int64_t end = first + kLeaf < a.count ? first + kLeaf : a.count;
    C sum[kBlock] = {};
    for (int64_t k = first; k < end; ++k) {
      const T* row = src + a.order[k] * a.stride;
      for (int64_t i = 0; i < n; ++i) {
        sum[i] += static_cast<C>(row[i]);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      total[i] += sum[i];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(static_cast<C>(y[i]) + total[i]);
  }
}

template <class T>
void sum_column(const SumRows& a) {
  using C = Compute<T>;
  const T* src = reinterpret_cast<const T*>(a.src);
  T* y = reinterpret_cast<T*>(a.y);
  C total = 0;
  for (int64_t first = 0; first < a.count; first += kLeaf) {
    const int64_t end = first + kLeaf < a.count ? first + kLeaf : a.count;
    C sum = 0;
    for (int64_t k = first; k < end; ++k) {
      sum += static_cast<C>(src[a.order[k] * a.stride]);
    }
    total += sum;
  }
  y[0] = static_cast<T>(static_cast<C>(y[0]) + total);
}

template <class T>
void add_row(const SumRows& a) {
  using C = Compute<T>;
  const T* src = reinterpret_cast<const T*>(a.src) + a.order[0] * a.stride;
  T* y = reinterpret_cast<T*>(a.y);
#pragma GCC ivdep
  for (int64_t i = 0; i < a.columns; ++i) {
    y[i] = static_cast<T>(static_cast<C>(y[i]) + static_cast<C>(src[i]));
  }
}

template <class T>
void sum_rows_of(const SumRows& a) {
  if (a.count == 1) {
    return add_row<T>(a);
  }
  if (a.columns == 1) {
    return sum_column<T>(a);
  }
  for (int64_t c = 0; c < a.columns; c += kBlock) {
    sum_columns<T>(a, c, a.columns - c < kBlock ? a.columns - c : kBlock);
  }
}

}  // namespace

void sum_rows(const SumRows& a) {
  dispatch_floating("scatter_add", a.dtype,
                    [&](auto type) { sum_rows_of<typename decltype(type)::type>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
