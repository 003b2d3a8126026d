// The random transforms must have the distributions of torchvision's (generate_distributions.py):
// the share of draws in which a pixel, or the mean, is below a level. By default a few thousand
// draws; the slow test (BINADE_LONG=1) takes 100,000.
#include <binade/data/augment/augment.h>

#include <cmath>
#include <map>
#include <sstream>

#include "tests/data/test_files.h"

namespace binade::data::distribution_test {
namespace {

constexpr int kSide = 16;
constexpr int kLevels = 7;
constexpr int kPlaces[][3] = {{2, 3, 0}, {8, 8, 1}, {13, 5, 2}, {0, 0, 0}, {15, 10, 1}};

Image formula() {
  Image image = make_image(kSide, kSide, 3);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      for (int c = 0; c < 3; ++c) {
        image.row(y)[3 * x + c] =
            static_cast<uint8_t>((37 * y + 59 * x + 83 * c + 5 * x * y) % 251);
      }
    }
  }
  return image;
}

std::map<std::string, Transform> transforms() {
  return {
      {"random_resized_crop",
       random_resized_crop(kSide, kSide,
                           RandomResizedCropOptions{.interpolation = Interpolation::nearest})},
      {"random_rotation", random_rotation(40)},
      {"random_affine", random_affine(20, {.translate = std::array{0.2, 0.1},
                                           .scale = Range{0.7, 1.3},
                                           .shear = Range{-15, 15},
                                           .interpolation = Interpolation::bilinear})},
      {"random_perspective", random_perspective({.distortion_scale = 0.6, .p = 0.8})},
      {"color_jitter", color_jitter(0.6, 0.5, 0.7, 0.2)},
      {"random_grayscale", random_grayscale(0.3)},
      {"gaussian_blur", gaussian_blur(5, {0.2, 1.5})},
      {"random_erasing", random_erasing({.p = 0.7})},
      {"random_solarize", random_solarize(100, 0.4)},
      {"rand_augment", rand_augment({.num_ops = 2, .magnitude = 15})},
      {"trivial_augment_wide", trivial_augment_wide()},
      {"aug_mix", aug_mix()},
  };
}

// The shares of draws at or below each level: first for each place, then for the mean.
std::vector<double> shares(const Transform& transform, int draws) {
  constexpr size_t kValues = std::size(kPlaces) + 1;
  std::vector<double> counts(kValues * kLevels);
  const Image image = formula();
  for (int i = 0; i < draws; ++i) {
    Image out = image;
    philox::Stream random = sample_stream(11, 0, i);
    transform(out, random);
    double values[kValues] = {};
    for (size_t k = 0; k + 1 < kValues; ++k) {
      values[k] = out.row(kPlaces[k][0])[3 * kPlaces[k][1] + kPlaces[k][2]];
    }
    for (const uint8_t value : out.pixels) {
      values[kValues - 1] += double{static_cast<double>(value)} / double(out.pixels.size());
    }
    for (size_t k = 0; k < kValues; ++k) {
      for (size_t level = 0; level < kLevels; ++level) {
        counts[k * kLevels + level] += values[k] <= 32.0 * double(level + 1) - 0.5;
      }
    }
  }
  for (double& count : counts) {
    count /= draws;
  }
  return counts;
}

TEST(Distributions, are_those_of_torchvision) {
  const int draws = std::getenv("BINADE_LONG") != nullptr ? 100'000 : 2'000;
  std::ifstream file(BINADE_SOURCE_DIR "/tests/data/augment/distributions.txt");
  const std::map<std::string, Transform> all = transforms();
  size_t seen = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double their_draws = 0;
    words >> name >> their_draws;
    const std::vector<double> own = shares(all.at(name), draws);
    // Five standard deviations of the difference of two shares, plus one rounded level.
    const double limit = 5 * std::sqrt(0.25 / draws + 0.25 / their_draws) + 0.004;
    for (size_t i = 0; i < own.size(); ++i) {
      double expected = -1;
      words >> expected;
      EXPECT_NEAR(own[i], expected, limit)
          << name << ": value " << i / kLevels << ", level " << i % kLevels;
    }
    ++seen;
  }
  EXPECT_EQ(seen, all.size());
}

}  // namespace
}  // namespace binade::data::distribution_test
