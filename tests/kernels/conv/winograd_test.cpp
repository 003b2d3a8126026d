// Compares Winograd's convolution on the CPU with the same call in f64, which never uses Winograd:
// three directions, odd sizes, paddings, layouts, thread counts, instruction sets. Also tests when
// it runs.
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/conv2d_provider.h>
#include <binade/kernels/conv/winograd_internal.h>
#include <tests/kernels/support/array_values.h>

#include <cmath>

namespace binade::kernels::winograd_test {
namespace {

const std::vector<int> kChannelsLast = {0, 2, 3, 1};

struct Case {
  int64_t n, c, h, w, o;
  int64_t padding[2] = {1, 1};
  bool bias = false, relu = false;
  std::vector<int> order = kChannelsLast;
  int64_t gap = 0;
};

struct Results {
  StridedArray y, dx, dw;
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    append(all, y);
    append(all, dx);
    append(all, dw);
    return all;
  }
};

// Runs a case. The values are rounded to `rounded`, so they are the same in every dtype.
Results run(const Case& k, DType dtype, const char* provider, DType rounded = DType::f32) {
  set_conv2d_provider(provider);
  const auto make = [&](const Dims& sizes, uint32_t seed) {
    StridedArray array(rounded, sizes, k.order, k.gap);
    array.randomize(seed, false);
    return dtype == rounded ? array : make_array(dtype, sizes, values_of(array), k.order, k.gap);
  };
  const auto make_vector = [&](int64_t size, uint32_t seed) {
    StridedArray array(dtype, {size});
    array.randomize(seed, true);
    return array;
  };
  const Conv2dGeometry geometry{.padding = {k.padding[0], k.padding[1]}};
  const Dims y_sizes{k.n, k.o, k.h + 2 * k.padding[0] - 2, k.w + 2 * k.padding[1] - 2};
  StridedArray x = make({k.n, k.c, k.h, k.w}, 1), w = make({k.o, k.c, 3, 3}, 2);
  StridedArray dy = make(y_sizes, 3), bias = make_vector(k.o, 4), dx_bias = make_vector(k.c, 5);
  const View bias_view = bias.view(), dx_bias_view = dx_bias.view();
  Results results{StridedArray(dtype, y_sizes, k.order, k.gap),
                  StridedArray(dtype, x.sizes(), k.order, k.gap),
                  StridedArray(dtype, w.sizes(), k.order, k.gap)};
  conv2d_forward({.x = x.view(),
                  .w = w.view(),
                  .y = results.y.view(),
                  .geometry = geometry,
                  .epilogue = {.bias = k.bias ? bias_view : kNoView,
                               .activation = k.relu ? Activation::relu : Activation::none}});
  conv2d_backward_data({.dy = dy.view(),
                        .w = w.view(),
                        .dx = results.dx.view(),
                        .geometry = geometry,
                        .bias = k.bias ? dx_bias_view : kNoView});
  conv2d_backward_weight(
      {.x = x.view(), .dy = dy.view(), .dw = results.dw.view(), .geometry = geometry});
  set_conv2d_provider("own");
  return results;
}

// Errors relative to the root mean square of the expected values.
struct Errors {
  double rms = 0, max = 0;
};

Errors errors(const StridedArray& got, const StridedArray& want) {
  double squares = 0, expected = 0, largest = 0;
  got.each([&](const std::vector<int64_t>& at) {
    const double error = std::fabs(got.get(at) - want.get(at));
    squares += error * error;
    expected += want.get(at) * want.get(at);
    largest = std::isnan(error) ? error : std::max(largest, error);
  });
  const double count = std::max(1.0, double(element_count(got.sizes())));
  const double size = std::sqrt(expected / count);
  return {std::sqrt(squares / count) / size, largest / size};
}

void expect_within(const Results& got, const Results& want, const Errors& bound) {
  const StridedArray* const arrays[3][2] = {
      {&got.y, &want.y}, {&got.dx, &want.dx}, {&got.dw, &want.dw}};
  const char* const names[] = {"y", "dx", "dw"};
  for (int i = 0; i < 3; ++i) {
    const Errors error = errors(*arrays[i][0], *arrays[i][1]);
    EXPECT_LE(error.rms, bound.rms) << names[i];
    EXPECT_LE(error.max, bound.max) << names[i];
    EXPECT_TRUE(arrays[i][0]->gaps_untouched()) << names[i];
  }
}

void check(const Case& k, const Errors& bound = {2e-6, 3e-5}) {
  SCOPED_TRACE(text("n", k.n, " c", k.c, " ", k.h, "x", k.w, " o", k.o, " padding ", k.padding[0],
                    ",", k.padding[1], " order ", k.order[1], " gap ", k.gap));
  expect_within(run(k, DType::f32, "own:winograd"), run(k, DType::f64, "own"), bound);
}

class Winograd : public testing::Test {
 protected:
  void SetUp() override {
    if (!test_device().is_cpu()) {
      GTEST_SKIP() << "Winograd is of the CPU";
    }
  }
};

TEST_F(Winograd, OddSizes) {
  check({1, 1, 1, 1, 1});
  check({1, 1, 3, 3, 1, {0, 0}});
  check({2, 3, 5, 4, 5, {1, 1}, true, true});
  check({1, 17, 9, 7, 33, {1, 0}, true});
  check({3, 33, 6, 11, 17, {0, 1}, false, true});
  check({2, 16, 4, 4, 32});
  check({1, 31, 13, 5, 47, {2, 2}, true, true});
}

TEST_F(Winograd, PaddingBeyondTheKernel) {
  check({1, 4, 5, 6, 7, {3, 2}});
  check({1, 5, 3, 2, 4, {6, 7}, true});
}

TEST_F(Winograd, AnyLayout) {
  for (const ArrayLayout& layout : image_layouts()) {
    check({2, 6, 6, 5, 9, {1, 1}, true, true, layout.order, layout.gap});
  }
}

// Cases for the paths of the drivers: blocks of tiles or panels of the weight; partial sums, or one
// shared set of tiles in one chunk or several.
const Case kBlocks{9, 20, 15, 14, 36}, kPanels{2, 72, 8, 7, 100}, kFewPanels{3, 132, 8, 8, 70},
    kChunks{7, 16, 24, 23, 1400};

TEST_F(Winograd, EveryPath) {
  check(kBlocks);
  check(kPanels);
  check({3, 132, 8, 8, 70});
}

// The bounds are two to three times the error of the direct sum. With the points 1 and 2 instead of
// 5/8 and 3/2 the first bound would fail.
TEST_F(Winograd, ErrorAgainstF64) {
  check({4, 64, 16, 16, 64}, {9e-7, 1.2e-5});
  check({2, 512, 4, 4, 512}, {2.4e-6, 1.6e-5});
}

// f16 and bf16 round once: to within half a unit of the exact result, plus the error of f32.
TEST_F(Winograd, RoundsHalfOnce) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Case& k :
         {Case{1, 17, 9, 7, 33, {1, 0}, true, true}, kBlocks, kPanels, kFewPanels}) {
      SCOPED_TRACE(text(dtype, " n", k.n, " c", k.c));
      const Results got = run(k, dtype, "own:winograd", dtype),
                    want = run(k, DType::f64, "own", dtype);
      const StridedArray* const arrays[3][2] = {
          {&got.y, &want.y}, {&got.dx, &want.dx}, {&got.dw, &want.dw}};
      for (const auto& pair : arrays) {
        const StridedArray &rounded = *pair[0], &exact = *pair[1];
        double squares = 0;
        exact.each([&](const std::vector<int64_t>& at) { squares += std::pow(exact.get(at), 2); });
        const double slack = 3e-5 * std::sqrt(squares / double(element_count(exact.sizes())));
        int failures = 0;
        exact.each([&](const std::vector<int64_t>& at) {
          const double bound = 1.001 * unit_roundoff(dtype) * std::fabs(exact.get(at)) + slack;
          failures += !(std::fabs(rounded.get(at) - exact.get(at)) <= bound);
        });
        EXPECT_EQ(failures, 0);
        EXPECT_TRUE(rounded.gaps_untouched());
      }
    }
  }
}

