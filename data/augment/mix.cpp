#include <binade/core/ops.h>
#include <binade/data/augment/draws_internal.h>
#include <binade/data/augment/mix.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/image/image_normalize.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

constexpr uint64_t kBatchKey = 0x4D49'5845'4442'4154, kFlipKey = 0x464C'4950'5049'4354;
constexpr int kFirstBits = 40;

void check_alpha(const char* op, double alpha) {
  check(alpha > 0 && std::isfinite(alpha), op, ": got alpha ", alpha,
        ", expected a number above 0");
}

// For each sample of the batch the one before it (for the first, the last).
Tensor before(const Tensor& x) { return roll(x, {1}, {0}); }

}  // namespace

philox::Stream batch_stream(uint64_t seed, const Batch& batch) {
  return {seed ^ kBatchKey,
          static_cast<uint64_t>(batch.epoch) << kFirstBits | static_cast<uint64_t>(batch.first)};
}

Mixing draw_mixup(double alpha, philox::Stream& random) {
  check_alpha("mixup", alpha);
  return {.own = internal::draw_beta(random, alpha)};
}

Mixing draw_cutmix(int64_t height, int64_t width, double alpha, philox::Stream& random) {
  check_alpha("cutmix", alpha);
  check(height >= 1 && width >= 1 && height <= INT32_MAX && width <= INT32_MAX,
        "cutmix: got images of ", height, " x ", width, ", expected at least 1 x 1");
  const double own = internal::draw_beta(random, alpha);
  const int64_t x = random.next_below(static_cast<uint32_t>(width)),
                y = random.next_below(static_cast<uint32_t>(height));
  const double half = 0.5 * std::sqrt(1 - own);
  const auto across = static_cast<int64_t>(half * static_cast<double>(width)),
             down = static_cast<int64_t>(half * static_cast<double>(height));
  Mixing mixing{.has_box = true,
                .top = std::max<int64_t>(y - down, 0),
                .left = std::max<int64_t>(x - across, 0),
                .bottom = std::min(y + down, height),
                .right = std::min(x + across, width)};
  const int64_t area = (mixing.bottom - mixing.top) * (mixing.right - mixing.left);
  mixing.own = 1 - static_cast<double>(area) / static_cast<double>(height * width);
  return mixing;
}

Mixing draw_cutmix(const Batch& batch, double alpha, philox::Stream& random) {
  check(batch.images.defined() && batch.images.dim() == 4,
        "cutmix: got a batch without pictures, expected images [N, C, H, W]");
  return draw_cutmix(batch.images.size(2), batch.images.size(3), alpha, random);
}

Tensor mix_images(const Tensor& images, const Mixing& mixing) {
  check(images.defined() && images.dim() == 4 && is_floating(images.dtype()),
        "mix: got images that are not floating [N, C, H, W]; finish_images mixes u8");
  if (mixing.own == 1) {
    return images;
  }
  if (!mixing.has_box) {
    return images * mixing.own + before(images) * (1 - mixing.own);
  }
  const int64_t height = images.size(2), width = images.size(3);
  check(mixing.top >= 0 && mixing.top <= mixing.bottom && mixing.bottom <= height &&
            mixing.left >= 0 && mixing.left <= mixing.right && mixing.right <= width,
        "mix: got a box that leaves images of ", height, " x ", width);
  Tensor out = images.clone();
  const auto box = [&](const Tensor& x) {
    return slice(slice(x, 2, mixing.top, mixing.bottom), 3, mixing.left, mixing.right);
  };
  box(out).copy_(box(before(images)));
  return out;
}

Tensor mix_labels(const Tensor& labels, const Mixing& mixing, int64_t classes) {
  check(labels.defined() && (labels.dim() == 1 || labels.dim() == 2),
        "mix: got no labels, expected classes [N] or probabilities [N, classes]");
  check(labels.dim() == 2 || (labels.dtype() == DType::i64 && classes >= 1),
        "mix: got labels of dtype ", labels.dtype(), " and num_classes ", classes,
        ", expected i64 classes [N] and their number");
  check(labels.dim() == 1 || classes == 0 || labels.size(1) == classes,
        "mix: got probabilities of ", labels.dim() == 2 ? labels.size(1) : 0,
        " classes, expected num_classes ", classes);
  const Tensor own = labels.dim() == 1 ? one_hot(labels, classes).to(DType::f32) : labels;
  return mixing.own == 1 ? own : own * mixing.own + before(own) * (1 - mixing.own);
}

