// Converts pictures to tensors and files exactly, and gives one error for a wrong shape.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/encode.h>
#include <binade/data/pictures/pictures.h>

#include <cmath>
#include <limits>

#include "tests/data/test_files.h"

namespace binade::data::pictures_test {
namespace {

namespace fs = std::filesystem;
using test::picture;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// An image with every value from 0 to 255, and odd sizes.
Image all_values(int channels) {
  Image image = make_image(7, 37 * 2, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<uint8_t>(i * 91);
  }
  return image;
}

TEST(ToTensor, HasTheLoadersLayoutAndValues) {
  const Image image = picture(3, 5, 3, 4);
  const std::vector<float> mean{0.2f, 0.5f, 0.7f}, deviation{0.3f, 0.25f, 2};
  const Tensor plain = to_tensor(image);
  const Tensor normal = to_tensor(image, {.mean = mean, .deviation = deviation});
  ASSERT_EQ(plain.sizes(), (Dims{3, 3, 5}));
  EXPECT_EQ(plain.dtype(), DType::f32);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 5; ++x) {
        const int64_t at = (c * 3 + y) * 5 + x;
        const double value = image.row(y)[x * 3 + c] / 255.0;
        EXPECT_NEAR(plain.at(at), value, 1e-7);
        EXPECT_NEAR(normal.at(at), (value - mean[c]) / deviation[c], 1e-6);
      }
    }
  }
}

TEST(ToImage, ReturnsEveryByte) {
  for (const int channels : {1, 2, 3, 4}) {
    const Image image = all_values(channels);
    const Tensor x = to_tensor(image);
    EXPECT_EQ(to_image(x), image);
    EXPECT_EQ(to_image(x.to(DType::f64)), image);
    EXPECT_EQ(to_image(x.to(DType::f16)), image);
    EXPECT_EQ(to_image((x * 255).to(DType::f64).to(DType::u8)), image) << "u8";
    const Normalization normalization{.mean = std::vector<float>(channels, 0.4f),
                                      .deviation = std::vector<float>(channels, 0.3f)};
    EXPECT_EQ(to_image(to_tensor(image, normalization), normalization), image);
  }
}

TEST(ToImage, TakesAnyLayoutGradientAndGreyPictures) {
  const Image image = all_values(3);
  Tensor x = to_tensor(image);
  const Tensor hwc = contiguous(permute(x, {1, 2, 0}));
  EXPECT_EQ(to_image(permute(hwc, {2, 0, 1})), image);
  const Tensor wide = cat({x, x}, 2);
  EXPECT_EQ(to_image(narrow(wide, 2, x.size(2), x.size(2))), image);
  x.require_grad();
  EXPECT_EQ(to_image(x * 1), image);
  const Image grey = all_values(1);
  EXPECT_EQ(to_image(to_tensor(grey)[0]), grey);
  const Tensor mask = Tensor::from({{1.f, 0.f}, {0.f, 1.f}}) > 0.5;
  EXPECT_EQ(to_image(mask).pixels, (std::vector<uint8_t>{255, 0, 0, 255}));
}

TEST(ToImage, ClampsAndRounds) {
  const Tensor x = Tensor::from<float>(
      {-1, -0.f, 0.49f / 255, 0.51f / 255, 254.49f / 255, 1, 1.5f, kInfinity, -kInfinity},
      {1, 1, 9});
  EXPECT_EQ(to_image(x).pixels, (std::vector<uint8_t>{0, 0, 0, 1, 254, 255, 255, 255, 0}));
}

