// Pictures as tensors and as files: Image <-> Tensor, grids of a batch, PNG and JPEG.
//
//   Tensor x = data::to_tensor(data::read_image("cat.jpg"));
//   data::save_png("samples.png", data::make_grid(decoder(z), {.columns = 8}));
//
// A tensor of a picture is [C, H, W], or [H, W] for one channel, on any device and in any memory
// order. Floating values run from 0 (black) to 1; values beyond, also infinities, become the
// nearest of the two, and NaN is an error. u8 runs from 0 to 255; of bool, true is white. Other
// dtypes are an error.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/data/sample.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace binade::data {

// y = (x - mean) / deviation per channel, for x = pixels / 255, as the Loader computes it. Empty: a
// mean of 0, a deviation of 1.
struct Normalization {
  std::vector<float> mean = {};       // [channels]
  std::vector<float> deviation = {};  // [channels], above 0
};

// f32 [C, H, W] from 0 to 1, or normalised, on the CPU.
Tensor to_tensor(const Image& image, const Normalization& normalization = {});
// The picture of a tensor of 1 to 4 channels, each value rounded to the nearest of 256. The
// normalization is taken back (floating dtypes only): to_image(to_tensor(image, n), n) == image.
Image to_image(const Tensor& picture, const Normalization& normalization = {});

// The names are those of torchvision.utils.make_grid.
struct GridOptions {
  int64_t columns = 8;
  int64_t padding = 2;   // pixels around every picture
  double pad_value = 0;  // of these pixels, 0 black to 1 white
  // Maps these two values to 0 and 1: {{-1, 1}} for the results of tanh.
  std::optional<std::array<double, 2>> value_range = std::nullopt;
  bool normalize = false;   // maps the smallest and the largest value of the batch to 0 and 1
  bool scale_each = false;  // the same of each picture
};

// The pictures of a batch [N, C, H, W], row by row, as one picture [C, rows (H + padding) +
// padding, columns (W + padding) + padding], on the batch's device. Its dtype is the batch's, or
// f32 if values are mapped. Fewer than `columns` pictures make one shorter row.
Tensor make_grid(const Tensor& batch, const GridOptions& options = {});

// These write the file durably: after a crash it holds the old or the new picture
// (core/io/file_system.h). PNG takes 1 to 4 channels; `level` is zlib's, 0 to 9. JPEG takes 1 or 3;
// `quality` is 1 to 100.
void save_png(const std::string& path, const Image& image, int level = 6);
void save_png(const std::string& path, const Tensor& picture, int level = 6);
void save_jpeg(const std::string& path, const Image& image, int quality = 90);
void save_jpeg(const std::string& path, const Tensor& picture, int quality = 90);

}  // namespace binade::data
