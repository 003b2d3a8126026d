// Tests random transforms: their effect on masks and boxes, where their random numbers come from,
// their use in a Loader, and wrong arguments.
#include <binade/data/augment/augment.h>
#include <binade/data/loader.h>
#include <binade/data/sets/list_dataset.h>

#include <set>

#include "tests/data/test_files.h"

namespace binade::data::augment_test {
namespace {

using test::picture;

// An image whose mask is its own first channel, with a box around one of its points.
Sample sample_of(int height, int width) {
  Sample sample{.image = make_image(height, width, 3), .label = 1};
  Image mask = make_image(height, width, 1);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto value = static_cast<uint8_t>(1 + (7 * y + 3 * x) % 250);
      mask.row(y)[x] = sample.image.row(y)[3 * x] = value;
    }
  }
  sample.masks.emplace_back("mask", mask);
  sample.boxes.emplace_back(
      "boxes", Boxes{height, width, {{4, 5, 9, 11}, {0, 0, float(width), float(height)}}, {3, 4}});
  return sample;
}

TEST(Augment, masks_and_boxes_follow_the_image) {
  const Interpolation nearest = Interpolation::nearest;
  const std::vector<Transform> moving{
      random_horizontal_flip(1),
      random_vertical_flip(1),
      random_rotation(50, {.interpolation = nearest}),
      random_rotation(50, {.interpolation = nearest, .expand = true}),
      random_affine(30, {.translate = std::array{0.1, 0.2}, .scale = Range{0.8, 1.4}}),
      random_perspective({.p = 1, .interpolation = nearest}),
      pad({3, 2, 1, 0}),
      random_crop(12, 10, 2),
      random_apply(random_vertical_flip(1), 0.5),
      random_choice({random_horizontal_flip(1), pad({1, 1, 1, 1}), random_rotation(20)}),
      random_order({random_horizontal_flip(0.5), pad({1, 2, 0, 0}), random_crop(14, 14)})};
  for (size_t t = 0; t < moving.size(); ++t) {
    for (int64_t i = 0; i < 20; ++i) {
      Sample sample = sample_of(20, 17);
      philox::Stream random = sample_stream(5, 0, i);
      moving[t](sample, random);
      const Image& mask = sample.masks[0].second;
      ASSERT_EQ(std::pair(mask.height, mask.width),
                std::pair(sample.image.height, sample.image.width))
          << t;
      for (size_t p = 0; p < mask.pixels.size(); ++p) {
        ASSERT_EQ(mask.pixels[p], sample.image.pixels[3 * p]) << "transform " << t << " draw " << i;
      }
      const Boxes& boxes = sample.boxes[0].second;
      EXPECT_EQ(std::pair(boxes.height, boxes.width), std::pair(mask.height, mask.width)) << t;
      EXPECT_EQ(boxes.corners.size(), 2u);
    }
  }
}

TEST(Augment, boxes_hold_what_was_in_them) {
  // A bright spot must stay within its box.
  const Transform all =
      sequence({random_affine(25, {.scale = Range{0.9, 1.5}}), random_horizontal_flip(),
                random_resized_crop(40, 30, 0.5f), sanitize_bounding_boxes(2)});
  int kept = 0;
  for (int64_t i = 0; i < 100; ++i) {
    Sample sample{.image = make_image(50, 60, 1)};
    for (int y = 20; y < 28; ++y) {
      std::fill_n(sample.image.row(y) + 30, 10, uint8_t{255});
    }
    sample.boxes.emplace_back("boxes", Boxes{50, 60, {{30, 20, 40, 28}, {0, 0, 1, 1}}, {7, 8}});
    philox::Stream random = sample_stream(5, 1, i);
    all(sample, random);
    const Boxes& boxes = sample.boxes[0].second;
    ASSERT_EQ(boxes.corners.size(), boxes.labels.size());
    for (size_t b = 0; b < boxes.labels.size(); ++b) {
      kept += boxes.labels[b] == 7;
    }
    for (int y = 0; y < 40; ++y) {
      for (int x = 0; x < 30; ++x) {
        if (sample.image.row(y)[x] > 128) {
          ASSERT_FALSE(boxes.corners.empty());
          const auto& box = boxes.corners[0];
          EXPECT_TRUE(float(x) + 1.5f >= box[0] && float(x) - 0.5f <= box[2] &&
                      float(y) + 1.5f >= box[1] && float(y) - 0.5f <= box[3])
              << "draw " << i << ", " << x << ", " << y;
        }
      }
    }
  }
  EXPECT_GT(kept, 60);
}

// The brightest level has so many pixels that leaving them out of the step changes it from 2 to 1.
TEST(Augment, equalize_leaves_out_the_brightest_level) {
  Image image = make_image(1, 600, 1);
  std::fill(image.pixels.begin() + 345, image.pixels.end(), uint8_t{9});
  const Image equal = equalize_image(image);
  EXPECT_EQ(equal.pixels[0], 0);
  EXPECT_EQ(equal.pixels[599], 255);
}

TEST(Augment, each_step_has_numbers_of_its_own) {
  const Transform noise = pixelwise([](Image& image, philox::Stream& random) {
    image.pixels[0] = static_cast<uint8_t>(random.next());
  });
  const Transform greedy = pixelwise([](Image&, philox::Stream& random) {
    for (int i = 0; i < 100; ++i) {
      random.next();
    }
  });
  const Transform none = pixelwise([](Image&, philox::Stream&) {});
  std::set<int> other_steps, other_calls;
  for (int64_t i = 0; i < 30; ++i) {
    Image a = make_image(1, 1, 1), b = a, c = a;
    philox::Stream first = sample_stream(1, 0, i), second = first, third = first;
    sequence({none, noise})(a, first);
    sequence({greedy, noise})(b, second);
    sequence({none, none, noise})(c, third);
    EXPECT_EQ(a, b);  // a different number of draws in the step before changes nothing
    other_steps.insert(a.pixels[0] ^ c.pixels[0]);
    philox::Stream again = sample_stream(1, 0, i);
    noise(a, again);
    noise(b, again);
    other_calls.insert(a.pixels[0] ^ b.pixels[0]);  // the next call draws other numbers
  }
  EXPECT_GT(other_steps.size(), 20u);
  EXPECT_GT(other_calls.size(), 20u);
}