TEST(ToImage, RefusesWhatIsNoPicture) {
  const auto refused = [](const Tensor& x, const std::string& got) {
    const std::string error = error_of([&] { to_image(x); });
    EXPECT_EQ(error.find("to_image: got " + got), 0) << error;
    EXPECT_NE(error.find("expected"), std::string::npos) << error;
  };
  refused({}, "an undefined tensor");
  refused(zeros({2, 3, 4, 4}), "a batch [2, 3, 4, 4], expected one picture [C, H, W]; make_grid()");
  refused(zeros({4}), "a tensor [4]");
  refused(zeros({}), "a tensor []");
  refused(zeros({8, 8, 3}), "a tensor [8, 8, 3] with 8 channels");
  refused(zeros({3, 0, 4}), "an empty picture [3, 0, 4]");
  refused(zeros({0, 4, 4}), "an empty picture [0, 4, 4]");
  refused(zeros({3, 4, 4}, DType::i64), "a picture of i64");
  Tensor x = zeros({3, 4, 5});
  x.data<float>()[(1 * 4 + 2) * 5 + 3] = kNaN;
  refused(x, "NaN at channel 1, row 2, column 3 of a picture [3, 4, 5]");
  EXPECT_ERROR(to_image(zeros({3, 4, 4}), {.mean = {0.5f}}), "got 1 means and 0 deviations");
  EXPECT_ERROR(to_image(zeros({1, 4, 4}), {.deviation = {0}}), "got a deviation of 0");
  EXPECT_ERROR(to_image(zeros({1, 4, 4}, DType::u8), {.mean = {0}}), "got a normalization and");
  EXPECT_ERROR(to_tensor(Image{}), "to_tensor: got an image of 0 x 0 x 0");
  EXPECT_ERROR(to_tensor(Image{2, 2, 1, {1, 2, 3}}), "the image has 3 bytes");
  EXPECT_ERROR(to_tensor(make_image(2, 2, 3), {.mean = {0, 0}}), "got 2 means");
  EXPECT_ERROR(to_tensor(make_image(2, 2, 1), {.deviation = {0}}), "got a deviation of 0");
}

// Checks the grid by its definition, pixel by pixel.
void expect_grid(const Tensor& batch, const GridOptions& o, const Tensor& grid) {
  const int64_t n = batch.size(0), h = batch.size(2), w = batch.size(3);
  const int64_t columns = std::min(o.columns, n), rows = (n + columns - 1) / columns;
  ASSERT_EQ(grid.sizes(), (Dims{batch.size(1), rows * (h + o.padding) + o.padding,
                                columns * (w + o.padding) + o.padding}));
  for (int64_t c = 0; c < grid.size(0); ++c) {
    for (int64_t y = 0; y < grid.size(1); ++y) {
      for (int64_t x = 0; x < grid.size(2); ++x) {
        const int64_t dy = y - o.padding, dx = x - o.padding;
        const int64_t i =
            dy >= 0 && dx >= 0 ? dy / (h + o.padding) * columns + dx / (w + o.padding) : n;
        const bool inside = i < n && dy % (h + o.padding) < h && dx % (w + o.padding) < w &&
                            dx / (w + o.padding) < columns;
        const double expected =
            inside ? batch[i][c][dy % (h + o.padding)][dx % (w + o.padding)].item() : o.pad_value;
        ASSERT_EQ(grid[c][y][x].item(), expected) << c << ", " << y << ", " << x;
      }
    }
  }
}

TEST(MakeGrid, PutsPicturesRowByRow) {
  manual_seed(3);
  const Tensor batch = rand({5, 3, 2, 3});
  for (const GridOptions& o :
       {GridOptions{}, GridOptions{.columns = 2, .padding = 0},
        GridOptions{.columns = 3, .padding = 1, .pad_value = 0.5}, GridOptions{.columns = 1}}) {
    expect_grid(batch, o, make_grid(batch, o));
  }
  expect_grid(batch, {}, make_grid(channels_last(batch)));
  const Tensor bytes = (batch * 255).to(DType::u8);
  const Tensor grid = make_grid(bytes, {.columns = 5, .padding = 1, .pad_value = 1});
  EXPECT_EQ(grid.dtype(), DType::u8);
  EXPECT_EQ(grid[0][0][0].item(), 255);
  EXPECT_EQ(grid[2][1][1].item(), bytes[0][2][0][0].item());
}

