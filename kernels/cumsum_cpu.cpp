// CPU cumulative sums: lines are split over threads, and a thread walks several neighbouring lines
// at once, so that their additions overlap and neighbours in memory share cache lines. f32 is
// summed in f64.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/cumsum_checks.h>

#include <type_traits>

namespace binade::kernels::cpu {
namespace {

constexpr int64_t kLines = 16;  // walked at once

template <class T>
using Total =
    std::conditional_t<std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 2, float, double>>;

struct Lines {
  View x, y;  // with size 1 at dim
  int64_t n, x_step, y_step;
};

// Offsets of the first elements of line `index` (row-major) in x and y.
void locate(const Lines& lines, int64_t index, int64_t& x, int64_t& y) {
  x = y = 0;
  for (int d = lines.x.dim() - 1; d >= 0; --d) {
    const int64_t i = index % lines.x.size(d);
    index /= lines.x.size(d);
    x += i * lines.x.strides[d];
    y += i * lines.y.strides[d];
  }
}

template <class T>
void walk(const Lines& lines, int64_t begin, int64_t count) {
  const T* x[kLines];
  T* y[kLines];
  Total<T> total[kLines] = {};
  for (int64_t l = 0; l < count; ++l) {
    int64_t from, to;
    locate(lines, begin + l, from, to);
    x[l] = lines.x.as<const T>() + from;
    y[l] = lines.y.as<T>() + to;
  }
  for (int64_t i = 0; i < lines.n; ++i) {
    for (int64_t l = 0; l < count; ++l) {
      total[l] += static_cast<Total<T>>(x[l][i * lines.x_step]);
      y[l][i * lines.y_step] = static_cast<T>(total[l]);
    }
  }
}

}  // namespace

void cumsum(const CumulativeSum& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  Lines lines = {a.x, a.y, a.x.size(a.dim), a.x.strides[a.dim], a.y.strides[a.dim]};
  lines.x.sizes[a.dim] = lines.y.sizes[a.dim] = 1;
  const auto width = static_cast<int64_t>(size_of(a.x.dtype));
  if (a.reverse) {
    lines.x.data += (lines.n - 1) * lines.x_step * width;
    lines.y.data += (lines.n - 1) * lines.y_step * width;
    lines.x_step = -lines.x_step;
    lines.y_step = -lines.y_step;
  }
  const int64_t count = a.x.numel / lines.n, groups = (count + kLines - 1) / kLines;
  dispatch_sums(a.x.dtype, [&]<class T>(Type<T>) {
    parallel_for(groups, kSerialElements / (lines.n * kLines) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = g * kLines;
        walk<T>(lines, first, count - first < kLines ? count - first : kLines);
      }
    });
  });
}

}  // namespace binade::kernels::cpu
