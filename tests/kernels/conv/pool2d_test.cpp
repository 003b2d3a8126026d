// Compares pooling with naive f64 references, which scatter where the kernels gather.
#include <tests/kernels/conv/pool2d_case.h>

namespace binade::kernels::pool2d_test {
namespace {

void check_adaptive(const Pool2dCase& c, int64_t rows, int64_t cols) {
  const Dims out{c.sizes[0], c.sizes[1], rows, cols};
  StridedArray x = draw(c, c.sizes, 1), dy = draw(c, out, 2);
  StridedArray y(c.dtype, out, c.layout.order, c.layout.gap);
  StridedArray dx(c.dtype, c.sizes, c.layout.order, c.layout.gap);
  adaptive_avg_pool2d_forward({x.view(), y.view()});
  adaptive_avg_pool2d_backward({dy.view(), dx.view()});
  const Values input = values_of(x), upstream = values_of(dy);
  Values expected(upstream.size()), gradient(input.size());
  const auto begin = [](int64_t o, int64_t in, int64_t n) { return o * in / n; };
  const auto end = [](int64_t o, int64_t in, int64_t n) { return ((o + 1) * in + n - 1) / n; };
  const int64_t height = c.sizes[2], width = c.sizes[3];
  for (size_t o = 0; o < expected.size(); ++o) {
    const int64_t index = static_cast<int64_t>(o), p = index / cols % rows, q = index % cols;
    const int64_t top = begin(p, height, rows), bottom = end(p, height, rows);
    const int64_t left = begin(q, width, cols), right = end(q, width, cols);
    const double count = static_cast<double>((bottom - top) * (right - left));
    for (int64_t h = top; h < bottom; ++h) {
      for (int64_t w = left; w < right; ++w) {
        const size_t i = at(c.sizes, index / (rows * cols), h, w);
        expected[o] += input[i] / count;
        gradient[i] += upstream[o] / count;
      }
    }
  }
  expect_close(y, c.dtype, expected, 8, c.name() + " adaptive");
  expect_close(dx, c.dtype, gradient, 8, c.name() + " adaptive backward");
}

const Pool2dGeometry kGeometries[] = {
    {.kernel = {2, 2}, .stride = {2, 2}},
    {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
    {.kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 0}, .ceil_mode = true},
    {.kernel = {2, 3},
     .stride = {3, 2},
     .padding = {1, 1},
     .ceil_mode = true,
     .count_include_pad = false},
    {.kernel = {1, 5}, .stride = {1, 1}, .padding = {0, 2}, .count_include_pad = false},
};

TEST(Pool2d, MatchesReferenceForAllLayoutsAndDTypes) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : image_layouts()) {
      for (const Pool2dGeometry& geometry : kGeometries) {
        for (int64_t channels : {5, 16, 35}) {
          if (channels == 35 && !test_device().is_cpu()) {
            continue;  // whole vectors and an odd number are enough there
          }
          const Pool2dCase c{dtype, {2, channels, 7, 8}, geometry, layout};
          check_max(c);
          check_average(c);
        }
      }
    }
  }
}

TEST(Pool2d, DilatedMax) {
  for (DType dtype : floating_dtypes()) {
    for (bool ceil_mode : {false, true}) {
      const Pool2dGeometry g{.kernel = {3, 2},
                             .stride = {1, 2},
                             .padding = {1, 1},
                             .dilation = {2, 3},
                             .ceil_mode = ceil_mode};
      check_max({dtype, {2, 6, 9, 7}, g, {"row-major", {}, 0}});
      check_max({dtype, {2, 17, 9, 7}, g, {"channels-last", {0, 2, 3, 1}, 0}});
      check_max({dtype, {2, 8, 9, 7}, g, {"channels-last", {0, 2, 3, 1}, 0}});
    }
    for (const auto& [rows, cols] : {std::pair{1, 3}, {3, 1}}) {  // windows of one dimension only
      const Pool2dGeometry g{
          .kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {rows, cols}};
      check_max({dtype, {1, 3, 6, 7}, g, {"row-major", {}, 0}});
    }
  }
}

