#include <binade/kernels/base/moments.h>
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/norm/group_norm_isa_internal.h>

#include <limits>

namespace binade::kernels::BINADE_ISA {
namespace {

// Moments of one block: the first pass computes the mean up to rounding, the second its remainder
// and the deviations. A block whose squares exceed C is summed again in double.
template <class T>
void plane_moments(const T* plane, int64_t count, double& mean, double& deviations) {
  using C = Compute<T>;
  Moments<double> all;
  for_blocks(count, [&](int64_t begin, int64_t size) {
    const T* x = plane + begin;
    Vector<C> sums[kWays] = {}, rest[kWays] = {}, squares[kWays] = {};
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t i, int64_t n) {
      sums[way()] += load_some<part()>(x + i, n);
    });
    const C first = reduce_add<C>(sums) / static_cast<C>(size);
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t i, int64_t n) {
      const Vector<C> d = load_some<part()>(x + i, n, first) - first;
      rest[way()] += d;
      squares[way()] += d * d;
    });
    const double n = static_cast<double>(size);
    const double sum = static_cast<double>(reduce_add<C>(rest)), remainder = sum / n;
    const C square = reduce_add<C>(squares);
    Moments<double> block{n, static_cast<double>(first) + remainder,
                          static_cast<double>(square) - remainder * sum};
    if (!(square <= std::numeric_limits<C>::max())) [[unlikely]] {
      block = moments_in_double(dtype_of<T>, x, 1, size);
    }
    all = all.merge(block);
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
    Vector<C> sums[kWays] = {}, products[kWays] = {};
    for_vectors_in_ways<C>(size, [&](auto part, auto way, int64_t i, int64_t n) {
      const Vector<C> g = load_some<part()>(dy + begin + i, n);
      sums[way()] += g;
      products[way()] += g * (load_some<part()>(x + begin + i, n, mean) - mean);
    });
    sum_dy += static_cast<double>(reduce_add<C>(sums));
    sum_dy_x += static_cast<double>(reduce_add<C>(products));
  });
}

template <class C>
BINADE_INLINE const C* vector_of(const void* p) {
  return static_cast<const C*>(p);
}

// The coefficients of the map of one plane.
template <class C>
struct PlaneMap {
  C mean, scale, shift, slope = 0;
};

// y = (x - mean) scale + shift
template <bool kNontemporal, class T>
void normalize_plane(const T* x, T* y, int64_t count, const PlaneMap<Compute<T>>& map) {
  for_vectors<Compute<T>>(count, [&](auto part, int64_t i, int64_t n) {
    store_result<kNontemporal, part()>(
        y + i, (load_some<part()>(x + i, n) - map.mean) * map.scale + map.shift, n);
  });
}

