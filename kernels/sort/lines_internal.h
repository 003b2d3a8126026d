// The lines of a view along a dimension on the CPU, split over threads.
#pragma once
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/base/view.h>

#include <algorithm>

namespace binade::kernels {

inline constexpr int kLines = 8;  // walked at once

// The elements of line `index` (row-major over the other dimensions).
template <class T>
struct Line {
  T* first;
  int64_t step;
  Line() = default;
  Line(const View& v, int dim, int64_t index) : first(v.as<T>()), step(v.strides[dim]) {
    for (int d = v.dim() - 1; d >= 0; --d) {
      if (d != dim) {
        first += index % v.size(d) * v.strides[d];
        index /= v.size(d);
      }
    }
  }
  T& operator[](int64_t k) const { return first[k * step]; }
};

// Calls f(first line, count) for up to kLines lines at a time.
template <class F>
void for_lines(const View& x, int dim, const F& make) {
  const int64_t n = x.size(dim);
  parallel_for(x.numel / n, kSerialElements / n + 1, [&](int64_t begin, int64_t end) {
    auto f = make();
    for (int64_t line = begin; line < end; line += kLines) {
      f(line, static_cast<int>(std::min<int64_t>(kLines, end - line)));
    }
  });
}

}  // namespace binade::kernels
