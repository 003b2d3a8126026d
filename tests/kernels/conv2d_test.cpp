// conv2d in its three directions against a naive double-precision loop: exact on integers, within
// the rounding bound on random data; strides, padding, dilation, groups, layouts, dtypes,
// instruction sets and thread counts; every variant of a device.
#include <binade/kernels/conv2d.h>
#include <binade/kernels/conv2d_provider.h>
#include <binade/kernels/math_mode.h>
#include <tests/kernels/strided_array.h>

#include <array>
#include <cmath>

namespace binade::kernels {
namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
const std::vector<int> kChannelsLast = {0, 2, 3, 1}, kPlain = {0, 1, 2, 3}, kOdd = {3, 1, 0, 2};

struct Case {
  int64_t n, c, h, w, o, r, s;
  Conv2dGeometry geometry = {};
  DType dtype = DType::f32;
  bool integers = true, bias = false, relu = false;
  std::vector<int> x_order = kChannelsLast, w_order = kChannelsLast, y_order = kChannelsLast;
  int64_t gap = 0;
};

int64_t output_size(int64_t size, int64_t kernel, const Conv2dGeometry& g, int axis) {
  return (size + 2 * g.padding[axis] - g.dilation[axis] * (kernel - 1) - 1) / g.stride[axis] + 1;
}

using Index = std::array<int64_t, 4>;

// Sums and sums of magnitudes, both dense and row-major.
struct Reference {
  explicit Reference(const Dims& dims)
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
    sum[index(at)] += value;
    magnitude[index(at)] += std::fabs(value);
  }
  Dims sizes;
  std::vector<double> sum, magnitude;
};

// Calls f(image, o, c, h, w, p, q, r, s, c within group) for every multiplication.
template <class F>
void each_product(const Case& k, F&& f) {
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

void compare(const Case& k, const StridedArray& got, const Reference& want, double length) {
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

void run(const Case& k) {
  const MathModeGuard precise(MathMode::precise);
  const Conv2dGeometry& g = k.geometry;
  SCOPED_TRACE(text(k.dtype, " n", k.n, " c", k.c, " ", k.h, "x", k.w, " o", k.o, " kernel ", k.r,
                    "x", k.s, " stride ", g.stride[0], " padding ", g.padding[0], " dilation ",
                    g.dilation[0], " groups ", g.groups, " order ", k.x_order[1], k.w_order[1],
                    k.y_order[1]));
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
                  .bias = k.bias ? bias_view : no_view,
                  .geometry = g,
                  .activation = k.relu ? Activation::relu : Activation::none});
  conv2d_backward_data({.dy = dy.view(),
                        .w = w.view(),
                        .dx = dx.view(),
                        .geometry = g,
                        .bias = k.bias ? dx_bias_view : no_view});
  conv2d_backward_weight({.x = x.view(), .dy = dy.view(), .dw = dw.view(), .geometry = g});

  Reference y_want(y.sizes()), dx_want(x.sizes()), dw_want(w.sizes());
  each_product(k, [&](const auto& at_x, const auto& at_w, const auto& at_y) {
    y_want.add(at_y, x.get(at_x) * w.get(at_w));
    dx_want.add(at_x, dy.get(at_y) * w.get(at_w));
    dw_want.add(at_w, dy.get(at_y) * x.get(at_x));
  });
  if (k.bias) {
    y.each([&](const std::vector<int64_t>& at) { y_want.add(at, bias.get({at[1]})); });
    dx.each([&](const std::vector<int64_t>& at) { dx_want.add(at, dx_bias.get({at[1]})); });
  }
  const auto length = [](int64_t a, int64_t b, int64_t c) {
    return static_cast<double>(a * b * c);
  };
  compare(k, y, y_want, length(k.c, k.r, k.s));
  Case linear = k;
  linear.relu = false;
  compare(linear, dx, dx_want, length(k.o, k.r, k.s));
  compare(linear, dw, dw_want, length(k.n, p, q));
}

Conv2dGeometry geometry(int64_t stride, int64_t padding, int64_t dilation = 1, int64_t groups = 1) {
  return {{stride, stride}, {padding, padding}, {dilation, dilation}, groups};
}