// dx = dy scale - shift - (x - mean) slope
template <bool kNontemporal, class T>
void backward_plane(const T* x, const T* dy, T* dx, int64_t count,
                    const PlaneMap<Compute<T>>& map) {
  using C = Compute<T>;
  for_vectors<C>(count, [&](auto part, int64_t i, int64_t n) {
    const Vector<C> d = load_some<part()>(x + i, n) - map.mean;
    const Vector<C> g = load_some<part()>(dy + i, n);
    const Vector<C> result = g * map.scale - map.shift - d * map.slope;
    store_result<kNontemporal, part()>(dx + i, result, n);
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

template <class T>
void whole_group(const GroupPlanesForward& a) {
  using C = Compute<T>;
  const GroupPlanes& g = a.group;
  const T* x = static_cast<const T*>(g.x);
  T* y = static_cast<T*>(a.y);
  double mean = 0, deviations = 0;
  const int64_t count = g.inner * g.channels;
  plane_moments(x, count, mean, deviations);
  const double variance = deviations / static_cast<double>(count);
  const double rstd = 1 / __builtin_sqrt((variance < 0 ? 0 : variance) + a.eps);  // NaN stays
  *static_cast<C*>(g.mean) = static_cast<C>(mean);
  *static_cast<C*>(g.rstd) = static_cast<C>(rstd);
  const bool nontemporal = a.nontemporal && fits_nontemporal(y, g.inner, g.inner);
  for (int64_t c = 0; c < g.channels; ++c, x += g.inner, y += g.inner) {
    const double weight = g.weight ? static_cast<double>(vector_of<C>(g.weight)[c]) : 1;
    const PlaneMap<C> map{static_cast<C>(mean), static_cast<C>(weight * rstd),
                          a.bias ? vector_of<C>(a.bias)[c] : C(0)};
    nontemporal ? normalize_plane<true>(x, y, g.inner, map)
                : normalize_plane<false>(x, y, g.inner, map);
  }
  if (nontemporal) {
    nontemporal_fence();
  }
}

template <class T>
void whole_group_backward(const GroupPlanesBackward& a) {
  using C = Compute<T>;
  const GroupPlanes& group = a.group;
  const C mean = *static_cast<const C*>(group.mean);
  double g = 0, gx = 0;
  for (int64_t c = 0; c < group.channels; ++c) {
    const int64_t at = c * group.inner;
    plane_gradient_sums(static_cast<const T*>(group.x) + at, static_cast<const T*>(a.dy) + at, mean,
                        group.inner, a.sum_dy[c], a.sum_dy_x[c]);
    const double weight = group.weight ? static_cast<double>(vector_of<C>(group.weight)[c]) : 1;
    g += weight * a.sum_dy[c];
    gx += weight * a.sum_dy_x[c];
  }
  if (!a.dx) {
    return;
  }
  const double rstd = static_cast<double>(*static_cast<const C*>(group.rstd));
  const double count = static_cast<double>(group.inner * group.channels);
  const C shift = static_cast<C>(rstd * g / count),
          slope = static_cast<C>(rstd * rstd * rstd * gx / count);
  T* dx = static_cast<T*>(a.dx);
  const bool nontemporal = a.nontemporal && fits_nontemporal(dx, group.inner, group.inner);
  for (int64_t c = 0; c < group.channels; ++c) {
    const double weight = group.weight ? static_cast<double>(vector_of<C>(group.weight)[c]) : 1;
    const PlaneMap<C> map{mean, static_cast<C>(weight * rstd), shift, slope};
    const int64_t at = c * group.inner;
    const T *x = static_cast<const T*>(group.x) + at, *dy = static_cast<const T*>(a.dy) + at;
    nontemporal ? backward_plane<true>(x, dy, dx + at, group.inner, map)
                : backward_plane<false>(x, dy, dx + at, group.inner, map);
  }
  if (nontemporal) {
    nontemporal_fence();
  }
}

}  // namespace

void group_norm_planes(const GroupPlanesForward& a) {
  dispatch_floating("group_norm", a.group.dtype, [&]<class T>(Type<T>) { whole_group<T>(a); });
}

void group_norm_planes_backward(const GroupPlanesBackward& a) {
  dispatch_floating("group_norm", a.group.dtype,
                    [&]<class T>(Type<T>) { whole_group_backward<T>(a); });
}

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
      normalize_plane<false>(
          static_cast<const T*>(a.x) + c * a.x_stride, static_cast<T*>(a.y) + c * a.y_stride,
          a.rows, {vector_of<C>(a.mean)[c], vector_of<C>(a.scale)[c], vector_of<C>(a.bias)[c]});
    }
  });
}

void group_norm_backward_planes(const GroupNormBackwardMap& a) {
  dispatch_floating("group_norm", a.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    for (int64_t c = 0; c < a.channels; ++c) {
      backward_plane<false>(static_cast<const T*>(a.x) + c * a.x_stride,
                            static_cast<const T*>(a.dy) + c * a.dy_stride,
                            static_cast<T*>(a.dx) + c * a.dx_stride, a.rows,
                            {vector_of<C>(a.mean)[c], vector_of<C>(a.scale)[c],
                             vector_of<C>(a.shift)[c], vector_of<C>(a.slope)[c]});
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
