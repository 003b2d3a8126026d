// Compares resize_image() and windows with Pillow's pixels and a plain reference, for odd sizes.
// Combined windows must give what they give one after another.
#include <binade/data/transforms.h>
#include <binade/data/window/image_request.h>
#include <zlib.h>

#include <cmath>

#include "tests/data/test_files.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::data::resample_test {
namespace {

using test::picture;

// Edges, slopes and noise from a formula that other programs can repeat.
Image pattern(int height, int width, int channels) {
  Image image = make_image(height, width, channels);
  uint8_t* to = image.pixels.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        *to++ = static_cast<uint8_t>(31 * y + 17 * x + 101 * c + int64_t{x} * y % 7 * 9);
      }
    }
  }
  return image;
}

uint32_t checksum(const Image& image) {
  return static_cast<uint32_t>(
      ::crc32(0, image.pixels.data(), static_cast<uInt>(image.pixels.size())));
}

TEST(Resample, gives_the_pixels_of_pillow) {
  // Pillow 13.0: Image.fromarray(pattern).resize((out_width, out_height), BILINEAR or BICUBIC).
  const struct {
    int height, width, channels, out_height, out_width;
    uint32_t bilinear, bicubic;
  } cases[] = {
      {37, 53, 3, 16, 21, 0x618d9dcdu, 0x444361b5u},
      {37, 53, 1, 16, 21, 0xa2536474u, 0x1b6a0fbau},
      {37, 53, 4, 16, 21, 0xf578a8a2u, 0xc5fc619bu},
      {9, 7, 3, 30, 41, 0xa73d6d68u, 0xdcfe8b19u},
      {1, 1, 3, 5, 4, 0xa8cca35cu, 0xa8cca35cu},
      {1, 100, 3, 1, 7, 0x1fdceb27u, 0x7c8e99dau},
      {300, 2, 3, 11, 2, 0x778d9010u, 0x70c18fa9u},
      {50, 40, 3, 50, 13, 0x10426c34u, 0x016099e1u},
      {50, 40, 3, 17, 40, 0x9b81f108u, 0xd18efc3eu},
      {1000, 3, 1, 2, 3, 0x5445cd86u, 0x5445cd86u},
      {64, 64, 3, 64, 65, 0xdab41578u, 0xedfec26au},
      {200, 150, 3, 224, 224, 0x1c221c59u, 0x13461082u},
      {5, 5000, 3, 3, 2, 0x108a7f76u, 0x3539048du},
  };
  for (const auto& row : cases) {
    SCOPED_TRACE(text(row.height, " x ", row.width, " x ", row.channels, " to ", row.out_height,
                      " x ", row.out_width));
    const Image image = pattern(row.height, row.width, row.channels);
    EXPECT_EQ(checksum(resize_image(image, row.out_height, row.out_width)), row.bilinear);
    EXPECT_EQ(checksum(resize_image(image, row.out_height, row.out_width, Interpolation::bicubic)),
              row.bicubic);
  }
}

double filter(Interpolation interpolation, double x) {
  x = std::abs(x);
  if (interpolation == Interpolation::bilinear) {
    return std::max(0.0, 1 - x);
  }
  return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// Resamples one direction in double: `lines` of `in` values become lines of `out`, rounded.
std::vector<double> resampled(const std::vector<double>& x, int lines, int in, int out,
                              Interpolation interpolation) {
  const double scale = double(in) / out, stretch = std::max(scale, 1.0);
  std::vector<double> y;
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < out; ++i) {
      double sum = 0, total = 0;
      for (int k = 0; k < in; ++k) {
        const double weight = filter(interpolation, (k + 0.5 - (i + 0.5) * scale) / stretch);
        sum += weight * x[static_cast<size_t>(line) * in + k];
        total += weight;
      }
      y.push_back(std::clamp(std::floor(sum / total + 0.5), 0.0, 255.0));
    }
  }
  return y;
}

Image reference(const Image& image, int height, int width, Interpolation interpolation) {
  Image out = make_image(height, width, image.channels);
  for (int c = 0; c < image.channels; ++c) {
    std::vector<double> rows;
    for (size_t i = 0; i < image.pixels.size(); i += image.channels) {
      rows.push_back(image.pixels[i + c]);
    }
    rows = resampled(rows, image.height, image.width, width, interpolation);
    std::vector<double> columns;
    for (int x = 0; x < width; ++x) {
      for (int y = 0; y < image.height; ++y) {
        columns.push_back(rows[static_cast<size_t>(y) * width + x]);
      }
    }
    columns = resampled(columns, width, image.height, height, interpolation);
    for (int x = 0; x < width; ++x) {
      for (int y = 0; y < height; ++y) {
        out.row(y)[x * image.channels + c] =
            static_cast<uint8_t>(columns[static_cast<size_t>(x) * height + y]);
      }
    }
  }
  return out;
}

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  int largest = 0;
  for (size_t i = 0; i < std::min(a.pixels.size(), b.pixels.size()); ++i) {
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return largest;
}