TEST(MakeGrid, MapsValues) {
  const Tensor batch = Tensor::from<float>({-1, 0, 1, 3}, {2, 1, 1, 2});
  const auto values = [&](GridOptions o) {
    o.padding = 0;
    return make_grid(batch, o).to_vector<float>();
  };
  EXPECT_EQ(values({.value_range = {{-1, 1}}}), (std::vector<float>{0, 0.5f, 1, 2}));
  EXPECT_EQ(values({.normalize = true}), (std::vector<float>{0, 0.25f, 0.5f, 1}));
  EXPECT_EQ(values({.scale_each = true}), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(make_grid(zeros({1, 1, 2, 2}), {.padding = 0, .normalize = true}).to_vector<float>(),
            (std::vector<float>(4, 0)));
}

TEST(MakeGrid, RefusesWhatIsNoBatch) {
  EXPECT_ERROR(make_grid({}), "make_grid: got an undefined tensor");
  EXPECT_ERROR(make_grid(zeros({3, 4, 4})), "make_grid: got a tensor [3, 4, 4], expected a batch");
  EXPECT_ERROR(make_grid(zeros({0, 3, 4, 4})), "got an empty batch");
  EXPECT_ERROR(make_grid(zeros({1, 3, 4, 4}, DType::i32)), "got pictures of i32");
  EXPECT_ERROR(make_grid(zeros({1, 1, 2, 2}), {.columns = 0}), "got 0 columns");
  EXPECT_ERROR(make_grid(zeros({1, 1, 2, 2}), {.padding = -1}), "got a padding of -1");
  EXPECT_ERROR(make_grid(zeros({1, 1, 2, 2}), {.pad_value = 2}), "got pad_value = 2");
  EXPECT_ERROR(make_grid(zeros({1, 1, 2, 2}), {.value_range = {{1, 1}}}), "got the value_range 1");
  EXPECT_ERROR(make_grid(zeros({1, 1, 2, 2}), {.normalize = true, .scale_each = true}),
               "more than one of");
  EXPECT_ERROR(make_grid(full({1, 1, 2, 2}, kNaN), {.normalize = true}), "not finite");
}

TEST(SavePng, KeepsEveryByte) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "picture.png").native();
  for (const int channels : {1, 3, 4}) {
    const Image image = all_values(channels);
    save_png(path, to_tensor(image));
    EXPECT_EQ(read_image(path, {.channels = channels}), image);
    save_png(path, image, 0);
    EXPECT_EQ(read_image(path, {.channels = channels}), image);
  }
  const Image grey_alpha = all_values(2);
  save_png(path, grey_alpha);
  const Image rgba = read_image(path, {.channels = 4});
  for (size_t i = 0; i < rgba.pixels.size(); ++i) {
    ASSERT_EQ(rgba.pixels[i], grey_alpha.pixels[i / 4 * 2 + (i % 4 == 3)]);
  }
}

TEST(SaveJpeg, KeepsThePicture) {
  if (!has_libjpeg()) {
    GTEST_SKIP() << "this build has no libjpeg";
  }
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "picture.jpg").native();
  const Image image = picture(24, 40, 3, 9);
  save_jpeg(path, to_tensor(image), 95);
  EXPECT_EQ(read_image(path), decode_image(encode_jpeg(image, 95), "memory"));
  save_jpeg(path, to_tensor(image)[0]);
  EXPECT_EQ(read_image(path).channels, 1);
  EXPECT_ERROR(save_jpeg(path, zeros({4, 2, 2})), "encode_jpeg: got an image of 2 x 2 x 4");
}

// After an error the old file is unchanged and no temporary file is left.
TEST(SavePng, LeavesTheOldFileAtAnError) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "picture.png").native();
  const Image image = picture(3, 3, 3, 1);
  save_png(path, image);
  EXPECT_ERROR(save_png(path, full({3, 2, 2}, kNaN)), "got NaN at channel 0, row 0, column 0");
  EXPECT_ERROR(save_png(path, zeros({2, 3, 2, 2})), "save_png: got a batch [2, 3, 2, 2]");
  EXPECT_ERROR(save_png(path, image, 10), "got level 10");
  EXPECT_ERROR(save_png(path, Image{}), "got an image of 0 x 0 x 0");
  EXPECT_EQ(read_image(path), image);
  const std::string nowhere = (folder.path() / "none" / "a.png").native();
  EXPECT_ERROR(save_png(nowhere, image), nowhere);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace binade::data::pictures_test
