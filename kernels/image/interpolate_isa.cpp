#include <binade/kernels/image/interpolate_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kBlock = 64;  // channels at a time

template <class T>
void weighted_row_of(const WeightedRow& a) {
  using C = Compute<T>;
  T* y = reinterpret_cast<T*>(a.y);
  for (int64_t j = 0; j < a.count; ++j) {
    C sum = 0;
    for (int64_t r = 0; r < a.rows; ++r) {
      const T* row = reinterpret_cast<const T*>(a.row[r]);
      C part = 0;
      for (int64_t t = a.first[j]; t < a.first[j + 1]; ++t) {
        part += static_cast<C>(a.weight[t]) * static_cast<C>(row[a.at[t] * a.stride]);
      }
      sum += static_cast<C>(a.row_weight[r]) * part;
    }
    y[j * a.y_stride] = static_cast<T>(sum);
  }
}

template <class T>
void weighted_pixels_of(const WeightedPixels& p) {
  using C = Compute<T>;
  const WeightedRow& a = p.row;
  for (int64_t j = 0; j < a.count; ++j) {
    T* y = reinterpret_cast<T*>(a.y) + j * a.y_stride;
    for (int64_t c = 0; c < p.channels; c += kBlock) {
      const int64_t n = p.channels - c < kBlock ? p.channels - c : kBlock;
      C sum[kBlock] = {};
      for (int64_t r = 0; r < a.rows; ++r) {
        for (int64_t t = a.first[j]; t < a.first[j + 1]; ++t) {
          const C weight = static_cast<C>(a.row_weight[r] * a.weight[t]);
          const T* x = reinterpret_cast<const T*>(a.row[r]) + a.at[t] * a.stride + c;
          for (int64_t i = 0; i < n; ++i) {
            sum[i] += weight * static_cast<C>(x[i]);
          }
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        y[c + i] = static_cast<T>(sum[i]);
      }
    }
  }
}

}  // namespace

void weighted_row(const WeightedRow& a) {
  dispatch_floating("interpolate", a.dtype,
                    [&](auto type) { weighted_row_of<typename decltype(type)::type>(a); });
}

void weighted_pixels(const WeightedPixels& a) {
  dispatch_floating("interpolate", a.row.dtype,
                    [&](auto type) { weighted_pixels_of<typename decltype(type)::type>(a); });
}

}  // namespace binade::kernels::BINADE_ISA