bool on_device() { return !test_device().is_cpu(); }

// Large sizes are for the threads of a CPU; kernels executed by the host take smaller ones.
int64_t scaled(int64_t cpu, int64_t device) { return on_device() ? device : cpu; }

TEST(Conv2d, ExactOnIntegersAtManyShapes) {
  run({1, 1, 1, 1, 1, 1, 1});
  run({scaled(2, 1), 1, scaled(28, 11), scaled(28, 11), 32, 3, 3, geometry(1, 1)});
  run({scaled(2, 1), 3, scaled(17, 9), scaled(19, 8), 17, 3, 3, geometry(1, 1)});
  run({scaled(3, 1), 17, 9, 7, 33, 3, 3, geometry(1, 1)});
  run({1, 129, 5, 5, 17, 1, 1});
  run({1, scaled(17, 5), 5, 5, 129, 3, 3, geometry(1, 1)});
  run({scaled(20, 6), 5, 4, 4, 7, 3, 3, geometry(1, 1)});
  run({scaled(2, 1), 8, scaled(12, 7), scaled(15, 6), 10, 5, 3, {{1, 1}, {2, 1}}});
  run({scaled(2, 1), 4, 6, 6, 4, 7, 7, geometry(1, 3)});
  run({1, 2, 3, 3, 2, 2, 2, geometry(1, 5)});
}

TEST(Conv2d, StrideDilationAndGroups) {
  run({scaled(2, 1), 3, scaled(32, 13), scaled(32, 13), 20, 7, 7, geometry(2, 3)});
  run({2, 16, 15, 14, 18, 3, 3, geometry(2, 1)});
  run({2, 16, 15, 14, 18, 1, 1, geometry(2, 0)});
  run({2, 6, 17, 16, 5, 3, 3, geometry(3, 0)});
  run({2, 6, 17, 16, 5, 2, 2, geometry(5, 4), DType::f32, true, true});
  run({2, 6, 13, 12, 5, 3, 3, geometry(1, 2, 2)});
  run({2, 6, 13, 12, 5, 3, 2, geometry(2, 3, 2)});
  run({2, 6, 13, 12, 5, 3, 2, geometry(2, 3, 3)});
  run({2, 6, 13, 12, 9, 3, 3, geometry(1, 1, 1, 3)});
  run({2, 8, 9, 9, 8, 3, 3, geometry(2, 1, 1, 8)});
  run({1, 4, 9, 11, 6, 3, 2, {{2, 1}, {0, 2}, {1, 3}, 2}});
}

TEST(Conv2d, EveryDTypeAndLayout) {
  for (const DType dtype : kDTypes) {
    for (const auto& x : {kChannelsLast, kPlain, kOdd}) {
      for (const auto& w : {kChannelsLast, kPlain, kOdd}) {
        for (const auto& y : {kChannelsLast, kPlain, kOdd}) {
          if (on_device() && dtype != DType::f16 && (x != w || w != y)) {
            continue;  // a layout is packed alike in every dtype there
          }
          run({2, 5, 6, 7, 19, 3, 3, geometry(1, 1), dtype, false, true, true, x, w, y, 3});
          run({2, 4, 6, 7, 6, 3, 2, geometry(2, 0, 1, 2), dtype, true, true, false, x, w, y});
        }
      }
    }
  }
}

TEST(Conv2d, RandomDataWithinTheRoundingBound) {
  for (const DType dtype : kDTypes) {
    run({scaled(3, 1), 40, 11, 10, 34, 3, 3, geometry(1, 1), dtype, false, true, true});
    run({scaled(9, 3), 12, 7, 7, 40, 3, 3, geometry(2, 1), dtype, false, true});
    run({scaled(17, 5), 6, 4, 4, 35, 3, 3, geometry(1, 1), dtype, false, true, true});
    run({scaled(2, 1), 3, scaled(40, 12), scaled(40, 12), 24, 5, 5, geometry(1, 0), dtype, false});
  }
}

