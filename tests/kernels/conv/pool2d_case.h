// A case of pooling and its reference, window by window in double.
#pragma once
#include <binade/kernels/conv/pool2d.h>
#include <tests/kernels/support/array_values.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace binade::kernels {
namespace {

inline Dims output_sizes(const Dims& x, const Pool2dGeometry& g) {
  Dims y = x;
  for (int i = 0; i < 2; ++i) {
    y[2 + i] = pool2d_output_size(x[2 + i], g, i);
  }
  return y;
}

// Offset of element (plane, row, col) of a row-major tensor.
inline size_t at(const Dims& sizes, int64_t plane, int64_t row, int64_t col) {
  return static_cast<size_t>((plane * sizes[2] + row) * sizes[3] + col);
}

// Calls f(output, tap, input) for every tap of every window inside the input, in order.
inline void for_taps(const Dims& x, const Dims& y, const Pool2dGeometry& g,
                     const std::function<void(size_t, int64_t, size_t)>& f) {
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (int64_t p = 0; p < y[2]; ++p) {
      for (int64_t q = 0; q < y[3]; ++q) {
        for (int64_t tap = 0; tap < g.kernel[0] * g.kernel[1]; ++tap) {
          const int64_t i = tap / g.kernel[1], j = tap % g.kernel[1];
          const int64_t h = p * g.stride[0] - g.padding[0] + i * g.dilation[0];
          const int64_t w = q * g.stride[1] - g.padding[1] + j * g.dilation[1];
          if (h >= 0 && h < x[2] && w >= 0 && w < x[3]) {
            f(at(y, plane, p, q), tap, at(x, plane, h, w));
          }
        }
      }
    }
  }
}

struct Chosen {
  Values y;
  std::vector<size_t> source;
  std::vector<int64_t> tap;
};

inline Chosen max_reference(const Values& values, const Dims& x, const Dims& y,
                            const Pool2dGeometry& g) {
  const size_t count = static_cast<size_t>(element_count(y));
  Chosen chosen{Values(count, -kInf), std::vector<size_t>(count, SIZE_MAX),
                std::vector<int64_t>(count, -1)};
  for_taps(x, y, g, [&](size_t output, int64_t tap, size_t input) {
    const double value = values[input], best = chosen.y[output];
    const bool first = chosen.tap[output] < 0;
    if (first || value > best || (std::isnan(value) && !std::isnan(best))) {
      chosen.y[output] = value;
      chosen.tap[output] = tap;
      chosen.source[output] = input;
    }
  });
  return chosen;
}

// Divisor of the windows of one dimension.
inline int64_t extent(const Pool2dGeometry& g, int i, int64_t output, int64_t size) {
  const int64_t start = output * g.stride[i] - g.padding[i];
  const int64_t stop = std::min(start + g.kernel[i], size + g.padding[i]);
  return g.count_include_pad ? stop - start : std::min(stop, size) - std::max<int64_t>(start, 0);
}

inline double divisor(const Dims& x, const Dims& y, const Pool2dGeometry& g, size_t output) {
  const int64_t index = static_cast<int64_t>(output);
  return static_cast<double>(extent(g, 0, index / y[3] % y[2], x[2]) *
                             extent(g, 1, index % y[3], x[3]));
}

struct Pool2dCase {
  DType dtype;
  Dims sizes;
  Pool2dGeometry geometry;
  ArrayLayout layout;

  std::string name() const {
    const Pool2dGeometry& g = geometry;
    return to_string(sizes) + " " + layout.name + " kernel " + std::to_string(g.kernel[0]) + "x" +
           std::to_string(g.kernel[1]) + " padding " + std::to_string(g.padding[0]) +
           (g.ceil_mode ? " ceil" : "") + (g.count_include_pad ? "" : " without padding");
  }
};

inline StridedArray draw(const Pool2dCase& c, const Dims& sizes, uint32_t seed) {
  Values values = random_values(static_cast<size_t>(element_count(sizes)), seed);
  for (double& value : values) {
    value = std::round(value * 4) / 4;  // ties
  }
  return make_array(c.dtype, sizes, values, c.layout.order, c.layout.gap);
}

inline void check_max(const Pool2dCase& c) {
  const Dims out = output_sizes(c.sizes, c.geometry);
  StridedArray x = draw(c, c.sizes, 1), dy = draw(c, out, 2);
  StridedArray y(c.dtype, out, c.layout.order, c.layout.gap);
  StridedArray dx(c.dtype, c.sizes, c.layout.order, c.layout.gap);
  const View y_view = y.view();
  TestValues<int32_t> indices(y.bytes().size());
  const View index = indices.view(pool2d_index_dtype(c.geometry), out, y_view.strides);
  max_pool2d_forward({x.view(), y_view, index, c.geometry});
  const Chosen expected = max_reference(values_of(x), c.sizes, out, c.geometry);
  expect_close(y, c.dtype, expected.y, 0, c.name() + " max");
  StridedArray without(c.dtype, out, c.layout.order, c.layout.gap);
  max_pool2d_forward({x.view(), without.view(), kNoView, c.geometry});
  EXPECT_EQ(without.bytes(), y.bytes());

  max_pool2d_backward({dy.view(), index, dx.view(), c.geometry});
  Values gradient(static_cast<size_t>(element_count(c.sizes)));
  const Values upstream = values_of(dy);
  for (size_t i = 0; i < upstream.size(); ++i) {
    if (expected.tap[i] >= 0) {
      gradient[expected.source[i]] += upstream[i];
    }
  }
  expect_close(dx, c.dtype, gradient, 4, c.name() + " max backward");
}

inline void check_average(const Pool2dCase& c) {
  const Dims out = output_sizes(c.sizes, c.geometry);
  StridedArray x = draw(c, c.sizes, 1), dy = draw(c, out, 2);
  StridedArray y(c.dtype, out, c.layout.order, c.layout.gap);
  StridedArray dx(c.dtype, c.sizes, c.layout.order, c.layout.gap);
  avg_pool2d_forward({x.view(), y.view(), c.geometry});
  avg_pool2d_backward({dy.view(), dx.view(), c.geometry});
  const Values input = values_of(x), upstream = values_of(dy);
  Values expected(upstream.size()), gradient(input.size());
  for_taps(c.sizes, out, c.geometry, [&](size_t o, int64_t, size_t i) {
    expected[o] += input[i] / divisor(c.sizes, out, c.geometry, o);
    gradient[i] += upstream[o] / divisor(c.sizes, out, c.geometry, o);
  });
  expect_close(y, c.dtype, expected, 4, c.name() + " average");
  expect_close(dx, c.dtype, gradient, 4, c.name() + " average backward");
}

}  // namespace
}  // namespace binade::kernels
