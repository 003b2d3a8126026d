#include <binade/kernels/base/moments.h>
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/norm/batch_norm_isa_internal.h>

#include <limits>

namespace binade::kernels::BINADE_ISA {
namespace {

// Sums are in the compute type over this many rows, then in double.
constexpr int64_t kBlockRows = 128;
// The number of vectors of channels in one pass over the rows: whole cache lines, and enough sums
// to hide latency.
constexpr int kVectors = 4;

// Moments of kGroup vectors of channels; with kPart of the first n channels of one vector. A block
// sums differences from its first row, so the squares lose at most eps kBlockRows of the block's
// own variance, whatever that row holds. A block whose squares exceed C is summed again in double.
template <bool kPart, int kGroup, class T>
void moments(const T* x, int64_t stride, int64_t rows, int64_t n, double* mean,
             double* deviations) {
  using C = Compute<T>;
  constexpr int kWidth = kGroup * kLanes<C>;
  for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
    const int64_t end = begin + kBlockRows < rows ? begin + kBlockRows : rows;
    Vector<C> shift[kGroup], sum[kGroup] = {}, square[kGroup] = {};
    for (int v = 0; v < kGroup; ++v) {
      shift[v] = load_some<kPart>(x + begin * stride + v * kLanes<C>, n);
    }
    for (int64_t row = begin; row < end; ++row) {
      for (int v = 0; v < kGroup; ++v) {
        const Vector<C> d = load_some<kPart>(x + row * stride + v * kLanes<C>, n) - shift[v];
        sum[v] += d;
        square[v] += d * d;
      }
    }
    const double count = static_cast<double>(end - begin);
    const C* shifts = reinterpret_cast<const C*>(shift);
    const C* sums = reinterpret_cast<const C*>(sum);
    const C* squares = reinterpret_cast<const C*>(square);
    for (int64_t i = 0; i < (kPart ? n : kWidth); ++i) {
      const double mean_shift = sums[i] / count;
      Moments<double> block{count, shifts[i] + mean_shift, squares[i] - mean_shift * sums[i]};
      if (!(squares[i] <= std::numeric_limits<C>::max())) [[unlikely]] {
        block = moments_in_double(dtype_of<T>, x + begin * stride + i, stride, end - begin);
      }
      const Moments<double> before{static_cast<double>(begin), mean[i], deviations[i]};
      const Moments<double> all = before.merge(block);
      mean[i] = all.mean;
      deviations[i] = all.deviations;
    }
  }
}

// The gradient before relu: g where its output y is greater than 0 or NaN, else 0.
template <class C>
BINADE_INLINE Vector<C> relu_gradient(Vector<C> y, Vector<C> g) {
  return y <= Vector<C>{} ? Vector<C>{} : g;
}

template <bool kPart, int kGroup, bool kRelu, class T>
void gradient_sums(const GradientSumRows& a, int64_t channel, int64_t n) {
  using C = Compute<T>;
  constexpr int kWidth = kGroup * kLanes<C>;
  const T* x = static_cast<const T*>(a.x) + channel;
  const T* dy = static_cast<const T*>(a.dy) + channel;
  const T* y = kRelu ? static_cast<const T*>(a.y) + channel : nullptr;
  T* dz = a.dz ? static_cast<T*>(a.dz) + channel : nullptr;
  Vector<C> mean[kGroup];
  for (int v = 0; v < kGroup; ++v) {
    mean[v] = load_some<kPart>(static_cast<const C*>(a.mean) + channel + v * kLanes<C>, n);
  }
  for (int64_t begin = 0; begin < a.rows; begin += kBlockRows) {
    const int64_t end = begin + kBlockRows < a.rows ? begin + kBlockRows : a.rows;
    Vector<C> sum[kGroup] = {}, product[kGroup] = {};
    for (int64_t row = begin; row < end; ++row) {
      for (int v = 0; v < kGroup; ++v) {
        Vector<C> g = load_some<kPart>(dy + row * a.dy_stride + v * kLanes<C>, n);
        if constexpr (kRelu) {
          g = relu_gradient<C>(load_some<kPart>(y + row * a.y_stride + v * kLanes<C>, n), g);
          if (dz) {
            store_some<kPart>(dz + row * a.dz_stride + v * kLanes<C>, g, n);
          }
        }
        const Vector<C> d = load_some<kPart>(x + row * a.x_stride + v * kLanes<C>, n) - mean[v];
        sum[v] += g;
        product[v] += g * d;
      }
    }
    const C* sums = reinterpret_cast<const C*>(sum);
    const C* products = reinterpret_cast<const C*>(product);
    for (int64_t i = 0; i < (kPart ? n : kWidth); ++i) {
      a.sum_dy[channel + i] += sums[i];
      a.sum_dy_x[channel + i] += products[i];
    }
  }
}

// Calls f(part, group, channel, n): groups of kVectors vectors, then single ones, then the rest.
template <class C, class F>
BINADE_INLINE void for_channel_groups(int64_t channels, F&& f) {
  int64_t channel = 0;
  for (; channel + kVectors * kLanes<C> <= channels; channel += kVectors * kLanes<C>) {
    f.template operator()<false, kVectors>(channel, int64_t{0});
  }
  for (; channel + kLanes<C> <= channels; channel += kLanes<C>) {
    f.template operator()<false, 1>(channel, int64_t{0});
  }
  if (channel < channels) {
    f.template operator()<true, 1>(channel, channels - channel);
  }
}

template <class T, bool kResidual, bool kRelu>
void normalize(const NormalizeRows& a) {
  using C = Compute<T>;
  const C* mean = static_cast<const C*>(a.mean);
  const C* scale = static_cast<const C*>(a.scale);
  const C* bias = static_cast<const C*>(a.bias);
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* x = static_cast<const T*>(a.x) + row * a.x_stride;
    const T* residual =
        kResidual ? static_cast<const T*>(a.residual) + row * a.residual_stride : nullptr;
    T* y = static_cast<T*>(a.y) + row * a.y_stride;
    for_vectors<C>(a.channels, [&](auto part, int64_t i, int64_t n) {
      const Vector<C> d = load_some<part()>(x + i, n) - load_some<part()>(mean + i, n);
      const Vector<C> u = d * load_some<part()>(scale + i, n);
      Vector<C> z = u + load_some<part()>(bias + i, n);
      if constexpr (kResidual) {
        z += load_some<part()>(residual + i, n);
      }
      if constexpr (kRelu) {
        z = z < Vector<C>{} ? Vector<C>{} : z;
      }
      store_some<part()>(y + i, z, n);
    });
  }
}