TEST_F(Winograd, SameBitsAtAnyThreadCount) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Case& k : {kBlocks, kPanels, kFewPanels}) {
      expect_thread_invariant([&] { return run(k, dtype, "own:winograd", dtype).bytes(); });
    }
  }
}

// Covers tiles in several chunks, which needs a large problem; compares with the direct sum in f32.
TEST_F(Winograd, ManyTilesOfAWideLayer) {
  const Case& k = kChunks;
  set_threads(1);
  const Results one = run(k, DType::f32, "own:winograd");
  set_threads(0);
  EXPECT_EQ(one.bytes(), run(k, DType::f32, "own:winograd").bytes());
  expect_within(one, run(k, DType::f32, "own:direct"), {4e-6, 6e-5});
}

// An exception: AMX multiplies bf16 in pairs of channels or of images.
TEST_F(Winograd, HalfRunsWhereF32Does) {
  Conv2dSizes size{.n = 8,
                   .c = 16,
                   .h = 8,
                   .w = 8,
                   .o = 32,
                   .r = 3,
                   .s = 3,
                   .p = 8,
                   .q = 8,
                   .groups = 1,
                   .group_c = 16,
                   .group_o = 32};
  const Conv2dGeometry geometry{.padding = {1, 1}};
  for (const MathMode mode : {MathMode::fast, MathMode::precise}) {
    const MathModeGuard guard(mode);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const bool fast = mode == MathMode::fast && isa() != Isa::baseline;
      const bool sum = dtype == DType::bf16 && isa() == Isa::amx_bf16;
      size.c = size.group_c = 16;
      EXPECT_EQ(winograd_runs(dtype, size, geometry, Conv2dPass::forward), fast && !sum);
      EXPECT_EQ(winograd_runs(dtype, size, geometry, Conv2dPass::backward_weight), fast && !sum);
      size.c = size.group_c = 17;
      EXPECT_EQ(winograd_runs(dtype, size, geometry, Conv2dPass::forward), fast);
    }
    EXPECT_FALSE(winograd_runs(DType::f64, size, geometry, Conv2dPass::forward));
  }
}

