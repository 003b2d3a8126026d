#include <binade/data/transforms.h>

#include <cmath>
#include <set>

#include "tests/data/test_files.h"

namespace binade::data::transforms_test {
namespace {

using test::picture;

philox::Stream stream(int64_t index = 0) { return sample_stream(1, 0, index); }

TEST(Transforms, crop_pads_with_zeros) {
  const Image image{2, 2, 1, {1, 2, 3, 4}};
  EXPECT_EQ(crop_image(image, -1, -1, 3, 3).pixels,
            (std::vector<uint8_t>{0, 0, 0, 0, 1, 2, 0, 3, 4}));
  EXPECT_EQ(crop_image(image, 1, 1, 2, 2).pixels, (std::vector<uint8_t>{4, 0, 0, 0}));
  EXPECT_EQ(crop_image(image, 5, -7, 1, 2).pixels, (std::vector<uint8_t>{0, 0}));
}

TEST(Transforms, flip) {
  const Image image{1, 3, 2, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(flip_image(image).pixels, (std::vector<uint8_t>{5, 6, 3, 4, 1, 2}));
  EXPECT_EQ(flip_image(flip_image(picture(5, 7, 3, 1))), picture(5, 7, 3, 1));
}

TEST(Transforms, random_crop_reaches_every_window) {
  Image source = make_image(2, 2, 1);
  source.pixels = {1, 2, 3, 4};
  std::set<std::vector<uint8_t>> seen;
  for (int64_t i = 0; i < 300; ++i) {
    Image image = source;
    philox::Stream random = stream(i);
    random_crop(2, 2, 1)(image, random);
    EXPECT_EQ(image.height, 2);
    seen.insert(image.pixels);
  }
  EXPECT_EQ(seen.size(), 9u);
  Image small = source;
  philox::Stream random = stream();
  EXPECT_ERROR(random_crop(5, 5)(small, random), "expected at least 5 x 5");
  EXPECT_ERROR(random_crop(0, 5), "size 0 x 5");
}

TEST(Transforms, flip_probability) {
  int flipped = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    Image image{1, 2, 1, {1, 2}};
    philox::Stream random = stream(i);
    random_horizontal_flip(0.25f)(image, random);
    flipped += image.pixels[0] == 2;
  }
  EXPECT_NEAR(flipped, 500, 100);
  EXPECT_ERROR(random_horizontal_flip(1.5f), "probability 1.5");
}

TEST(Transforms, resize_keeps_flat_colours_and_averages) {
  Image flat = make_image(13, 9, 3);
  for (size_t i = 0; i < flat.pixels.size(); ++i) {
    flat.pixels[i] = i % 3 == 0 ? 255 : (i % 3 == 1 ? 0 : 77);
  }
  for (auto [height, width] : {std::pair{1, 1}, {13, 9}, {5, 20}, {40, 3}}) {
    const Image out = resize_image(flat, height, width);
    ASSERT_EQ(out.pixels.size(), static_cast<size_t>(3 * height * width));
    for (size_t i = 0; i < out.pixels.size(); ++i) {
      EXPECT_EQ(out.pixels[i], flat.pixels[i % 3]);
    }
  }
  // Halving: weights 1 3 3 1 over 8 inside; at the left edge 3 3 1 over 7.
  const Image row{1, 8, 1, {0, 0, 80, 80, 0, 0, 0, 0}};
  EXPECT_EQ(resize_image(row, 1, 4).pixels, (std::vector<uint8_t>{11, 60, 10, 0}));
  const Image two{1, 2, 1, {0, 100}};
  EXPECT_EQ(resize_image(two, 1, 4).pixels, (std::vector<uint8_t>{0, 25, 75, 100}));
}

TEST(Transforms, sizes) {
  philox::Stream random = stream();
  Image image = picture(30, 50, 3, 1);
  resize_short_side(15)(image, random);
  EXPECT_EQ(image.height, 15);
  EXPECT_EQ(image.width, 25);
  center_crop(11, 30)(image, random);
  EXPECT_EQ(image.height, 11);
  EXPECT_EQ(image.width, 30);
  EXPECT_EQ(image.row(5)[0], 0);  // padded
  for (int64_t i = 0; i < 50; ++i) {
    Image photo = picture(40, 23, 3, 1);
    philox::Stream numbers = stream(i);
    random_resized_crop(16, 12)(photo, numbers);
    EXPECT_EQ(photo.height, 16);
    EXPECT_EQ(photo.width, 12);
  }
}

TEST(Transforms, numbers_come_from_the_stream_alone) {
  const Transform augment = sequence({random_crop(20, 20, 4), random_horizontal_flip(), nullptr,
                                      random_resized_crop(16, 16, 0.5f)});
  std::set<std::vector<uint8_t>> different;
  for (int64_t index = 0; index < 20; ++index) {
    Image a = picture(20, 20, 3, 1), b = a;
    philox::Stream first = sample_stream(3, 4, index), second = sample_stream(3, 4, index);
    augment(a, first);
    augment(b, second);
    EXPECT_EQ(a, b);
    different.insert(a.pixels);
  }
  EXPECT_EQ(different.size(), 20u);
  EXPECT_NE(sample_stream(3, 4, 0).next(), sample_stream(3, 5, 0).next());
  EXPECT_NE(sample_stream(3, 4, 0).next(), sample_stream(2, 4, 0).next());
  EXPECT_ERROR(sample_stream(0, -1, 0), "epoch -1");
}

TEST(Normalizer, matches_the_formula) {
  for (int channels : {1, 2, 3}) {
    std::vector<float> mean, deviation;
    for (int c = 0; c < channels; ++c) {
      mean.push_back(0.3f + 0.1f * static_cast<float>(c));
      deviation.push_back(0.2f + 0.05f * static_cast<float>(c));
    }
    const Normalizer normalizer(channels, mean, deviation);
    for (int64_t pixels : {0, 1, 15, 16, 17, 100}) {
      std::vector<uint8_t> x(static_cast<size_t>(pixels * channels));
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<uint8_t>(37 * i + 5);
      }
      std::vector<float> y(x.size() + 1, -99.0f);
      normalizer.apply(x.data(), y.data(), pixels);
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t c = i % static_cast<size_t>(channels);
        EXPECT_NEAR(y[i], (x[i] / 255.0f - mean[c]) / deviation[c], 1e-5);
      }
      EXPECT_EQ(y.back(), -99.0f);
    }
  }
  EXPECT_ERROR(Normalizer(3, std::vector<float>{1.0f}, {}), "1 means");
  EXPECT_ERROR(Normalizer(1, {}, std::vector<float>{-1.0f}), "deviation > 0");
  EXPECT_ERROR(Normalizer(0, {}, {}), "0 channels");
}

}  // namespace
}  // namespace binade::data::transforms_test
