// Compares one convolution in its three directions with a naive loop in double: exact on integers,
// within the rounding bound on random data.
#pragma once
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <tests/kernels/support/strided_array.h>

#include <array>
#include <cmath>

namespace binade::kernels {

inline constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
inline const std::vector<int> kChannelsLast = {0, 2, 3, 1}, kPlain = {0, 1, 2, 3},
                              kOdd = {3, 1, 0, 2};

struct ConvCase {
  int64_t n, c, h, w, o, r, s;
  Conv2dGeometry geometry = {};
  DType dtype = DType::f32;
  bool integers = true, bias = false, relu = false;
  std::vector<int> x_order = kChannelsLast, w_order = kChannelsLast, y_order = kChannelsLast;
  int64_t gap = 0;
};

inline int64_t output_size(int64_t size, int64_t kernel, const Conv2dGeometry& g, int axis) {
  return (size + 2 * g.padding[axis] - g.dilation[axis] * (kernel - 1) - 1) / g.stride[axis] + 1;
}

using Index = std::array<int64_t, 4>;

// Sums and sums of magnitudes, both dense and row-major.
struct Conv2dReference {
  explicit Conv2dReference(const Dims& dims)
      : sizes(dims), sum(static_cast<size_t>(element_count(dims))), magnitude(sum) {}
  template <class At>
  size_t index(const At& at) const {
    int64_t i = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      i = i * sizes[static_cast<int>(d)] + at[d];
    }
    return static_cast<size_t>(i);
  }
  template <class At>
  void add(const At& at, double value) {
    add(index(at), value);
  }
  void add(size_t i, double value) {
    sum[i] += value;
    magnitude[i] += std::fabs(value);
  }
  Dims sizes;
  std::vector<double> sum, magnitude;
};

// Calls f(image, o, c, h, w, p, q, r, s, c within group) for every product.
template <class F>
void each_product(const ConvCase& k, F&& f) {
  const Conv2dGeometry& g = k.geometry;
  const int64_t p_size = output_size(k.h, k.r, g, 0), q_size = output_size(k.w, k.s, g, 1);
  const int64_t group_c = k.c / g.groups, group_o = k.o / g.groups;
  for (int64_t n = 0; n < k.n; ++n) {
    for (int64_t o = 0; o < k.o; ++o) {
      for (int64_t p = 0; p < p_size; ++p) {
        for (int64_t q = 0; q < q_size; ++q) {
          for (int64_t r = 0; r < k.r; ++r) {
            for (int64_t s = 0; s < k.s; ++s) {
              const int64_t h = p * g.stride[0] - g.padding[0] + r * g.dilation[0];
              const int64_t w = q * g.stride[1] - g.padding[1] + s * g.dilation[1];
              for (int64_t c = 0; c < group_c && h >= 0 && h < k.h && w >= 0 && w < k.w; ++c) {
                f(Index{n, o / group_o * group_c + c, h, w}, Index{o, c, r, s}, Index{n, o, p, q});
              }
            }
          }
        }
      }
    }
  }
}

inline void compare(const ConvCase& k, const StridedArray& got, const Conv2dReference& want,
                    double length) {
  int failures = 0;
  got.each([&](const std::vector<int64_t>& at) {
    double value = want.sum[want.index(at)];
    value = k.relu ? std::max(value, 0.0) : value;
    const bool exact = k.integers && std::fabs(value) <= 1 / epsilon(k.dtype);
    const double bound = exact ? 0
                               : unit_roundoff(k.dtype) * std::fabs(value) * 1.001 +
                                     1e-7 * is_half(k.dtype) +
                                     2 * (length + 2) * unit_roundoff(compute_dtype(k.dtype)) *
                                         want.magnitude[want.index(at)];
    if (!(std::fabs(got.get(at) - value) <= bound) && ++failures <= 3) {
      ADD_FAILURE() << "at " << at[0] << "," << at[1] << "," << at[2] << "," << at[3] << ": got "
                    << got.get(at) << ", expected " << value;
    }
  });
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(got.gaps_untouched());
}