// Mode fast uses Winograd where it is faster, precise never; a forced algorithm always runs.
TEST_F(Winograd, RunsWhereModeAndShapeAllow) {
  const Case large{8, 16, 8, 8, 32};
  const std::vector<std::byte> direct = run(large, DType::f32, "own:direct").y.bytes(),
                               winograd = run(large, DType::f32, "own:winograd").y.bytes();
  EXPECT_NE(direct, winograd);
  {
    const MathModeGuard guard(MathMode::precise);
    EXPECT_EQ(run(large, DType::f32, "own").y.bytes(), direct);
    EXPECT_EQ(run(large, DType::f32, "own:winograd").y.bytes(), winograd);
  }
  const MathModeGuard guard(MathMode::fast);
  EXPECT_EQ(run(large, DType::f32, "own").y.bytes(), isa() == Isa::baseline ? direct : winograd);
  const Case deep{8, 256, 3, 3, 256};  // few pixels, but many channels
  EXPECT_EQ(run(deep, DType::f32, "own").y.bytes() == run(deep, DType::f32, "own:direct").y.bytes(),
            isa() == Isa::baseline);
  // Few tiles, few channels, or tiles of which the border cuts off most.
  for (const Case& small : {Case{1, 16, 8, 8, 32}, Case{8, 15, 8, 8, 32}, Case{8, 16, 8, 8, 31},
                            Case{8, 16, 6, 6, 32}, Case{16, 256, 2, 2, 256}}) {
    EXPECT_EQ(run(small, DType::f32, "own").y.bytes(),
              run(small, DType::f32, "own:direct").y.bytes());
  }
}

TEST_F(Winograd, OtherConvolutionsAreSums) {
  StridedArray x(DType::f32, {2, 16, 17, 17}, kChannelsLast), w(DType::f32, {32, 16, 3, 3});
  x.randomize(1, true);
  w.randomize(2, true);
  for (const Conv2dGeometry& geometry : {Conv2dGeometry{.stride = {2, 1}, .padding = {1, 1}},
                                         Conv2dGeometry{.padding = {1, 1}, .dilation = {1, 2}}}) {
    const Dims sizes{2, 32, geometry.stride[0] == 2 ? 9 : 17, geometry.dilation[1] == 2 ? 15 : 17};
    StridedArray winograd(DType::f32, sizes, kChannelsLast), direct = winograd;
    set_conv2d_provider("own:winograd");
    conv2d_forward({.x = x.view(), .w = w.view(), .y = winograd.view(), .geometry = geometry});
    set_conv2d_provider("own:direct");
    conv2d_forward({.x = x.view(), .w = w.view(), .y = direct.view(), .geometry = geometry});
    set_conv2d_provider("own");
    EXPECT_EQ(winograd.bytes(), direct.bytes());
  }
}

TEST_F(Winograd, KeepsNaNThroughRelu) {
  StridedArray x(DType::f32, {1, 2, 8, 8}, kChannelsLast), w(DType::f32, {3, 2, 3, 3});
  StridedArray y(DType::f32, {1, 3, 8, 8}, kChannelsLast);
  x.randomize(1, false);
  w.randomize(2, false);
  x.set({0, 1, 1, 1}, std::nan(""));
  set_conv2d_provider("own:winograd");
  conv2d_forward({.x = x.view(),
                  .w = w.view(),
                  .y = y.view(),
                  .geometry = {.padding = {1, 1}},
                  .epilogue = {.activation = Activation::relu}});
  set_conv2d_provider("own");
  for (int64_t o = 0; o < 3; ++o) {
    EXPECT_TRUE(std::isnan(y.get({0, o, 1, 1})));
    EXPECT_FALSE(std::isnan(y.get({0, o, 7, 7})));  // another tile
  }
}

TEST_F(Winograd, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::winograd_test