Batch mix(const Batch& batch, const MixOptions& o, philox::Stream& random) {
  check(o.p >= 0 && o.p <= 1, "mix: got p ", o.p, ", expected 0 to 1");
  const bool mixes = internal::draw_uniform(random, 0, 1) < o.p;
  const bool cuts =
      o.kind == MixKind::cutmix || (o.kind == MixKind::either && random.next_below(2) == 0);
  const Mixing mixing = !mixes ? Mixing()
                        : cuts ? draw_cutmix(batch, o.alpha, random)
                               : draw_mixup(o.alpha, random);
  Batch out = batch;
  out.images = mix_images(batch.images, mixing);
  out.labels = mix_labels(batch.labels, mixing, o.num_classes);
  return out;
}

Collate mixed(const MixOptions& options, Collate collate) {
  check_alpha("mix", options.alpha);
  const Collate inner = collate ? std::move(collate) : stack();
  return [=](std::span<const Sample> samples, Batch& batch) {
    inner(samples, batch);
    philox::Stream random = batch_stream(options.seed, batch);
    batch = mix(batch, options, random);
  };
}

Tensor draw_flips(uint64_t seed, const Batch& batch, double p) {
  check(p >= 0 && p <= 1, "draw_flips: got p ", p, ", expected 0 to 1");
  Tensor flips = empty({std::ssize(batch.indices)}, DType::u8);
  uint8_t* to = flips.data<uint8_t>();
  for (const int64_t index : batch.indices) {
    philox::Stream random(seed ^ kFlipKey, static_cast<uint64_t>(batch.epoch) << kFirstBits |
                                               static_cast<uint64_t>(index));
    *to++ = internal::draw_uniform(random, 0, 1) < p ? 1 : 0;
  }
  return batch.images.defined() ? flips.to(batch.images.device()) : flips;
}

Tensor finish_images(const Tensor& images, const ImageStage& stage, bool is_nhwc) {
  check(images.defined() && images.dim() == 4 && images.dtype() == DType::u8,
        "finish_images: expected u8 images of four dimensions");
  const Tensor x = is_nhwc ? images : permute(images, {0, 2, 3, 1});
  check(x.is_contiguous(),
        "finish_images: got images whose channels are not the innermost; give "
        "them with channels-last strides, as a Loader with image_dtype u8 does");
  const int64_t channels = x.size(3);
  const auto fits = [&](const std::vector<float>& values) {
    return values.empty() || std::ssize(values) == channels;
  };
  check(channels <= kernels::kMaxImageChannels && fits(stage.mean) && fits(stage.deviation),
        "finish_images: got ", std::ssize(stage.mean), " means and ", std::ssize(stage.deviation),
        " deviations for ", channels, " channels, expected one each, of at most 4 channels");
  const Dims sizes{x.size(0), channels, x.size(1), x.size(2)};
  Tensor y = stage.channels_last
                 ? empty_strided(sizes, channels_last_strides(sizes), stage.dtype, x.device())
                 : empty(sizes, stage.dtype, x.device());
  std::array<float, kernels::kMaxImageChannels> scale{}, shift{};
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    constexpr double kWhite = 255;
    const double mean = stage.mean.empty() ? 0 : double{stage.mean[c]},
                 deviation = stage.deviation.empty() ? 1 : double{stage.deviation[c]};
    check(std::isfinite(mean) && std::isfinite(deviation) && deviation > 0,
          "finish_images: got mean ", mean, " and deviation ", deviation,
          ", expected finite numbers and a deviation above 0");
    scale[c] = static_cast<float>(1 / (kWhite * deviation));
    shift[c] = static_cast<float>(-mean / deviation);
  }
  const Mixing& m = stage.mixing;
  kernels::ImageMix mix;
  if (m.own != 1) {
    mix.inside = m.has_box ? 0 : static_cast<float>(m.own);
    mix.top = m.top;
    mix.left = m.left;
    mix.bottom = m.has_box ? m.bottom : sizes[2];
    mix.right = m.has_box ? m.right : sizes[3];
  }
  kernels::image_normalize({.x = x,
                            .y = y,
                            .scale = scale,
                            .shift = shift,
                            .flip = stage.flip.defined() ? stage.flip.view() : kNoView,
                            .mix = mix});
  return y;
}

}  // namespace binade::data
