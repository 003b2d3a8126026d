// Compares MixUp, CutMix and the last stage of the images with plain loops, on the CPU and on the
// emulated device.
#include <binade/core/device/device_info.h>
#include <binade/core/ops.h>
#include <binade/data/augment/mix.h>
#include <binade/data/loader.h>
#include <binade/data/sets/list_dataset.h>

#include <cmath>

#include "tests/data/test_files.h"

namespace binade::data::mix_test {
namespace {

using test::picture;

Batch batch_of(int64_t n) {
  Batch batch;
  batch.images = empty({n, 3, 6, 5}, DType::f32);
  float* x = batch.images.data<float>();
  for (int64_t i = 0; i < batch.images.numel(); ++i) {
    x[i] = static_cast<float>((i * 37) % 101);
  }
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    labels.push_back(i % 4);
    batch.indices.push_back(10 + i);
  }
  batch.labels = Tensor::from(labels);
  batch.size = n;
  return batch;
}

TEST(Mix, mixup_mixes_images_and_labels_by_one_share) {
  const Batch batch = batch_of(4);
  philox::Stream random(1, 2), same = random;
  const Batch mixed = mix(batch, {.kind = MixKind::mixup, .num_classes = 4, .alpha = 0.4}, random);
  same.next();
  const auto own = static_cast<float>(draw_mixup(0.4, same).own);
  const float *x = batch.images.data<float>(), *y = mixed.images.data<float>();
  for (int64_t n = 0; n < 4; ++n) {
    for (int64_t i = 0; i < 90; ++i) {
      EXPECT_NEAR(y[90 * n + i], own * x[90 * n + i] + (1 - own) * x[90 * ((n + 3) % 4) + i], 1e-4);
    }
    for (int64_t c = 0; c < 4; ++c) {
      EXPECT_NEAR(mixed.labels.data<float>()[4 * n + c],
                  (c == n ? own : 0) + (c == (n + 3) % 4 ? 1 - own : 0), 1e-6);
    }
  }
}

TEST(Mix, cutmix_takes_a_box_from_the_sample_before) {
  const Batch batch = batch_of(3);
  for (uint64_t draw = 0; draw < 50; ++draw) {
    philox::Stream random(3, draw);
    const Mixing m = draw_cutmix(batch, 1, random);
    const Tensor mixed = mix_images(batch.images, m);
    int64_t cut = 0;
    for (int64_t i = 0; i < mixed.numel(); ++i) {
      const int64_t w = i % 5, h = i / 5 % 6, n = i / 90;
      const bool inside = h >= m.top && h < m.bottom && w >= m.left && w < m.right;
      cut += inside && i < 30;
      const int64_t from = inside ? (n + 2) % 3 * 90 + i % 90 : i;
      ASSERT_EQ(mixed.data<float>()[i], batch.images.data<float>()[from]);
    }
    EXPECT_NEAR(m.own, 1 - double(cut) / 30, 1e-12);
  }
}

TEST(Mix, shares_have_the_beta_distribution) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    double sum = 0, square = 0;
    constexpr int kDraws = 20'000;
    for (int i = 0; i < kDraws; ++i) {
      philox::Stream random(8, static_cast<uint64_t>(i));
      const double own = draw_mixup(alpha, random).own;
      ASSERT_TRUE(own >= 0 && own <= 1);
      sum += own;
      square += own * own;
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.015);
    EXPECT_NEAR(square / kDraws - 0.25, 1 / (4 * (2 * alpha + 1)), 0.01) << alpha;
  }
}

// Compares finish_images() with normalisation in double.
void check_stage(Device device, DType dtype, bool channels_last, const Mixing& m) {
  constexpr int64_t kImages = 3, kHeight = 5, kWidth = 7, kChannels = 3;
  Tensor x = empty({kImages, kHeight, kWidth, kChannels}, DType::u8);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.data<uint8_t>()[i] = static_cast<uint8_t>((i * 53 + i / 7) % 256);
  }
  const std::vector<float> mean{0.4f, 0.5f, 0.3f}, deviation{0.2f, 0.3f, 0.25f};
  const std::vector<uint8_t> flips{1, 0, 1};
  const Tensor y = finish_images(x.to(device),
                                 {.mean = mean,
                                  .deviation = deviation,
                                  .dtype = dtype,
                                  .channels_last = channels_last,
                                  .flip = Tensor::from(flips).to(device),
                                  .mixing = m},
                                 true);
  EXPECT_EQ(y.device(), device);
  EXPECT_EQ(y.dtype(), dtype);
  const Tensor got = y.to(Device{}).to(DType::f32).contiguous();
  const auto pixel = [&](int64_t n, int64_t h, int64_t w, int64_t c) {
    const int64_t column = flips[static_cast<size_t>(n)] != 0 ? kWidth - 1 - w : w;
    return double(x.data<uint8_t>()[((n * kHeight + h) * kWidth + column) * kChannels + c]);
  };
  for (int64_t i = 0; i < got.numel(); ++i) {
    const int64_t w = i % kWidth, h = i / kWidth % kHeight, c = i / kWidth / kHeight % kChannels,
                  n = i / kWidth / kHeight / kChannels;
    const bool inside = h >= m.top && h < m.bottom && w >= m.left && w < m.right;
    const double own = m.has_box ? (inside ? 0 : 1) : m.own;
    const double value = own * pixel(n, h, w, c) + (1 - own) * pixel((n + 2) % 3, h, w, c);
    const auto at = static_cast<size_t>(c);
    const double expected = (value / 255 - double(mean[at])) / double(deviation[at]);
    ASSERT_NEAR(got.data<float>()[i], expected, dtype == DType::f32 ? 1e-5 : 0.03) << i;
  }
}

