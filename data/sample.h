// Image and Sample: what a dataset returns for one index or row. Plain memory, no tensors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace binade::data {

// An 8-bit picture, row by row, channels innermost (HWC); 1 channel is grey, 3 are red, green,
// blue.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;  // [height, width, channels]

  const uint8_t* row(int y) const { return pixels.data() + offset(y); }
  uint8_t* row(int y) { return pixels.data() + offset(y); }
  bool operator==(const Image&) const = default;

 private:
  size_t offset(int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width) * static_cast<size_t>(channels);
  }
};

// A black picture of the given size.
Image make_image(int height, int width, int channels);

struct Sample {
  Image image;
  int64_t label = 0;
  std::vector<float> values = {};  // instead of an image: a row of numbers (data/iterable.h)
};

}  // namespace binade::data