TEST(Resample, odd_sizes_are_within_a_level_of_the_formula) {
  const std::pair<int, int> sizes[] = {{1, 1}, {1, 2},   {2, 1},  {1, 90}, {90, 1},
                                       {3, 5}, {17, 33}, {64, 7}, {40, 61}};
  for (const int channels : {1, 2, 3, 4, 5}) {
    for (const auto& [height, width] : sizes) {
      const Image image = picture(height, width, channels, 3);
      for (const auto& [out_height, out_width] : sizes) {
        for (const auto interpolation : {Interpolation::bilinear, Interpolation::bicubic}) {
          EXPECT_LE(largest_difference(resize_image(image, out_height, out_width, interpolation),
                                       reference(image, out_height, out_width, interpolation)),
                    1)
              << height << " x " << width << " x " << channels << " to " << out_height << " x "
              << out_width;
        }
      }
    }
  }
}

TEST(Resample, extreme_shrinking_averages) {
  Image wide = make_image(1, 30'000, 3);
  for (size_t i = 0; i < wide.pixels.size(); ++i) {
    wide.pixels[i] = i % 6 < 3 ? 255 : 55;
  }
  for (const uint8_t value : resize_image(wide, 1, 1).pixels) {
    EXPECT_NEAR(value, 155, 1);
  }
}

Window random_window(philox::Stream& random, int height, int width, bool outside) {
  const auto below = [&](int bound) {
    return static_cast<int>(random.next_below(static_cast<uint32_t>(bound)));
  };
  Window window{.height = 1 + below(height), .width = 1 + below(width)};
  window.top = below(height - window.height + 1) - (outside ? below(4) : 0);
  window.left = below(width - window.width + 1) + (outside ? below(4) : 0);
  if (below(2) == 0) {
    window.out_height = 1 + below(40);
    window.out_width = 1 + below(40);
    window.interpolation = below(2) == 0 ? Interpolation::bilinear : Interpolation::bicubic;
  }
  return window;
}

TEST(Window, combined_windows_equal_single_ones) {
  for (int64_t i = 0; i < 400; ++i) {
    const Image image = picture(23, 37, i % 2 == 0 ? 3 : 1, 5);
    std::vector<Transform> steps;
    for (int64_t step = 0; step <= i % 4; ++step) {
      steps.push_back(window([=](int height, int width, philox::Stream& random) {
        return random_window(random, height, width, i % 3 == 0);
      }));
    }
    const Transform all = sequence(steps);
    philox::Stream one(1, static_cast<uint64_t>(i)), other = one, third = one;
    Image expected = image;
    for (size_t step = 0; step < steps.size(); ++step) {
      // Runs one step alone but in its place, because each step has its own random numbers.
      std::vector<Transform> alone(step, pixelwise([](Image&, philox::Stream&) {}));
      alone.push_back(steps[step]);
      philox::Stream same = one;
      sequence(alone)(expected, same);
    }
    Image in_sequence = image;
    all(in_sequence, other);
    EXPECT_EQ(in_sequence, expected);
    ImageRequest request(all, third);
    EXPECT_TRUE(request.has_window());
    const Image begun = request.apply(image);
    EXPECT_GE(request.steps(), 1u);
    if (request.steps() == steps.size()) {
      EXPECT_EQ(begun, expected) << i;
    }
  }
}

TEST(Window, wrong_ones_are_errors) {
  const Image image = picture(5, 5, 3, 1);
  philox::Stream random(1, 1);
  const auto apply = [&](Window chosen) {
    Image changed = image;
    window([=](int, int, philox::Stream&) { return chosen; })(changed, random);
  };
  EXPECT_ERROR(apply({}), "window: got 0 x 0");
  EXPECT_ERROR(apply({.height = 3, .width = -1}), "3 x -1");
  EXPECT_ERROR(apply({.height = 3, .width = 3, .out_height = 4}), "resize to 4 x 0");
  const Transform nothing, pixels = pixelwise([](Image&, philox::Stream&) {});
  EXPECT_FALSE(ImageRequest(nothing, random).has_window());
  EXPECT_FALSE(ImageRequest(pixels, random).has_window());
  EXPECT_ERROR(ImageRequest(pixels, random).apply(image), "no window");
}

TEST(Resample, mirrored_rows_of_every_width) {
  for (const int channels : {1, 2, 3, 4, 5}) {
    for (int width = 1; width < 80; ++width) {
      const Image image = picture(3, width, channels, 9), flipped = flip_image(image);
      for (int y = 0; y < 3; ++y) {
        for (int x = 0; x < width; ++x) {
          for (int c = 0; c < channels; ++c) {
            ASSERT_EQ(flipped.row(y)[x * channels + c],
                      image.row(y)[(width - 1 - x) * channels + c])
                << width << " x " << channels;
          }
        }
      }
    }
  }
}

TEST(NarrowerIsas, ResamplePasses) { EXPECT_TRUE(kernels::passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::data::resample_test
