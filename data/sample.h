// Image and Sample: what a dataset returns for one index or row.
#pragma once
#include <binade/core/io/named_tensors.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace binade::data {

// An 8-bit picture, row by row, channels innermost (HWC); 1 channel is grey, 3 are red, green,
// blue.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels = {};  // [height, width, channels]

  const uint8_t* row(int y) const { return pixels.data() + offset(y); }
  uint8_t* row(int y) { return pixels.data() + offset(y); }
  bool operator==(const Image&) const = default;

 private:
  size_t offset(int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width) * static_cast<size_t>(channels);
  }
};

// Boxes on a picture of height x width: left, top, right and bottom in pixels, and a label for each
// or none.
struct Boxes {
  int height = 0;
  int width = 0;
  std::vector<std::array<float, 4>> corners = {};
  std::vector<int64_t> labels = {};

  bool operator==(const Boxes&) const = default;
};

// A black picture of the given size.
Image make_image(int height, int width, int channels);

inline constexpr int64_t kNoLabel = std::numeric_limits<int64_t>::min();

// The channels of a dataset that leaves it to the samples.
inline constexpr int kUnknownChannels = -1;

// A picture with a label, or any named tensors, or both:
//
//   return {.fields = {{"x", Tensor::from(row)}, {"y", full({}, price)}}};
//
// All samples of a dataset have the same fields, with the same dtypes.
struct Sample {
  Image image = {};                // batch["images"], normalised by the loader
  int64_t label = kNoLabel;        // batch["labels"]
  std::vector<float> values = {};  // instead of an image: a row of numbers, batch["images"]
  NamedTensors fields = {};        // on the CPU, with memory of their own; any dtype and sizes
  // Class ids of each pixel, 1 channel, with the size of the image. The loader's transform changes
  // them with the image; batch[name] is [N, H, W] i64.
  std::vector<std::pair<std::string, Image>> masks = {};
  // Boxes on the image, which the loader's transform changes with it. They become the fields NAME
  // f32 [boxes, 4] and NAME_labels i64 [boxes]; samples differ in their number, so a loader needs
  // data::pad({{NAME}, {NAME_labels, -1}}) as collate function.
  std::vector<std::pair<std::string, Boxes>> boxes = {};

  // The tensor of that name; throws Error that lists the names there are.
  const Tensor& operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  // Adds a tensor or replaces it. A field "labels" takes the place of `label`.
  void set(std::string_view name, Tensor value);
};

}  // namespace binade::data