TEST(Pool2d, AdaptiveAverage) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : image_layouts()) {
      const Pool2dCase c{dtype, {2, 19, 7, 5}, {}, layout};
      check_adaptive(c, 1, 1);
      check_adaptive(c, 3, 2);
      check_adaptive(c, 7, 5);
      check_adaptive(c, 9, 13);
    }
    check_adaptive({dtype, {2, 24, 7, 7}, {}, {"channels-last", {0, 2, 3, 1}, 0}}, 1, 1);
    check_adaptive({dtype, {1, 8, 7, 5}, {}, {"channels-last", {0, 2, 3, 1}, 0}}, 3, 8);
  }
}

// Channels-last memory that does not allow vectors: an odd first address, and pixels wider than
// their channels.
TEST(Pool2d, MisalignedChannelsLast) {
  const Pool2dGeometry g{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  for (DType dtype : floating_dtypes()) {
    const Dims in{1, 8, 5, 5}, out{1, 8, 3, 3};
    for (int64_t pixel : {8, 9}) {
      StridedArray x =
          make_array(dtype, {25 * pixel + 1}, random_values(size_t(25 * pixel + 1), 1));
      StridedArray y = make_array(dtype, {9 * pixel + 1}, Values(size_t(9 * pixel + 1)));
      const auto shifted = [&](StridedArray& array, const Dims& sizes) {
        View view = array.view();
        return test_view(view.data + size_of(dtype), dtype, sizes,
                         Dims{0, 1, sizes[3] * pixel, pixel});
      };
      max_pool2d_forward({shifted(x, in), shifted(y, out), kNoView, g});
      Values values(200);
      for (int64_t i = 0; i < 200; ++i) {
        values[size_t(i)] = x.get({1 + i % 25 * pixel + i / 25});
      }
      const Values expected = max_reference(values, in, out, g).y;
      for (int64_t i = 0; i < 72; ++i) {
        EXPECT_EQ(y.get({1 + i % 9 * pixel + i / 9}), expected[size_t(i)]) << i;
      }
      EXPECT_EQ(y.get({0}), 0);
    }
  }
}

TEST(Pool2d, FirstOfTiesIsChosenAndNaNWins) {
  const double nan = std::nan("");
  StridedArray x = make_array(DType::f32, {1, 1, 4, 4},
                              {1, 1, -kInf, -kInf, 1, 1, -kInf, -kInf, 3, nan, 2, 5, nan, 9, 5, 5});
  StridedArray y(DType::f32, {1, 1, 2, 2});
  TestValues<uint8_t> index(4, 99);
  max_pool2d_forward({x.view(),
                      y.view(),
                      index.view(DType::u8, {1, 1, 2, 2}),
                      {.kernel = {2, 2}, .stride = {2, 2}}});
  EXPECT_TRUE(index == (std::vector<uint8_t>{0, 0, 1, 1}));
  const Values got = values_of(y);
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], -kInf);
  EXPECT_TRUE(std::isnan(got[2]));
  EXPECT_EQ(got[3], 5);
}

// The geometry of one dimension.
struct Windows {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool ceil_mode = false;
};

// Returns the number of windows over `in` elements; height and width must agree.
int64_t output_size(int64_t in, const Windows& w) {
  const auto along = [&](int axis) {
    Pool2dGeometry g{.ceil_mode = w.ceil_mode};
    g.kernel[axis] = w.kernel;
    g.stride[axis] = w.stride;
    g.padding[axis] = w.padding;
    g.dilation[axis] = w.dilation;
    return pool2d_output_size(in, g, axis);
  };
  EXPECT_EQ(along(0), along(1));
  return along(0);
}

TEST(Pool2d, OutputSize) {
  EXPECT_EQ(output_size(7, {.kernel = 3, .stride = 2}), 3);
  EXPECT_EQ(output_size(8, {.kernel = 3, .stride = 2}), 3);
  EXPECT_EQ(output_size(8, {.kernel = 3, .stride = 2, .ceil_mode = true}), 4);
  EXPECT_EQ(output_size(5, {.kernel = 2, .stride = 3, .padding = 1, .ceil_mode = true}),
            2);  // a third would start in the padding
  EXPECT_EQ(output_size(9, {.kernel = 3, .stride = 1, .padding = 1, .dilation = 2}), 7);
  EXPECT_EQ(output_size(1, {.kernel = 1, .stride = 1}), 1);
  EXPECT_EQ(output_size(2, {.kernel = 3, .stride = 2, .ceil_mode = true}),
            1);  // PyTorch 2.15 gives 1; for 5 it throws
  EXPECT_THROW(output_size(2, {.kernel = 5, .stride = 2, .ceil_mode = true}), Error);
  EXPECT_EQ(
      output_size(2, {.kernel = 2, .stride = 1, .padding = 1, .dilation = 3, .ceil_mode = true}),
      1);  // only padding
}

