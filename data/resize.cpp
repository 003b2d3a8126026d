// resize_image(): the resampler of kernels/image on an Image.
#include <binade/data/transforms.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/kernels/base/error.h>

namespace binade::data {

Image resize_image(const Image& image, int height, int width, Interpolation interpolation) {
  check(height >= 1 && width >= 1 && image.height >= 1 && image.width >= 1, "resize: got ",
        image.height, " x ", image.width, " to ", height, " x ", width,
        ", expected sides of at least 1");
  if (image.height == height && image.width == width) {
    return image;
  }
  const Window window{.height = image.height,
                      .width = image.width,
                      .out_height = height,
                      .out_width = width,
                      .interpolation = interpolation};
  Image out;
  internal::Geometry(window, image.height, image.width).apply(internal::view_of(image), out);
  return out;
}

}  // namespace binade::data