TEST(Augment, policies_change_grey_and_coloured_images) {
  for (const int channels : {1, 3}) {
    const std::vector<Transform> policies{rand_augment(), trivial_augment_wide(), aug_mix(),
                                          aug_mix({.all_ops = false}),
                                          color_jitter(0.4, 0.4, 0.4, 0.1)};
    for (const Transform& policy : policies) {
      std::set<std::vector<uint8_t>> different;
      for (int64_t i = 0; i < 40; ++i) {
        Image image = picture(19, 23, channels, 3), same = image;
        philox::Stream random = sample_stream(2, 3, i), again = random;
        policy(image, random);
        policy(same, again);
        EXPECT_EQ(image, same);
        EXPECT_EQ(std::tuple(image.height, image.width, image.channels),
                  std::tuple(19, 23, channels));
        different.insert(image.pixels);
      }
      EXPECT_GT(different.size(), 15u);
    }
  }
  Sample masked = sample_of(20, 20);
  philox::Stream random(1, 1);
  EXPECT_ERROR(rand_augment()(masked, random), "does not say what it does to the mask 'mask'");
  masked.masks.clear();
  EXPECT_ERROR(trivial_augment_wide()(masked, random),
               "does not say what it does to the boxes 'boxes'");
}

TEST(Augment, erasing_sets_one_rectangle) {
  int erased = 0;
  for (int64_t i = 0; i < 200; ++i) {
    Image image = make_image(30, 40, 3);
    std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{9});
    philox::Stream random = sample_stream(1, 1, i);
    random_erasing({.p = 0.5, .value = {1, 2, 3}})(image, random);
    const auto count = std::count(image.pixels.begin(), image.pixels.end(), uint8_t{2});
    erased += count > 0;
    EXPECT_LE(count, 0.34 * 1200);
    EXPECT_EQ(std::count(image.pixels.begin(), image.pixels.end(), uint8_t{3}), count);
  }
  EXPECT_NEAR(erased, 100, 30);
}

TEST(Augment, a_loader_pads_boxes) {
  std::vector<Sample> samples;
  for (int i = 0; i < 6; ++i) {
    samples.push_back(sample_of(20, 16));
    samples.back().boxes[0].second.corners.resize(static_cast<size_t>(i % 3));
    samples.back().boxes[0].second.labels.resize(static_cast<size_t>(i % 3));
  }
  const ListDataset dataset(samples);
  LoaderOptions options{.batch = 3, .workers = 2, .shuffle = false};
  options.transform = sequence({random_rotation(10), random_crop(12, 12)});
  options.collate = pad({{.field = "boxes"}, {.field = "boxes_labels", .value = -1}});
  Loader loader(dataset, options);
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch["boxes"].sizes(), (Dims{3, 2, 4}));
    EXPECT_EQ(batch["boxes_labels"].sizes(), (Dims{3, 2}));
    EXPECT_EQ(batch["mask"].sizes(), (Dims{3, 12, 12}));
  }
}

TEST(Augment, wrong_arguments) {
  EXPECT_ERROR(random_vertical_flip(2), "p 2");
  EXPECT_ERROR(random_rotation(-3), "degrees -3");
  EXPECT_ERROR(random_rotation(Range{5, 3}), "degrees 5 to 3");
  EXPECT_ERROR(random_affine(3, {.scale = Range{0, 1}}), "scale 0");
  EXPECT_ERROR(random_affine(3, {.translate = std::array{0.1, 2.0}}), "translate");
  EXPECT_ERROR(random_perspective({.distortion_scale = 2}), "distortion_scale 2");
  EXPECT_ERROR(color_jitter(-1), "brightness -1");
  EXPECT_ERROR(color_jitter(0, 0, 0, 0.7), "hue 0.7");
  EXPECT_ERROR(gaussian_blur(4), "kernel_size 4");
  EXPECT_ERROR(random_posterize(9), "bits 9");
  EXPECT_ERROR(random_solarize(300), "threshold 300");
  EXPECT_ERROR(rand_augment({.magnitude = 31}), "magnitude 31");
  EXPECT_ERROR(aug_mix({.severity = 11}), "severity 11");
  EXPECT_ERROR(random_erasing({.ratio = {0, 1}}), "ratio 0");
  EXPECT_ERROR(random_choice({}), "no transforms");
  const Image image = picture(8, 8, 3, 1);
  EXPECT_ERROR(gaussian_blur_image(image, {.height = 3, .width = 17}), "half the kernel");
  EXPECT_ERROR(five_crop(image, 9, 2), "at most 8 x 8");
  EXPECT_ERROR(pad_image(image, {.left = 8, .mode = PaddingMode::reflect}), "mode reflect");
  EXPECT_ERROR(rotate_image(image, {.angle = 3}, {.fill = {1, 2}}), "2 values of fill");
  EXPECT_ERROR(adjust_hue(picture(2, 2, 4, 1), 0.1), "4 channels");
  const Corners line{{{0, 0}, {1, 1}, {2, 2}, {3, 3}}};
  EXPECT_ERROR(perspective_coefficients(line, line), "lie on one line");
}

}  // namespace
}  // namespace binade::data::augment_test
