// BatchAssembler: images, labels and masks; then the collate function.
#include <binade/data/collate/batch_assembler_internal.h>
#include <binade/data/collate/collate_internal.h>
#include <binade/data/fields_internal.h>

#include <algorithm>
#include <cstring>

namespace binade::data {

BatchAssembler::BatchAssembler(int channels, const LoaderOptions& options)
    : options_(options),
      channels_(channels),
      collate_(options.collate ? options.collate : stack()) {
  const bool raw = options.image_dtype == DType::u8;
  check(raw || options.image_dtype == DType::f32 || is_half(options.image_dtype),
        "loader: got image_dtype ", options.image_dtype, ", expected f32, f16, bf16 or u8");
  check(
      !raw || (options.channels_last && options.mean.empty() && options.deviation.empty()),
      "loader: got image_dtype u8 with a mean, a deviation or channels_last = false; give them to "
      "data::finish_images, which normalises on the device of the batch");
  if (channels > 0) {
    normalizer_.emplace(channels, options.mean, options.deviation);
  }
}

void BatchAssembler::assemble(std::span<const Sample> samples, BuiltBatch& out) const {
  Batch& batch = out.batch;
  const Sample& first = samples.front();
  batch.size = std::ssize(samples);
  check_same_fields(samples);
  check_kinds(samples);
  add_labels(samples, batch);
  if (channels_ > 0 || !first.image.pixels.empty()) {
    add_images(samples, batch);
  } else {
    check(
        options_.mean.empty() && options_.deviation.empty(),
        "loader: got a mean or a deviation, which images have, for samples without images; change "
        "numbers by LoaderOptions::map, or where they are made");
    add_values(samples, batch);
  }
  out.has_pictures = batch.images.defined();
  add_masks(samples, batch);
  collate(samples, batch);
}

// Throws unless all samples have an image or none has; the same for values. None may have both.
void BatchAssembler::check_kinds(std::span<const Sample> samples) const {
  const Sample& first = samples.front();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    const bool has_image = !sample.image.pixels.empty();
    if (channels_ <= 0 && has_image == first.image.pixels.empty()) {
      throw SampleError(i, has_image ? "has an image, those before have none"
                                     : "has no image, those before have one");
    }
    if (has_image && !sample.values.empty()) {
      throw SampleError(i,
                        "has an image and values, expected one of them; add the values as a "
                        "field (Sample::fields)");
    }
    if (sample.values.size() != first.values.size()) {
      throw SampleError(i, text("has ", sample.values.size(), " values, the batch began with ",
                                first.values.size()));
    }
  }
  check(!first.has("images") || (first.image.pixels.empty() && first.values.empty()),
        "loader: the samples have a field \"images\" beside their image or values; rename it");
}

void BatchAssembler::add_labels(std::span<const Sample> samples, Batch& batch) const {
  const Sample& first = samples.front();
  if (first.has("labels") || first.label == kNoLabel) {
    for (size_t i = 0; i < samples.size() && !first.has("labels"); ++i) {
      if (samples[i].label != kNoLabel) {
        throw SampleError(i, "has a label, those before have none");
      }
    }
    return;
  }
  Tensor labels = empty({batch.size}, DType::i64);
  int64_t* to = labels.data<int64_t>();
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].label == kNoLabel) {
      throw SampleError(i, "has no label, those before have one");
    }
    to[i] = samples[i].label;
  }
  batch.labels = std::move(labels);
}

void BatchAssembler::add_images(std::span<const Sample> samples, Batch& batch) const {
  const Image& first = samples.front().image;
  const int channels = channels_ > 0 ? channels_ : first.channels;
  std::optional<Normalizer> own;
  if (!normalizer_) {
    own.emplace(channels, options_.mean, options_.deviation);
  }
  const Normalizer& normalizer = normalizer_ ? *normalizer_ : *own;
  const Dims sizes = {batch.size, channels, first.height, first.width};
  batch.images = options_.channels_last
                     ? empty_strided(sizes, channels_last_strides(sizes), options_.image_dtype)
                     : empty(sizes, options_.image_dtype);
  const int64_t pixels = int64_t(first.height) * first.width;
  const size_t bytes = static_cast<size_t>(pixels * channels) * size_of(options_.image_dtype);
  std::byte* y = batch.images.view().data;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Image& image = samples[i].image;
    if (image.height != first.height || image.width != first.width || image.channels != channels ||
        static_cast<int64_t>(image.pixels.size()) != pixels * image.channels) {
      throw SampleError(i, text("is ", image.height, " x ", image.width, " x ", image.channels,
                                ", the batch began with ", first.height, " x ", first.width, " x ",
                                channels, "; set an image size, so that all are resized"));
    }
    if (options_.image_dtype == DType::u8) {
      std::memcpy(y + i * bytes, image.pixels.data(), bytes);
      continue;
    }
    normalizer.apply(image.pixels.data(), y + i * bytes, options_.image_dtype, pixels,
                     options_.channels_last ? 0 : pixels);
  }
}

void BatchAssembler::add_values(std::span<const Sample> samples, Batch& batch) const {
  if (samples.front().values.empty()) {
    return;
  }
  batch.images = empty({batch.size, std::ssize(samples.front().values)}, DType::f32);
  float* y = batch.images.data<float>();
  for (const Sample& sample : samples) {
    y = std::copy(sample.values.begin(), sample.values.end(), y);
  }
}

void BatchAssembler::add_masks(std::span<const Sample> samples, Batch& batch) const {
  const Sample& first = samples.front();
  for (size_t m = 0; m < first.masks.size(); ++m) {
    const auto& [name, shape] = first.masks[m];
    check(!name.empty() && !batch.has(name) && !first.has(name),
          "loader: the samples have several fields '", name, "', one of them a mask; rename one");
    const Tensor mask = empty({batch.size, shape.height, shape.width}, DType::i64);
    int64_t* y = mask.data<int64_t>();
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample& sample = samples[i];
      if (m >= sample.masks.size() || sample.masks[m].first != name) {
        throw SampleError(i, text("has no mask '", name, "', the batch began with one"));
      }
      const Image& own = sample.masks[m].second;
      const Image& image = sample.image.pixels.empty() ? shape : sample.image;
      if (own.channels != 1 || own.height != image.height || own.width != image.width ||
          own.height != shape.height || own.width != shape.width) {
        throw SampleError(i, text("has the mask '", name, "' of ", own.height, " x ", own.width,
                                  " x ", own.channels, ", expected ", image.height, " x ",
                                  image.width, " x 1, as its image"));
      }
      y = std::copy(own.pixels.begin(), own.pixels.end(), y);
    }
    batch.set(name, mask);
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].masks.size() != first.masks.size()) {
      throw SampleError(i, text("has ", samples[i].masks.size(), " masks, the batch began with ",
                                first.masks.size()));
    }
  }
}

void BatchAssembler::collate(std::span<const Sample> samples, Batch& batch) const {
  try {
    collate_(samples, batch);
    check_fields("collate", batch.fields);
  } catch (const SampleError&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("loader: out of memory in the collate function");
  } catch (const std::exception& error) {
    throw CollateError(error.what());
  } catch (...) {
    throw CollateError("unknown exception");
  }
  if (!batch.images.defined() && !batch.labels.defined() && batch.fields.empty()) {
    check(!options_.collate, "loader: the collate function left the batch without fields");
    throw SampleError(0, "has no image, no values, no label and no fields");
  }
}

}  // namespace binade::data