TEST(FinishImages, mirrors_mixes_normalises_and_lays_out) {
  std::vector<Device> devices{Device{}};
#ifdef BINADE_HOST_EXECUTION
  devices.push_back(Device::parse("emulated"));
#endif
  for (const Device device : devices) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const bool channels_last : {true, false}) {
        check_stage(device, dtype, channels_last, {});
        check_stage(device, dtype, channels_last, {.own = 0.3});
        check_stage(device, dtype, channels_last,
                    {.own = 0.5, .has_box = true, .top = 1, .left = 2, .bottom = 4, .right = 7});
      }
    }
  }
}

TEST(FinishImages, takes_the_bytes_of_a_loader) {
  std::vector<Sample> samples;
  for (int i = 0; i < 5; ++i) {
    samples.push_back({.image = picture(8, 6, 3, static_cast<uint64_t>(i)), .label = i});
  }
  const ListDataset dataset(samples);
  const std::vector<float> mean{0.4f, 0.5f, 0.3f}, deviation{0.2f, 0.3f, 0.25f};
  LoaderOptions options{.batch = 5, .workers = 0, .shuffle = false};
  options.image_dtype = DType::u8;
  Loader raw(dataset, options);
  options.image_dtype = DType::f32;
  options.mean = mean;
  options.deviation = deviation;
  Loader normalised(dataset, options);
  const Tensor bytes = (*raw.begin()).images;
  EXPECT_EQ(bytes.dtype(), DType::u8);
  const Tensor y = finish_images(bytes, {.mean = mean, .deviation = deviation});
  const Tensor expected = (*normalised.begin()).images;
  EXPECT_EQ(y.sizes(), expected.sizes());
  for (int64_t i = 0; i < y.numel(); ++i) {
    ASSERT_NEAR(y.data<float>()[i], expected.data<float>()[i], 1e-6);
  }
  options.image_dtype = DType::u8;
  EXPECT_ERROR(Loader(dataset, options), "finish_images");
}

TEST(Mix, within_a_loader) {
  std::vector<Sample> samples;
  for (int i = 0; i < 6; ++i) {
    samples.push_back({.image = picture(8, 6, 3, static_cast<uint64_t>(i)), .label = i % 3});
  }
  const ListDataset dataset(samples);
  LoaderOptions options{.batch = 3, .shuffle = false};
  options.collate = mixed({.kind = MixKind::either, .num_classes = 3, .seed = 4});
  std::vector<std::vector<float>> streams;
  for (const int workers : {0, 2}) {
    options.workers = workers;
    Loader loader(dataset, options);
    std::vector<float>& values = streams.emplace_back();
    for (const Batch& batch : loader.epoch(1)) {
      EXPECT_EQ(batch.labels.sizes(), (Dims{3, 3}));
      const Tensor flat = batch.labels.contiguous();
      for (int64_t i = 0; i < 9; ++i) {
        values.push_back(flat.data<float>()[i]);
      }
      const Tensor images = batch.images.contiguous();
      values.push_back(images.data<float>()[7]);
    }
  }
  EXPECT_EQ(streams[0], streams[1]);
}

TEST(Mix, wrong_arguments) {
  const Batch batch = batch_of(2);
  philox::Stream random(1, 1);
  EXPECT_ERROR(mix(batch, {}, random), "num_classes 0");
  EXPECT_ERROR(draw_mixup(0, random), "alpha 0");
  EXPECT_ERROR(mix(batch, {.p = 2}, random), "p 2");
  EXPECT_ERROR(finish_images(batch.images, {}), "u8 images");
  EXPECT_ERROR(finish_images(empty({1, 3, 4, 4}, DType::u8), {}), "channels-last");
}

}  // namespace
}  // namespace binade::data::mix_test