TEST(Conv2d, EmptyImagesAndChannels) {
  StridedArray x(DType::f32, {0, 3, 4, 4}), w(DType::f32, {2, 3, 3, 3}),
      y(DType::f32, {0, 2, 2, 2});
  w.randomize(1, true);
  conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view()});
  conv2d_backward_data({.dy = y.view(), .w = w.view(), .dx = x.view()});
  conv2d_backward_weight({.x = x.view(), .dy = y.view(), .dw = w.view()});
  w.each([&](const std::vector<int64_t>& at) { ASSERT_EQ(w.get(at), 0); });
  run({2, 0, 4, 4, 3, 3, 3, geometry(1, 1), DType::f32, true, true});
  run({2, 3, 4, 4, 0, 3, 3, geometry(1, 1), DType::f32, true, true});
}

TEST(Conv2d, EveryVariantOfTheDevice) {
  if (!on_device()) {
    GTEST_SKIP() << "of the CPU, winograd_test.cpp has the other one";
  }
  for (const char* provider :
       {"own:direct", "own:simt_64", "own:simt_128", "own:tensor_64", "own:tensor_128"}) {
    set_conv2d_provider(provider);
    SCOPED_TRACE(provider);
    for (const DType dtype : kDTypes) {
      if (std::strstr(provider, "tensor") && !is_half(dtype)) {
        continue;
      }
      run({1, 3, 13, 11, 9, 7, 7, geometry(2, 3), dtype, true, true});  // few channels
      run({2, 1, 7, 6, 5, 3, 3, geometry(1, 1), dtype, true, true, true});
      run({2, 8, 6, 5, 16, 3, 3, geometry(1, 1), dtype, true, true});  // 16-byte chunks
      run({2, 16, 7, 5, 8, 3, 3, geometry(2, 1), dtype});
      run({1, 32, 5, 5, 16, 3, 3, geometry(2, 1, 1, 2), dtype, true, true, true});
      run({1, 8, 9, 8, 8, 3, 2, geometry(2, 3, 2), dtype});
      run({1, 2, 3, 3, 2, 2, 2, geometry(5, 5), dtype, true, true});  // phases without taps
      run({1, 24, 5, 7, 40, 1, 1, {}, dtype});
      run({2, 8, 17, 16, 8, 1, 2, geometry(1, 1), dtype});  // pixels of dw in several splits
      run({3, 9, 9, 7, 130, 1, 1, {}, dtype, true, true});  // beyond a tile of 128
    }
  }
  set_conv2d_provider("own");
}

// Pixels with gaps between them and channels off the 16 bytes are read and written where they are.
TEST(Conv2d, PixelsWithGaps) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Case gaps{2, 8, 5, 6, 16, 3, 3, geometry(1, 1), dtype, true, true};
    for (const int64_t gap : {8, 3}) {
      gaps.gap = gap;
      run(gaps);
    }
    StridedArray x(dtype, {2, 9, 5, 6}, kChannelsLast), w(dtype, {16, 8, 3, 3}, kChannelsLast);
    StridedArray aligned(dtype, {2, 8, 5, 6}, kChannelsLast);
    StridedArray y(dtype, {2, 16, 3, 4}, kChannelsLast), y_aligned = y;
    x.randomize(1, false);
    w.randomize(2, false);
    aligned.each([&](const std::vector<int64_t>& at) {
      aligned.set(at, x.get({at[0], at[1] + 1, at[2], at[3]}));
    });
    View shifted = x.view();
    shifted.data += size_of(dtype);
    shifted.sizes[1] = 8;
    shifted.numel = aligned.view().numel;
    shifted.contiguous = false;
    conv2d_forward({.x = shifted, .w = w.view(), .y = y.view()});
    conv2d_forward({.x = aligned.view(), .w = w.view(), .y = y_aligned.view()});
    EXPECT_EQ(y.bytes(), y_aligned.bytes());
  }
}

