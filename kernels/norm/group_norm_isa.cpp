#include <binade/kernels/base/moments.h>
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/norm/group_norm_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// Moments of one block: the first pass computes the mean up to rounding, the second its remainder
// and the deviations.
template <class T>
void plane_moments(const T* plane, int64_t count, double& mean, double& deviations) {
  using C = Compute<T>;
  Moments<double> all;
  for_blocks(count, [&](int64_t begin, int64_t size) {
    const T* x = plane + begin;
    Vector<C> sums{}, rest{}, squares{};
    for_vectors<C>(size,
                   [&](auto part, int64_t i, int64_t n) { sums += load_some<part()>(x + i, n); });
    const C first = reduce_add<C>(sums) / static_cast<C>(size);
    for_vectors<C>(size, [&](auto part, int64_t i, int64_t n) {
      const Vector<C> d = load_some<part()>(x + i, n, first) - first;
      rest += d;
      squares += d * d;
    });
    const double n = static_cast<double>(size);
    const double sum = static_cast<double>(reduce_add<C>(rest)), remainder = sum / n;
    all = all.merge({n, static_cast<double>(first) + remainder,
                     static_cast<double>(reduce_add<C>(squares)) - remainder * sum});
  });
  mean = all.mean;
  deviations = all.deviations;
}

template <class T>
void plane_gradient_sums(const T* x, const T* dy, Compute<T> mean, int64_t count, double& sum_dy,
                         double& sum_dy_x) {
  using C = Compute<T>;
  sum_dy = sum_dy_x = 0;
  for_blocks(count, [&](int64_t begin, int64_t size) {
    Vector<C> sums{}, products{};
    for_vectors<C>(size, [&](auto part, int64_t i, int64_t n) {
      const Vector<C> g = load_some<part()>(dy + begin + i, n);
      sums += g;
      products += g * (load_some<part()>(x + begin + i, n, mean) - mean);
    });
    sum_dy += static_cast<double>(reduce_add<C>(sums));
    sum_dy_x += static_cast<double>(reduce_add<C>(products));
  });
}

template <class C>
BINADE_INLINE const C* vector_of(const void* p) {
  return static_cast<const C*>(p);
}

template <class T>
void backward_plane(const GroupNormBackwardMap& a, int64_t channel) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.x) + channel * a.x_stride;
  const T* dy = static_cast<const T*>(a.dy) + channel * a.dy_stride;
  T* dx = static_cast<T*>(a.dx) + channel * a.dx_stride;
  const C mean = vector_of<C>(a.mean)[channel], scale = vector_of<C>(a.scale)[channel],
          shift = vector_of<C>(a.shift)[channel], slope = vector_of<C>(a.slope)[channel];
  for_vectors<C>(a.rows, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> d = load_some<part()>(x + i, n) - mean;
    const Vector<C> g = load_some<part()>(dy + i, n);
    store_some<part()>(dx + i, g * scale - shift - d * slope, n);
  });
}

template <class T>
void backward_row(const GroupNormBackwardMap& a, int64_t row) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(a.x) + row * a.x_stride;
  const T* dy = static_cast<const T*>(a.dy) + row * a.dy_stride;
  T* dx = static_cast<T*>(a.dx) + row * a.dx_stride;
  const C *mean = vector_of<C>(a.mean), *scale = vector_of<C>(a.scale),
          *shift = vector_of<C>(a.shift), *slope = vector_of<C>(a.slope);
  for_vectors<C>(a.channels, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> d = load_some<part()>(x + i, n) - load_some<part()>(mean + i, n);
    const Vector<C> g = load_some<part()>(dy + i, n) * load_some<part()>(scale + i, n);
    store_some<part()>(
        dx + i, g - load_some<part()>(shift + i, n) - d * load_some<part()>(slope + i, n), n);
  });
}

}  // namespace

void moment_planes(const MomentRows& a) {
  dispatch_floating("group_norm", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t c = 0; c < a.channels; ++c) {
      plane_moments(static_cast<const T*>(a.x) + c * a.x_stride, a.rows, a.mean[c],
                    a.deviations[c]);
    }
  });
}

void gradient_sum_planes(const GradientSumRows& a) {
  dispatch_floating("group_norm", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t c = 0; c < a.channels; ++c) {
      plane_gradient_sums(static_cast<const T*>(a.x) + c * a.x_stride,
                          static_cast<const T*>(a.dy) + c * a.dy_stride,
                          vector_of<Compute<T>>(a.mean)[c], a.rows, a.sum_dy[c], a.sum_dy_x[c]);
    }
  });
}

void normalize_planes(const NormalizeRows& a) {
  dispatch_floating("group_norm", a.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    for (int64_t c = 0; c < a.channels; ++c) {
      const T* x = static_cast<const T*>(a.x) + c * a.x_stride;
      T* y = static_cast<T*>(a.y) + c * a.y_stride;
      const C mean = vector_of<C>(a.mean)[c], scale = vector_of<C>(a.scale)[c],
              bias = vector_of<C>(a.bias)[c];
      for_vectors<C>(a.rows, [&](auto part, int64_t i, int64_t n) {
        store_some<part()>(y + i, (load_some<part()>(x + i, n) - mean) * scale + bias, n);
      });
    }
  });
}

void group_norm_backward_planes(const GroupNormBackwardMap& a) {
  dispatch_floating("group_norm", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t c = 0; c < a.channels; ++c) {
      backward_plane<T>(a, c);
    }
  });
}

void group_norm_backward_rows(const GroupNormBackwardMap& a) {
  dispatch_floating("group_norm", a.dtype, [&]<class T>(Type<T>) {
    for (int64_t row = 0; row < a.rows; ++row) {
      backward_row<T>(a, row);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
