// Triangular parts on the CPU: each row is one kept range, and one or two ranges that become 0.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/triangle.h>

#include <algorithm>

namespace binade::kernels::cpu {
namespace {

template <class W>
void triangle_rows(const Triangle& a) {
  const int last = a.y.dim() - 1;
  const int64_t rows = a.y.size(last - 1), cols = a.y.size(last);
  const int64_t x_stride = a.x.strides[last], y_stride = a.y.strides[last];
  parallel_for(a.y.numel / cols, kSerialElements / cols + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t x_at = 0, y_at = 0, rest = row;
      for (int d = last - 1; d >= 0; --d) {
        x_at += rest % a.x.size(d) * a.x.strides[d];
        y_at += rest % a.y.size(d) * a.y.strides[d];
        rest /= a.y.size(d);
      }
      const W* x = a.x.as<const W>() + x_at;
      W* y = a.y.as<W>() + y_at;
      const int64_t limit = std::max(-rows, std::min(a.diagonal, cols)) + row % rows;
      const int64_t first = a.upper ? std::clamp<int64_t>(limit, 0, cols) : 0;
      const int64_t kept = a.upper ? cols : std::clamp<int64_t>(limit + 1, 0, cols);
      for (int64_t j = 0; j < first; ++j) {
        y[j * y_stride] = 0;
      }
      for (int64_t j = first; j < kept; ++j) {
        y[j * y_stride] = x[j * x_stride];
      }
      for (int64_t j = kept; j < cols; ++j) {
        y[j * y_stride] = 0;
      }
    }
  });
}

}  // namespace

void triangle(const Triangle& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    dispatch_width(a.y.dtype, [&]<class W>(Type<W>) { triangle_rows<W>(a); });
  }
}

}  // namespace binade::kernels::cpu
