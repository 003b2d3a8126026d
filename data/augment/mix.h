// Changes of whole batches: MixUp and CutMix with soft labels, and the last stage of the pictures
// (mirror, mix, normalise, cast, lay out) as one kernel on the device of the batch.
//
//   data::Loader loader(photos, {.batch = 64, .image_dtype = DType::u8, .device = Device::best()});
//   for (const data::Batch& batch : loader) {
//     philox::Stream random = data::batch_stream(seed, batch);
//     const auto mixing = data::draw_cutmix(batch, 1.0, random);
//     Tensor x = data::finish_images(batch.images, {.mean = mean, .deviation = deviation,
//                                                   .mixing = mixing});
//     Tensor y = data::mix_labels(batch.labels, mixing, classes);      // [N, classes]
//     Tensor loss = cross_entropy(model(x), y);
//   }
//
// Every sample is mixed with the one before it in its batch, the first with the last, as in
// torchvision.
#pragma once
#include <binade/data/batch.h>
#include <binade/data/collate/collate.h>
#include <binade/kernels/base/philox.h>

#include <cstdint>
#include <vector>

namespace binade::data {

// MixUp: a sample keeps the share `own` of every pixel. CutMix: the box comes from the other
// sample. In both, `own` is the share of the sample's own label.
struct Mixing {
  double own = 1;
  bool has_box = false;
  int64_t top = 0, left = 0, bottom = 0, right = 0;  // bottom and right are excluded
};

// The numbers of a batch: they depend on the seed, the epoch and the batch's first sample.
philox::Stream batch_stream(uint64_t seed, const Batch& batch);
// own is Beta(alpha, alpha), alpha > 0.
Mixing draw_mixup(double alpha, philox::Stream& random);
// A box whose area is about 1 - Beta(alpha, alpha), cut at the borders; own is what is left.
Mixing draw_cutmix(int64_t height, int64_t width, double alpha, philox::Stream& random);
Mixing draw_cutmix(const Batch& batch, double alpha, philox::Stream& random);

// images: floating [N, C, H, W], on any device.
Tensor mix_images(const Tensor& images, const Mixing& mixing);
// labels: i64 classes [N] below `classes`, or floating probabilities [N, classes]. Returns
// probabilities, f32 for classes.
Tensor mix_labels(const Tensor& labels, const Mixing& mixing, int64_t classes);

enum class MixKind : uint8_t { mixup, cutmix, either };
struct MixOptions {
  MixKind kind = MixKind::mixup;
  int64_t num_classes = 0;  // needed for labels that are classes
  double alpha = 1;
  double p = 1;  // a batch is mixed with this probability; its labels are probabilities in any case
  uint64_t seed = 0;
};
// A copy of the batch whose images and labels are mixed.
Batch mix(const Batch& batch, const MixOptions& options, philox::Stream& random);
// The same within a Loader: mixes the batch that `collate` (null: data::stack()) has made, with
// random numbers that depend on options.seed, the epoch and the batch.
Collate mixed(const MixOptions& options, Collate collate = nullptr);

// u8 [N], 1 for each image to mirror, with probability p; the draw depends on its dataset index.
Tensor draw_flips(uint64_t seed, const Batch& batch, double p = 0.5);

struct ImageStage {
  std::vector<float> mean = {};       // [C] of pixels / 255; empty: 0
  std::vector<float> deviation = {};  // [C]; empty: 1
  DType dtype = DType::f32;           // f32, f16 or bf16 (f64 too)
  bool channels_last = true;
  Tensor flip = {};  // u8 [N] on the device of the images, or undefined
  Mixing mixing = {};
};
// u8 [N, C, H, W] with channels-last strides (a Loader's with image_dtype u8), or contiguous
// [N, H, W, C] if `is_nhwc`, on any device; C from 1 to 4. Returns the network's inputs
// [N, C, H, W].
Tensor finish_images(const Tensor& images, const ImageStage& stage, bool is_nhwc = false);

}  // namespace binade::data