TEST(Pool2d, EmptyBatch) {
  StridedArray x(DType::f32, {0, 3, 4, 4}), y(DType::f32, {0, 3, 2, 2});
  const Pool2dGeometry g{.kernel = {2, 2}, .stride = {2, 2}};
  TestValues<uint8_t> none(1);
  max_pool2d_forward({x.view(), y.view(), kNoView, g});
  max_pool2d_backward({y.view(), none.view(DType::u8, {0, 3, 2, 2}), x.view(), g});
  avg_pool2d_forward({x.view(), y.view(), g});
  avg_pool2d_backward({y.view(), x.view(), g});
  adaptive_avg_pool2d_forward({x.view(), y.view()});
  adaptive_avg_pool2d_backward({y.view(), x.view()});
  EXPECT_TRUE(y.gaps_untouched());
}

TEST(Pool2d, SameBitsForAnyThreadCount) {
  for (const ArrayLayout& layout : image_layouts()) {
    expect_thread_invariant([&layout] {
      const Pool2dGeometry g{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
      const int64_t images = test_device().is_cpu() ? 5 : 1;
      const Pool2dCase c{DType::f32, {images, 21, 33, 31}, g, layout};
      StridedArray x = draw(c, c.sizes, 1), dx(c.dtype, c.sizes, layout.order, layout.gap);
      const Dims out = output_sizes(c.sizes, g);
      StridedArray y(c.dtype, out), average(c.dtype, out);
      TestValues<uint8_t> indices(static_cast<size_t>(element_count(out)));
      const View index = indices.view(DType::u8, out);
      max_pool2d_forward({x.view(), y.view(), index, g});
      avg_pool2d_forward({x.view(), average.view(), g});
      max_pool2d_backward({average.view(), index, dx.view(), g});
      std::vector<std::byte> all;
      append(all, y);
      append(all, dx);
      avg_pool2d_backward({y.view(), dx.view(), g});
      append(all, dx);
      return all;
    });
  }
}

TEST(Pool2d, ErrorsNameTheProblem) {
  StridedArray x(DType::f32, {1, 2, 5, 5}), y(DType::f32, {1, 2, 3, 3}), flat(DType::f32, {5, 5});
  const auto max = [&](StridedArray& in, const Pool2dGeometry& g) {
    return error_of([&] { max_pool2d_forward({in.view(), y.view(), kNoView, g}); });
  };
  EXPECT_EQ(max(x, {.kernel = {3, 3}, .padding = {2, 2}}),
            "max_pool2d: got padding 2 for kernel 3, expected 0 to half the kernel");
  EXPECT_EQ(max(x, {.kernel = {7, 3}}),
            "max_pool2d: got input size 5 with padding 0, expected at least 7 with padding for "
            "kernel 7 with dilation 1");
  EXPECT_EQ(max(x, {.kernel = {3, 3}, .stride = {0, 1}}),
            "max_pool2d: got kernel 3, stride 0, dilation 1, expected 1 to 2^31");
  EXPECT_EQ(max(flat, {.kernel = {3, 3}}),
            "max_pool2d: got input f32 [5, 5], expected a floating tensor [N, C, H, W]");
  EXPECT_EQ(max(x, {.kernel = {2, 2}}),
            "max_pool2d: got output [1, 2, 3, 3] for input [1, 2, 5, 5], expected size 4 in "
            "dimension 2");
  EXPECT_EQ(error_of([&] {
              avg_pool2d_forward({x.view(), y.view(), {.kernel = {2, 2}, .dilation = {2, 2}}});
            }),
            "avg_pool2d: got dilation 2, 2, expected 1");
  StridedArray large(DType::f32, {1, 1, 20, 20}), one(DType::f32, {1, 1, 4, 4});
  TestValues<uint8_t> index(16);
  EXPECT_EQ(
      error_of([&] {
        max_pool2d_forward(
            {large.view(), one.view(), index.view(DType::u8, {1, 1, 4, 4}), {.kernel = {17, 17}}});
      }),
      "max_pool2d: got index u8 [1, 1, 4, 4], expected i32 [1, 1, 4, 4]");
}

TEST(Pool2d, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::pool2d_test
