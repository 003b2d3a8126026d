// CPU cumulative sums: lines are split over threads, and a thread walks over several adjacent lines
// at once, so that their additions overlap. Adjacent lines are walked as vectors; others a few at a
// time, each with its sum in a register. f32 is summed in f64.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/sort/cumsum_internal.h>

#include <algorithm>
#include <type_traits>

namespace binade::kernels::cpu {
namespace {

constexpr int64_t kLines = 256;  // walked at once, as vectors

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

// Walks over lines `begin` to begin + kCount - 1, of any strides.
template <class T, int kCount>
void walk(const Lines& lines, int64_t begin) {
  const T* x[kCount];
  T* y[kCount];
  Total<T> total[kCount] = {};
  for (int l = 0; l < kCount; ++l) {
    int64_t from, to;
    locate(lines, begin + l, from, to);
    x[l] = lines.x.as<const T>() + from;
    y[l] = lines.y.as<T>() + to;
  }
  const int64_t x_step = lines.x_step, y_step = lines.y_step;
  for (int64_t i = 0; i < lines.n; ++i) {
#pragma GCC unroll 4
    for (int l = 0; l < kCount; ++l) {
      total[l] += static_cast<Total<T>>(x[l][i * x_step]);
      y[l][i * y_step] = static_cast<T>(total[l]);
    }
  }
}

// Walks over `count` lines whose first elements are adjacent in x and in y.
template <class T>
void walk_neighbours(const Lines& lines, int64_t begin, int64_t count) {
  Total<T> total[kLines] = {};
  int64_t from, to;
  locate(lines, begin, from, to);
  const T* x = lines.x.as<const T>() + from;
  T* y = lines.y.as<T>() + to;
  for (int64_t i = 0; i < lines.n; ++i, x += lines.x_step, y += lines.y_step) {
#pragma GCC ivdep
    for (int64_t l = 0; l < count; ++l) {
      total[l] += static_cast<Total<T>>(x[l]);
      y[l] = static_cast<T>(total[l]);
    }
  }
}

// How many lines, from the first of a last dimension on, are adjacent: 1 if none are.
int64_t neighbours(const Lines& lines) {
  const int last = lines.x.dim() - 1;
  const bool adjacent = lines.x.strides[last] == 1 && lines.y.strides[last] == 1;
  return adjacent ? lines.x.size(last) : 1;
}

template <class T>
void walk_range(const Lines& lines, int64_t begin, int64_t end) {
  const int64_t row = neighbours(lines);
  while (begin < end) {
    const int64_t left = std::min({kLines, end - begin, row - begin % row});
    if (row > 1) {
      walk_neighbours<T>(lines, begin, left);
      begin += left;
    } else if (end - begin >= 4) {
      walk<T, 4>(lines, begin);
      begin += 4;
    } else {
      walk<T, 1>(lines, begin++);
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
  dispatch_sums(a.x.dtype, [&]<class T>(Type<T>) {
    parallel_for(a.x.numel / lines.n, kSerialElements / lines.n + 1,
                 [&](int64_t begin, int64_t end) { walk_range<T>(lines, begin, end); });
  });
}

}  // namespace binade::kernels::cpu
