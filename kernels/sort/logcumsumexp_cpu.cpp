// CPU cumulative log-sums: lines are split over threads, and a thread walks several lines at once.
#include <binade/kernels/sort/lines_internal.h>
#include <binade/kernels/sort/logcumsumexp.h>
#include <binade/kernels/sort/logcumsumexp_internal.h>

#include <algorithm>
#include <vector>

namespace binade::kernels::cpu {
namespace {

template <class T>
void forward_lines(const LogCumulativeSum& a, int64_t begin, int count) {
  using C = LogSum<T>;
  Line<T> x[kLines], y[kLines];
  RunningLogSum<C> so_far[kLines];
  for (int l = 0; l < count; ++l) {
    x[l] = Line<T>(a.x, a.dim, begin + l);
    y[l] = Line<T>(a.y, a.dim, begin + l);
  }
  const int64_t n = a.x.size(a.dim);
  for (int64_t k = 0; k < n; ++k) {
    for (int l = 0; l < count; ++l) {
      so_far[l].add(static_cast<C>(x[l][k]));
      y[l][k] = static_cast<T>(so_far[l].value());
    }
  }
}

// With u_i = dy_i + exp(y_i - y_{i+1}) u_{i+1}: dx_i = exp(x_i - y_i) u_i. All exponents are at
// most 0.
template <class T>
void backward_lines(const LogCumulativeSumBackward& a, int64_t begin, int count,
                    std::vector<LogSum<T>>& y) {
  using C = LogSum<T>;
  Line<T> x[kLines], dy[kLines], dx[kLines];
  RunningLogSum<C> so_far[kLines];
  for (int l = 0; l < count; ++l) {
    x[l] = Line<T>(a.x, a.dim, begin + l);
    dy[l] = Line<T>(a.dy, a.dim, begin + l);
    dx[l] = Line<T>(a.dx, a.dim, begin + l);
  }
  const int64_t n = a.x.size(a.dim);
  for (int64_t k = 0; k < n; ++k) {
    for (int l = 0; l < count; ++l) {
      so_far[l].add(static_cast<C>(x[l][k]));
      y[static_cast<size_t>(k * kLines + l)] = so_far[l].value();
    }
  }
  C after[kLines], rest[kLines] = {};  // y_{i+1}, u_{i+1}
  for (int l = 0; l < count; ++l) {
    after[l] = so_far[l].value();
  }
  for (int64_t k = n - 1; k >= 0; --k) {
    for (int l = 0; l < count; ++l) {
      const C now = y[static_cast<size_t>(k * kLines + l)];
      rest[l] = static_cast<C>(dy[l][k]) + share_of(now, after[l]) * rest[l];
      after[l] = now;
      dx[l][k] = static_cast<T>(share_of(static_cast<C>(x[l][k]), now) * rest[l]);
    }
  }
}

}  // namespace

void logcumsumexp_forward(const LogCumulativeSum& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_floating("logcumsumexp_forward", a.x.dtype, [&]<class T>(Type<T>) {
    for_lines(a.x, a.dim,
              [&] { return [&](int64_t line, int count) { forward_lines<T>(a, line, count); }; });
  });
}

void logcumsumexp_backward(const LogCumulativeSumBackward& a) {
  check_arguments(a);
  if (a.dx.numel == 0) {
    return;
  }
  dispatch_floating("logcumsumexp_backward", a.x.dtype, [&]<class T>(Type<T>) {
    for_lines(a.x, a.dim, [&] {
      std::vector<LogSum<T>> y(static_cast<size_t>(a.x.size(a.dim) * kLines));
      return [&a, y = std::move(y)](int64_t line, int count) mutable {
        backward_lines<T>(a, line, count, y);
      };
    });
  });
}

}  // namespace binade::kernels::cpu
