// Compares grouped convolution on the CPU (kernels/conv/grouped_internal.h) with a naive loop in
// double in its three directions: every number of channels per group, also if inputs and outputs
// differ, every geometry, layout and dtype; its epilogue; NaN; bits at any thread count.
#include <binade/kernels/conv/grouped_internal.h>
#include <tests/kernels/conv/conv2d_case.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::grouped_test {
namespace {

class GroupedConvolution : public testing::Test {
 protected:
  void SetUp() override {
    if (on_device()) {
      GTEST_SKIP() << "loops of the CPU; conv2d_test.cpp has groups on devices";
    }
  }
};

// Makes a case with `groups` groups of a input channels and b output channels.
ConvCase grouped(int64_t groups, int64_t a, int64_t b, Conv2dGeometry g = geometry(1, 1)) {
  g.groups = groups;
  return {2, groups * a, 9, 11, groups * b, 3, 3, g, DType::f32, true, true};
}

TEST_F(GroupedConvolution, EveryNumberOfChannelsInAGroup) {
  for (const int64_t channels : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 20, 32}) {
    for (const int64_t groups : {2, 3, 5, 17}) {
      run(grouped(groups, channels, channels));
    }
  }
  for (const int64_t channels : {15, 16, 17, 31, 32, 33, 48, 64, 65, 100}) {  // depthwise
    run(grouped(channels, 1, 1));
  }
}

TEST_F(GroupedConvolution, GroupsOfDifferentInputsAndOutputs) {
  for (const int64_t groups : {2, 5, 16, 19}) {
    for (const auto& [a, b] : {std::pair<int64_t, int64_t>{1, 2},
                               {1, 3},
                               {1, 4},
                               {1, 15},
                               {1, 16},
                               {2, 1},
                               {3, 1},
                               {5, 1},
                               {2, 4},
                               {4, 2},
                               {6, 4},
                               {4, 6},
                               {2, 3},
                               {8, 12},
                               {3, 20},
                               {33, 1}}) {
      run(grouped(groups, a, b, geometry(2, 1)));
    }
  }
}

TEST_F(GroupedConvolution, EveryGeometry) {
  for (const int64_t channels : {1, 4}) {
    for (const int64_t kernel : {1, 2, 3, 4, 5, 7, 11}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t dilation : {1, 2}) {
          ConvCase k = grouped(5, channels, channels, geometry(stride, kernel / 2, dilation));
          k.h = 13, k.w = 25, k.r = k.s = kernel;
          if (dilation * (kernel - 1) < k.h + 2 * (kernel / 2)) {
            run(k);
          }
        }
      }
    }
    ConvCase k = grouped(7, channels, channels, {{2, 1}, {0, 3}, {1, 2}});
    k.r = 2, k.s = 5;
    run(k);
    run(grouped(7, channels, channels, geometry(5, 4)));  // pixels without taps
    k = grouped(7, channels, channels, geometry(1, 6));   // every window leaves the image
    k.h = k.w = 2, k.r = k.s = 11;
    run(k);
    k = grouped(9, channels, channels, {{1, 2}, {0, 3}, {1, 1}});  // a sequence
    k.h = k.r = 1, k.w = 700, k.s = 4, k.n = 1;
    run(k);
    k = grouped(40, channels, channels);  // blocks of rows, columns and channels
    k.n = 3, k.h = 41, k.w = 90;
    run(k);
    k = grouped(3, channels, channels);  // blocks of images
    k.n = 37, k.h = 4, k.w = 3;
    run(k);
  }
}

TEST_F(GroupedConvolution, EveryDTypeAndLayout) {
  for (const DType dtype : kDTypes) {
    for (const auto& [a, b] : {std::pair<int64_t, int64_t>{1, 1}, {4, 4}, {3, 3}, {1, 2}, {4, 2}}) {
      for (const auto& order : {kChannelsLast, kPlain, kOdd}) {
        for (const int64_t gap : {0, 3}) {
          ConvCase k = grouped(11, a, b, geometry(2, 1));
          k.dtype = dtype, k.gap = gap, k.relu = gap == 0, k.integers = gap == 0;
          k.x_order = order;
          run(k);
          k.x_order = kChannelsLast, k.y_order = order;
          run(k);
          k.w_order = order;
          run(k);
        }
      }
    }
  }
}

// The rule depends on the channels and the instruction set; it takes groups that would leave most
// of a vector empty if each group were a product.
TEST_F(GroupedConvolution, RunsWhereItsVectorsAreFuller) {
  const auto pays = [](int64_t groups, int64_t a, int64_t b) {
    return grouped_pays(grouped_lanes(DType::f32, groups, a, b));
  };
  EXPECT_FALSE(pays(1, 1, 1));
  EXPECT_TRUE(pays(2, 1, 1));
  EXPECT_TRUE(pays(32, 2, 2));
  EXPECT_TRUE(pays(512, 1, 2));
  EXPECT_FALSE(pays(8, 64, 64));
  EXPECT_FALSE(pays(8, 16, 32));
  EXPECT_EQ(pays(32, 8, 8), isa() >= Isa::avx512);
  EXPECT_EQ(pays(32, 4, 4), isa() >= Isa::avx2);
}

// A NaN reaches exactly the outputs whose windows contain it: no other groups, lanes or pixels.
TEST_F(GroupedConvolution, NaNStaysInItsGroup) {
  for (const int64_t channels : {1, 2, 3, 4, 7, 8}) {
    const int64_t groups = 9, at = 4 * channels + channels / 2;
    StridedArray x(DType::f32, {1, groups * channels, 7, 9}, kChannelsLast), y = x, dx = x;
    StridedArray w(DType::f32, {groups * channels, channels, 3, 3}, kChannelsLast), dw = w;
    x.randomize(1, false);
    w.randomize(2, false);
    x.set({0, at, 3, 5}, NAN);
    Conv2dGeometry g = geometry(1, 1);
    g.groups = groups;
    conv2d_forward({.x = x.view(),
                    .w = w.view(),
                    .y = y.view(),
                    .geometry = g,
                    .epilogue = {.activation = Activation::relu}});
    conv2d_backward_data({.dy = x.view(), .w = w.view(), .dx = dx.view(), .geometry = g});
    for (const StridedArray* result : {&y, &dx}) {
      result->each([&](const std::vector<int64_t>& i) {
        const bool reached =
            i[1] / channels == 4 && std::abs(i[2] - 3) <= 1 && std::abs(i[3] - 5) <= 1;
        ASSERT_EQ(std::isnan(result->get(i)), reached) << channels << " channel " << i[1];
      });
    }
    StridedArray dy(DType::f32, y.sizes(), kChannelsLast);
    dy.randomize(3, false);
    conv2d_backward_weight({.x = x.view(), .dy = dy.view(), .dw = dw.view(), .geometry = g});
    dw.each([&](const std::vector<int64_t>& i) {
      const bool reached = i[0] / channels == 4 && i[1] == channels / 2;
      ASSERT_EQ(std::isnan(dw.get(i)), reached) << channels << " channels, output " << i[0];
    });
  }
}

TEST_F(GroupedConvolution, SameBitsAtAnyThreadCount) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [a, b] : {std::pair<int64_t, int64_t>{1, 1}, {4, 4}, {1, 2}}) {
      for (const auto& [n, h, w] : {std::array<int64_t, 3>{1, 30, 31}, {9, 14, 14}, {1, 1, 3000}}) {
        expect_thread_invariant([&] {
          Conv2dGeometry g = geometry(1, 1);
          g.groups = 24;
          StridedArray x(dtype, {n, 24 * a, h, w}, kChannelsLast), dx = x;
          StridedArray weight(dtype, {24 * b, a, 3, 3}, kChannelsLast), dw = weight;
          StridedArray y(dtype, {n, 24 * b, h, w}, kChannelsLast), dy = y;
          x.randomize(1, false);
          weight.randomize(2, false);
          dy.randomize(3, false);
          conv2d_forward({.x = x.view(), .w = weight.view(), .y = y.view(), .geometry = g});
          conv2d_backward_data(
              {.dy = dy.view(), .w = weight.view(), .dx = dx.view(), .geometry = g});
          conv2d_backward_weight({.x = x.view(), .dy = dy.view(), .dw = dw.view(), .geometry = g});
          std::vector<std::byte> all = y.bytes();
          all.insert(all.end(), dx.bytes().begin(), dx.bytes().end());
          all.insert(all.end(), dw.bytes().begin(), dw.bytes().end());
          return all;
        });
      }
    }
  }
}

// A pixel at the edge of an image and one inside it, or in another tile, have the same bits if they
// read the same numbers.
TEST_F(GroupedConvolution, BitsDoNotDependOnTheTile) {
  for (const int64_t channels : {1, 2, 3, 4, 8}) {
    const int64_t all = 10 * channels;
    StridedArray w(DType::f32, {all, channels, 1, 3}, kChannelsLast);
    StridedArray x(DType::f32, {1, all, 1, 23}, kChannelsLast),
        y(DType::f32, {1, all, 1, 21}, kChannelsLast);
    w.randomize(1, false);
    x.randomize(2, false);
    x.each([&](const std::vector<int64_t>& i) { x.set(i, x.get({0, i[1], 0, i[3] % 3})); });
    conv2d_forward({.x = x.view(), .w = w.view(), .y = y.view(), .geometry = {.groups = 10}});
    y.each([&](const std::vector<int64_t>& i) {
      ASSERT_EQ(y.get(i), y.get({0, i[1], 0, i[3] % 3})) << channels << " channels, pixel " << i[3];
    });
  }
}

TEST_F(GroupedConvolution, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::grouped_test
