// CPU cumulative products: lines are split over threads, and a thread walks several lines at once,
// so that their multiplications overlap.
#include <binade/kernels/sort/cumprod.h>
#include <binade/kernels/sort/cumsum_internal.h>
#include <binade/kernels/sort/lines_internal.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace binade::kernels::cpu {
namespace {

template <class T>
using Product =
    std::conditional_t<std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 2, float, double>>;

template <class T>
void forward(const CumulativeProduct& a, int64_t begin, int count) {
  Line<T> x[kLines], y[kLines];
  Product<T> product[kLines];
  for (int l = 0; l < count; ++l) {
    x[l] = Line<T>(a.x, a.dim, begin + l);
    y[l] = Line<T>(a.y, a.dim, begin + l);
    product[l] = 1;
  }
  const int64_t n = a.x.size(a.dim);
  for (int64_t k = 0; k < n; ++k) {
    for (int l = 0; l < count; ++l) {
      product[l] *= static_cast<Product<T>>(x[l][k]);
      y[l][k] = static_cast<T>(product[l]);
    }
  }
}

// With p_k = x_0 ... x_{k-1} and s_k = dy_k + x_{k+1} s_{k+1}: dx_k = p_k s_k, NaN where x_k is.
template <class T>
void backward(const CumulativeProductBackward& a, int64_t begin, int count,
              std::vector<Product<T>>& before) {
  Line<T> x[kLines], dy[kLines], dx[kLines];
  Product<T> running[kLines];
  for (int l = 0; l < count; ++l) {
    x[l] = Line<T>(a.x, a.dim, begin + l);
    dy[l] = Line<T>(a.dy, a.dim, begin + l);
    dx[l] = Line<T>(a.dx, a.dim, begin + l);
    running[l] = 1;
  }
  const int64_t n = a.x.size(a.dim);
  for (int64_t k = 0; k < n; ++k) {
    for (int l = 0; l < count; ++l) {
      before[static_cast<size_t>(k * kLines + l)] = running[l];
      running[l] *= static_cast<Product<T>>(x[l][k]);
    }
  }
  std::fill_n(running, count, Product<T>(0));
  for (int64_t k = n - 1; k >= 0; --k) {
    for (int l = 0; l < count; ++l) {
      const Product<T> rest = running[l] + static_cast<Product<T>>(dy[l][k]);
      const auto at = static_cast<Product<T>>(x[l][k]);
      dx[l][k] =
          static_cast<T>(std::isnan(at) ? at : before[static_cast<size_t>(k * kLines + l)] * rest);
      running[l] = at * rest;
    }
  }
}

}  // namespace

void cumprod_forward(const CumulativeProduct& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_sums(a.x.dtype, [&]<class T>(Type<T>) {
    for_lines(a.x, a.dim,
              [&] { return [&](int64_t line, int count) { forward<T>(a, line, count); }; });
  });
}

void cumprod_backward(const CumulativeProductBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  dispatch_floating("cumprod_backward", a.x.dtype, [&]<class T>(Type<T>) {
    for_lines(a.x, a.dim, [&] {
      std::vector<Product<T>> before(static_cast<size_t>(a.x.size(a.dim) * kLines));
      return [&a, before = std::move(before)](int64_t line, int count) mutable {
        backward<T>(a, line, count, before);
      };
    });
  });
}

}  // namespace binade::kernels::cpu
