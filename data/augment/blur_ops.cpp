// The Gaussian blur, one direction after the other. torchvision multiplies with the outer product
// of both kernels, which differs only in the order of the sums.
#include <binade/data/augment/image_ops_internal.h>
#include <binade/kernels/image/augment_bytes_isa_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::data {
namespace {

// The weights of `size` taps.
std::vector<float> gaussian(int size, double sigma) {
  const double deviation = sigma > 0 ? sigma : size * 0.15 + 0.35;
  std::vector<double> weights;
  double sum = 0;
  for (int i = 0; i < size; ++i) {
    const double x = (i - (size - 1) / 2.0) / deviation;
    weights.push_back(std::exp(-x * x / 2));
    sum += weights.back();
  }
  std::vector<float> out;
  std::transform(weights.begin(), weights.end(), std::back_inserter(out),
                 [sum](double weight) { return static_cast<float>(weight / sum); });
  return out;
}

// A place outside [0, size) mirrored at the first or last one.
int reflected(int i, int size) { return i < 0 ? -i : (i >= size ? 2 * size - 2 - i : i); }

void check_kernel(const Image& image, const GaussianKernel& kernel) {
  check(kernel.height >= 1 && kernel.height % 2 == 1 && kernel.width >= 1 && kernel.width % 2 == 1,
        "gaussian_blur: got a kernel of ", kernel.height, " x ", kernel.width,
        ", expected odd numbers of pixels");
  check(kernel.sigma_y >= 0 && kernel.sigma_x >= 0 && std::isfinite(kernel.sigma_y) &&
            std::isfinite(kernel.sigma_x),
        "gaussian_blur: got sigma ", kernel.sigma_y, " and ", kernel.sigma_x,
        ", expected positive numbers");
  check(kernel.height / 2 < image.height && kernel.width / 2 < image.width,
        "gaussian_blur: got a kernel of ", kernel.height, " x ", kernel.width, " for an image of ",
        image.height, " x ", image.width,
        ", expected half the kernel to be smaller than the image");
}

}  // namespace

Image gaussian_blur_image(const Image& image, const GaussianKernel& kernel) {
  check_kernel(image, kernel);
  const std::vector<float> down = gaussian(kernel.height, kernel.sigma_y),
                           across = gaussian(kernel.width, kernel.sigma_x);
  const int margin = kernel.width / 2;
  const auto channels = static_cast<size_t>(image.channels);
  const size_t row_values = static_cast<size_t>(image.width) * channels;
  Image out = internal::same_shape(image);
  // A row blurred downwards, with reflected columns on both sides.
  std::vector<float> row((static_cast<size_t>(image.width) + 2 * static_cast<size_t>(margin)) *
                         channels);
  float* middle = row.data() + static_cast<size_t>(margin) * channels;
  std::vector<const uint8_t*> rows(down.size());
  std::vector<const float*> shifted(across.size());
  for (size_t t = 0; t < shifted.size(); ++t) {
    shifted[t] = row.data() + t * channels;
  }
  for (int y = 0; y < image.height; ++y) {
    for (size_t t = 0; t < rows.size(); ++t) {
      rows[t] = image.row(reflected(y + static_cast<int>(t) - kernel.height / 2, image.height));
    }
    kernels::weigh_rows_best(kernels::WeighRows{.bytes_in = rows.data(),
                                                .floats_in = nullptr,
                                                .weight = down.data(),
                                                .taps = kernel.height,
                                                .count = static_cast<int64_t>(row_values),
                                                .floats_out = middle,
                                                .bytes_out = nullptr});
    for (int x = 1; x <= margin; ++x) {
      std::copy_n(middle + x * image.channels, channels, middle - x * image.channels);
      const int end = image.width - 1;
      std::copy_n(middle + (end - x) * image.channels, channels,
                  middle + (end + x) * image.channels);
    }
    kernels::weigh_rows_best(kernels::WeighRows{.bytes_in = nullptr,
                                                .floats_in = shifted.data(),
                                                .weight = across.data(),
                                                .taps = kernel.width,
                                                .count = static_cast<int64_t>(row_values),
                                                .floats_out = nullptr,
                                                .bytes_out = out.row(y)});
  }
  return out;
}

}  // namespace binade::data