// Also where the pixels of the weight gradient are split over blocks.
TEST(Conv2d, RepeatsBitForBit) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    std::vector<std::vector<std::byte>> first;
    for (int i = 0; i < 2; ++i) {
      StridedArray x(dtype, {2, 8, 20, 19}, kChannelsLast), dx = x;
      StridedArray w(dtype, {12, 8, 3, 3}, kChannelsLast), dw = w;
      StridedArray y(dtype, {2, 12, 20, 19}, kChannelsLast), dy = y;
      x.randomize(1, false);
      w.randomize(2, false);
      dy.randomize(3, false);
      const Conv2dGeometry g = geometry(1, 1);
      conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view(), .geometry = g});
      conv2d_backward_data({.dy = dy.view(), .w = w.view(), .dx = dx.view(), .geometry = g});
      conv2d_backward_weight({.x = x.view(), .dy = dy.view(), .dw = dw.view(), .geometry = g});
      const std::vector<std::vector<std::byte>> now = {y.bytes(), dx.bytes(), dw.bytes()};
      first = first.empty() ? now : first;
      EXPECT_EQ(first, now);
    }
  }
}

TEST(Conv2d, ProviderNames) {
  EXPECT_EQ(conv2d_provider(), "own");
  const auto message = [](const char* name) {
    try {
      set_conv2d_provider(name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message("library").find("this build has no cuDNN"), std::string::npos);
  EXPECT_NE(message("own:fft").find("expected one of own, own:direct"), std::string::npos);
  EXPECT_EQ(conv2d_provider(), "own");
}

TEST(Conv2d, SameBitsAtAnyThreadCount) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<std::vector<std::byte>> first;
    for (const int count : {1, 2, 4}) {
      set_threads(count);
      StridedArray x(dtype, {9, 24, 14, 14}, kChannelsLast), dx = x;
      StridedArray w(dtype, {70, 24, 3, 3}, kChannelsLast), dw = w;
      StridedArray y(dtype, {9, 70, 7, 7}, kChannelsLast), dy = y;
      x.randomize(1, false);
      w.randomize(2, false);
      dy.randomize(3, false);
      const Conv2dGeometry g = geometry(2, 1);
      conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view(), .geometry = g});
      conv2d_backward_data({.dy = dy.view(), .w = w.view(), .dx = dx.view(), .geometry = g});
      conv2d_backward_weight({.x = x.view(), .dy = dy.view(), .dw = dw.view(), .geometry = g});
      const std::vector<std::vector<std::byte>> now = {y.bytes(), dx.bytes(), dw.bytes()};
      first = first.empty() ? now : first;
      EXPECT_EQ(first, now) << count << " threads";
    }
    set_threads(0);
  }
}

TEST(Conv2d, ErrorsNameWhatIsWrong) {
  StridedArray x(DType::f32, {1, 4, 5, 5}), w(DType::f32, {2, 4, 3, 3}),
      y(DType::f32, {1, 2, 3, 3});
  const auto message = [&](const View& xv, const View& wv, const View& yv,
                           const Conv2dGeometry& g) {
    try {
      conv2d_forward({.x = xv, .w = wv, .y = yv, .geometry = g});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(x.view(), w.view(), y.view(), {}), "");
  EXPECT_NE(message(x.view(), w.view(), y.view(), geometry(1, 1)).find("expected [1, 2, 5, 5]"),
            std::string::npos);
  EXPECT_NE(message(x.view(), w.view(), y.view(), geometry(0, 0)).find("stride 0"),
            std::string::npos);
  EXPECT_NE(message(x.view(), w.view(), y.view(), geometry(1, -1)).find("padding -1"),
            std::string::npos);
  EXPECT_NE(message(x.view(), w.view(), y.view(), geometry(1, 0, 4)).find("smaller than"),
            std::string::npos);
  EXPECT_NE(message(x.view(), w.view(), y.view(), geometry(1, 0, 1, 3)).find("3 groups"),
            std::string::npos);
  StridedArray wide(DType::f64, {2, 4, 3, 3}), bias(DType::f32, {3});
  EXPECT_NE(message(x.view(), wide.view(), y.view(), {}).find("f64"), std::string::npos);
  EXPECT_THROW(conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view(), .bias = bias.view()}),
               Error);
  EXPECT_THROW(
      conv2d_backward_data({.dy = y.view(), .w = w.view(), .dx = x.view(), .bias = bias.view()}),
      Error);
}

TEST(Conv2d, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels
