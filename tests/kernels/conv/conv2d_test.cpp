// Compares conv2d in its three directions with a naive double-precision loop, exactly on integers
// and within the rounding bound on random data: strides, padding, dilation, groups, layouts,
// dtypes, instruction sets and thread counts, and every variant of a device.
#include <tests/kernels/conv/conv2d_case.h>

namespace binade::kernels::conv2d_test {
namespace {

// Large sizes exercise the threads of a CPU; kernels executed on the host get smaller ones.
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
  run({1, 8, 27, 26, 8, 1, 1, geometry(1, 0, 1, 8)});  // pixels of dw in many splits
}

TEST(Conv2d, EveryDTypeAndLayout) {
  for (const DType dtype : kDTypes) {
    for (const auto& x : {kChannelsLast, kPlain, kOdd}) {
      for (const auto& w : {kChannelsLast, kPlain, kOdd}) {
        for (const auto& y : {kChannelsLast, kPlain, kOdd}) {
          if (on_device() && dtype != DType::f16 && (x != w || w != y)) {
            continue;  // packing a layout works alike in every dtype there
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

// Gradients of images that are computed as a product and a sum: a small dy, few channels, taps of
// dx without a pixel of dy, and rows and columns of dx that no tap reaches.
TEST(Conv2d, ScatteredProducts) {
  for (const DType dtype : kDTypes) {
    for (const auto& [x, w] :
         {std::pair{kChannelsLast, kChannelsLast}, {kPlain, kPlain}, {kOdd, kPlain}}) {
      const auto scattered = [&](ConvCase k) {
        k.dtype = dtype, k.x_order = k.y_order = x, k.w_order = w, k.bias = true;
        for (const int64_t gap : {0, 3}) {
          k.gap = gap, k.integers = gap == 0;
          run(k);
        }
      };
      scattered({5, 19, 4, 4, 23, 4, 4});
      scattered({2, 3, 12, 10, 18, 4, 4, geometry(2, 1)});
      scattered({2, 1, 7, 9, 20, 3, 3, geometry(1, 1)});
      scattered({1, 2, 12, 9, 9, 3, 2, geometry(3, 0)});
      scattered({1, 3, 13, 11, 9, 3, 3, geometry(2, 2, 2)});
      scattered({1, 1, 9, 12, 6, 2, 2, {{4, 3}, {1, 0}, {3, 1}}});
      scattered({1, 1, 13, 11, 64, 3, 3, geometry(2, 1)});  // pays with vectors of 4 too
    }
  }
  run({scaled(70, 2), 3, scaled(33, 9), scaled(30, 8), 16, 5, 5,
       geometry(2, 2)});  // several blocks
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

// Pixels with gaps between them and channels not aligned to 16 bytes are accessed in place.
TEST(Conv2d, PixelsWithGaps) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    ConvCase gaps{2, 8, 5, 6, 16, 3, 3, geometry(1, 1), dtype, true, true};
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

// Also tests that the split of the weight gradient's pixels over blocks repeats.
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
  set_conv2d_provider("auto");
  EXPECT_EQ(conv2d_provider(), "auto");
  set_conv2d_provider("own");
  const auto message = [](const char* name) {
    try {
      set_conv2d_provider(name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("library"), "");
  EXPECT_NE(message("own:fft").find("expected one of own, own:direct"), std::string::npos);
  EXPECT_EQ(conv2d_provider(), "library");  // the last provider that was accepted
  set_conv2d_provider("own");
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
  EXPECT_THROW(
      conv2d_forward(
          {.x = x.view(), .w = w.view(), .y = y.view(), .epilogue = {.bias = bias.view()}}),
      Error);
  EXPECT_THROW(
      conv2d_backward_data({.dy = y.view(), .w = w.view(), .dx = x.view(), .bias = bias.view()}),
      Error);
}

TEST(Conv2d, NarrowerIsasPassTheSameTests) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::conv2d_test