template <class T, bool kRelu>
void normalize_backward(const NormalizeRowsBackward& a) {
  using C = Compute<T>;
  const C* mean = static_cast<const C*>(a.mean);
  const C* scale = static_cast<const C*>(a.scale);
  const C* dy_mean = static_cast<const C*>(a.dy_mean);
  const C* slope = static_cast<const C*>(a.slope);
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* x = static_cast<const T*>(a.x) + row * a.x_stride;
    const T* dy = static_cast<const T*>(a.dy) + row * a.dy_stride;
    const T* y = kRelu ? static_cast<const T*>(a.y) + row * a.y_stride : nullptr;
    T* dx = static_cast<T*>(a.dx) + row * a.dx_stride;
    for_vectors<C>(a.channels, [&](auto part, int64_t i, int64_t n) {
      const Vector<C> d = load_some<part()>(x + i, n) - load_some<part()>(mean + i, n);
      Vector<C> g = load_some<part()>(dy + i, n);
      if constexpr (kRelu) {
        g = relu_gradient<C>(load_some<part()>(y + i, n), g);
      }
      g -= load_some<part()>(dy_mean + i, n);
      g -= d * load_some<part()>(slope + i, n);
      store_some<part()>(dx + i, g * load_some<part()>(scale + i, n), n);
    });
  }
}

}  // namespace

void moment_rows(const MomentRows& a) {
  for (int64_t i = 0; i < a.channels; ++i) {
    a.mean[i] = a.deviations[i] = 0;
  }
  dispatch_floating("batch_norm", a.dtype, [&]<class T>(Type<T>) {
    const T* x = static_cast<const T*>(a.x);
    for_channel_groups<Compute<T>>(
        a.channels, [&]<bool kPart, int kGroup>(int64_t channel, int64_t n) {
          moments<kPart, kGroup>(x + channel, a.x_stride, a.rows, n, a.mean + channel,
                                 a.deviations + channel);
        });
  });
}

void gradient_sum_rows(const GradientSumRows& a) {
  for (int64_t i = 0; i < a.channels; ++i) {
    a.sum_dy[i] = a.sum_dy_x[i] = 0;
  }
  dispatch_floating("batch_norm", a.dtype, [&]<class T>(Type<T>) {
    for_channel_groups<Compute<T>>(a.channels,
                                   [&]<bool kPart, int kGroup>(int64_t channel, int64_t n) {
                                     if (a.y) {
                                       gradient_sums<kPart, kGroup, true, T>(a, channel, n);
                                     } else {
                                       gradient_sums<kPart, kGroup, false, T>(a, channel, n);
                                     }
                                   });
  });
}

void normalize_rows(const NormalizeRows& a) {
  dispatch_floating("batch_norm", a.dtype, [&]<class T>(Type<T>) {
    if (a.residual) {
      a.relu ? normalize<T, true, true>(a) : normalize<T, true, false>(a);
    } else {
      a.relu ? normalize<T, false, true>(a) : normalize<T, false, false>(a);
    }
  });
}

void normalize_rows_backward(const NormalizeRowsBackward& a) {
  dispatch_floating("batch_norm", a.dtype, [&]<class T>(Type<T>) {
    a.y ? normalize_backward<T, true>(a) : normalize_backward<T, false>(a);
  });
}

}  // namespace binade::kernels::BINADE_ISA