inline void run(const ConvCase& k, MathMode mode) {
  const MathModeGuard guard(mode);
  const Conv2dGeometry& g = k.geometry;
  SCOPED_TRACE(text(k.dtype, " n", k.n, " c", k.c, " ", k.h, "x", k.w, " o", k.o, " kernel ", k.r,
                    "x", k.s, " stride ", g.stride[0], " padding ", g.padding[0], " dilation ",
                    g.dilation[0], " groups ", g.groups, " order ", k.x_order[1], k.w_order[1],
                    k.y_order[1], " ", to_string(mode)));
  const int64_t p = output_size(k.h, k.r, g, 0), q = output_size(k.w, k.s, g, 1);
  StridedArray x(k.dtype, {k.n, k.c, k.h, k.w}, k.x_order, k.gap), dx = x;
  StridedArray w(k.dtype, {k.o, k.c / g.groups, k.r, k.s}, k.w_order, k.gap), dw = w;
  StridedArray y(k.dtype, {k.n, k.o, p, q}, k.y_order, k.gap), dy = y;
  StridedArray bias(k.dtype, {k.o}), dx_bias(k.dtype, {k.c});
  x.randomize(1, k.integers);
  w.randomize(2, k.integers);
  dy.randomize(3, k.integers);
  bias.randomize(4, k.integers);
  dx_bias.randomize(5, k.integers);
  const View bias_view = bias.view(), dx_bias_view = dx_bias.view(), no_view{};
  conv2d_forward({.x = x.view(),
                  .w = w.view(),
                  .y = y.view(),
                  .geometry = g,
                  .epilogue = {.bias = k.bias ? bias_view : no_view,
                               .activation = k.relu ? Activation::relu : Activation::none}});
  conv2d_backward_data({.dy = dy.view(),
                        .w = w.view(),
                        .dx = dx.view(),
                        .geometry = g,
                        .bias = k.bias ? dx_bias_view : no_view});
  conv2d_backward_weight({.x = x.view(), .dy = dy.view(), .dw = dw.view(), .geometry = g});

  Conv2dReference y_want(y.sizes()), dx_want(x.sizes()), dw_want(w.sizes());
  const std::vector<double> xs = x.values(), ws = w.values(), dys = dy.values();
  each_product(k, [&](const auto& at_x, const auto& at_w, const auto& at_y) {
    const size_t i = dx_want.index(at_x), j = dw_want.index(at_w), o = y_want.index(at_y);
    y_want.add(o, xs[i] * ws[j]);
    dx_want.add(i, dys[o] * ws[j]);
    dw_want.add(j, dys[o] * xs[i]);
  });
  if (k.bias) {
    y.each([&](const std::vector<int64_t>& at) { y_want.add(at, bias.get({at[1]})); });
    dx.each([&](const std::vector<int64_t>& at) { dx_want.add(at, dx_bias.get({at[1]})); });
  }
  const auto length = [](int64_t a, int64_t b, int64_t c) {
    return static_cast<double>(a * b * c);
  };
  compare(k, y, y_want, length(k.c, k.r, k.s));
  ConvCase linear = k;
  linear.relu = false;
  compare(linear, dx, dx_want, length(k.o, k.r, k.s));
  compare(linear, dw, dw_want, length(k.n, p, q));
}

inline Conv2dGeometry geometry(int64_t stride, int64_t padding, int64_t dilation = 1,
                               int64_t groups = 1) {
  return {{stride, stride}, {padding, padding}, {dilation, dilation}, groups};
}

inline bool on_device() { return !test_device().is_cpu(); }

// Runs bf16 on the CPU also in pairs (gemm_pairs_internal.h) if the processor multiplies pairs.
inline void run(const ConvCase& k) {
  run(k, MathMode::precise);
  if (k.dtype == DType::bf16 && !on_device()) {
    set_conv2d_provider("own:direct");
    run(k, MathMode::fast);
    set_conv2d_provider("own");
  }
}

}  // namespace binade::kernels
