// Tests pooling over a grid of geometries: inputs smaller than the window, windows that hold only
// padding, large windows.
#include <tests/kernels/conv/pool2d_case.h>

namespace binade::kernels::pool2d_grid_test {
namespace {

// Computes the number of windows by PyTorch's rule in floating point.
int64_t windows(int64_t in, const Pool2dGeometry& g, int i) {
  const double room = double(in + 2 * g.padding[i] - g.dilation[i] * (g.kernel[i] - 1) - 1);
  const double stride = double(g.stride[i]);
  const double out = (g.ceil_mode ? std::ceil(room / stride) : std::floor(room / stride)) + 1;
  const bool in_padding = g.ceil_mode && (out - 1) * stride >= double(in + g.padding[i]);
  return static_cast<int64_t>(out) - (in_padding ? 1 : 0);
}

// Calls f(geometry) for a grid of geometries: one dimension takes all values, the other those of a
// neighbour.
void for_geometries(const std::function<void(const Pool2dGeometry&)>& f) {
  for (int64_t kernel : {1, 2, 3, 5, 8}) {
    for (int64_t stride : {1, 2, 3, 9}) {
      for (int64_t padding = 0; padding <= kernel / 2; ++padding) {
        for (int64_t dilation : {1, 2, 5}) {
          for (bool ceil_mode : {false, true}) {
            f({.kernel = {kernel, kernel % 5 + 1},
               .stride = {stride, stride % 3 + 1},
               .padding = {padding, (kernel % 5 + 1) / 2},
               .dilation = {dilation, 1},
               .ceil_mode = ceil_mode,
               .count_include_pad = (kernel + stride) % 2 == 0});
          }
        }
      }
    }
  }
}

// Inputs smaller than the window, windows that hold only padding, strides that leave gaps.
TEST(Pool2dGrid, MatchesReference) {
  int turn = 0, pooled = 0, refused = 0;
  for (int64_t height : {1, 2, 4, 9}) {
    for_geometries([&](const Pool2dGeometry& g) {
      const ArrayLayout layout = image_layouts()[static_cast<size_t>(turn) % 4];
      if (++turn % 9 != 0 && !test_device().is_cpu()) {
        return;
      }
      const Pool2dCase c{floating_dtypes()[turn % floating_dtypes().size()],
                         {2, turn % 3 ? 5 : 16, height, 6},
                         g,
                         layout};
      const Dims out{2, c.sizes[1], windows(height, g, 0), windows(6, g, 1)};
      if (out[2] < 1 || out[3] < 1) {
        EXPECT_NE(error_of([&] { output_sizes(c.sizes, g); }), "none") << c.name();
        ++refused;
        return;
      }
      ASSERT_EQ(output_sizes(c.sizes, g), out) << c.name();
      check_max(c);
      if (g.dilation[0] == 1) {
        check_average(c);
      }
      ++pooled;
    });
  }
  EXPECT_GT(pooled, 20);
  EXPECT_GT(refused, 5);
}

// More than 255 positions in a window, and more than 64 windows over a pixel.
TEST(Pool2dGrid, LargeWindows) {
  const ArrayLayout rows{"row-major", {}, 0}, last{"channels-last", {0, 2, 3, 1}, 0};
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : {rows, last}) {
      for (int64_t channels : {3, 16}) {
        check_max({dtype, {1, channels, 16, 16}, {.kernel = {16, 16}, .stride = {16, 16}}, layout});
        check_max({dtype,
                   {1, channels, 20, 19},
                   {.kernel = {17, 16}, .padding = {8, 8}, .ceil_mode = true},
                   layout});
        check_max({dtype, {1, channels, 2, 300}, {.kernel = {1, 300}, .padding = {0, 9}}, layout});
      }
    }
  }
  const Pool2dGeometry g{.kernel = {16, 17}, .stride = {8, 8}, .padding = {8, 8}};
  check_average({DType::f32, {1, 5, 20, 19}, g, rows});
}

// The time must not grow with the number of taps in the padding.
TEST(Pool2dGrid, HugeWindowsOfASmallInput) {
  const int64_t huge = (int64_t{1} << 31) - 1;
  const Pool2dCase c{DType::f32,
                     {1, 2, 3, 2},
                     {.kernel = {huge, 1}, .stride = {huge, 1}, .padding = {huge / 2, 0}},
                     {"row-major", {}, 0}};
  StridedArray x = draw(c, c.sizes, 1), y(c.dtype, {1, 2, 1, 2}), dx(x);
  TestValues<int32_t> indices(4);
  const View index = indices.view(DType::i32, {1, 2, 1, 2});
  max_pool2d_forward({x.view(), y.view(), index, c.geometry});
  max_pool2d_backward({y.view(), index, dx.view(), c.geometry});
  for (int64_t channel = 0; channel < 2; ++channel) {
    for (int64_t col = 0; col < 2; ++col) {
      double largest = -kInf, sum = 0;
      for (int64_t row = 0; row < 3; ++row) {
        largest = std::max(largest, x.get({0, channel, row, col}));
        sum += dx.get({0, channel, row, col});
      }
      EXPECT_EQ(y.get({0, channel, 0, col}), largest);
      EXPECT_EQ(sum, largest);
    }
  }
  const Pool2dGeometry all{.kernel = {huge, huge}, .stride = {huge, huge}, .ceil_mode = true};
  StridedArray one(c.dtype, {1, 2, 1, 1});
  max_pool2d_forward({x.view(), one.view(), kNoView, all});
  EXPECT_EQ(one.get({0, 1, 0, 0}), std::max(y.get({0, 1, 0, 0}), y.get({0, 1, 0, 1})));
  avg_pool2d_forward({x.view(), one.view(), all});
  EXPECT_TRUE(std::isfinite(one.get({0, 1, 0, 0})));
}

TEST(Pool2dGrid, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::pool2d_grid_test
