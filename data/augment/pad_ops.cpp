// Padding, erasing, mirroring and the crops of corners.
#include <binade/data/augment/image_ops_internal.h>

#include <algorithm>

namespace binade::data {
namespace {

// The place in [0, size) of place i of a padded row, or -1.
int source_of(int i, int size, PaddingMode mode) {
  switch (mode) {
    case PaddingMode::constant: return i >= 0 && i < size ? i : -1;
    case PaddingMode::edge: return std::clamp(i, 0, size - 1);
    case PaddingMode::reflect: return i < 0 ? -i : (i >= size ? 2 * size - 2 - i : i);
    default: {  // symmetric: also several times
      const int period = 2 * size, at = ((i % period) + period) % period;
      return at < size ? at : period - 1 - at;
    }
  }
}

void check_padding(const Image& image, const Padded& p) {
  constexpr int kMaxPadding = 32'768;
  const int sides[] = {p.left, p.top, p.right, p.bottom};
  check(std::all_of(std::begin(sides), std::end(sides),
                    [](int side) { return side >= -kMaxPadding && side <= kMaxPadding; }),
        "pad: got padding ", p.left, ", ", p.top, ", ", p.right, ", ", p.bottom,
        ", expected at most ", kMaxPadding);
  check(p.mode == PaddingMode::constant || p.mode == PaddingMode::edge ||
            std::all_of(std::begin(sides), std::end(sides), [](int side) { return side >= 0; }),
        "pad: got negative padding with the mode reflect or symmetric, expected at least 0");
  check(p.mode != PaddingMode::reflect ||
            (std::max(p.left, p.right) < image.width && std::max(p.top, p.bottom) < image.height),
        "pad: got padding ", p.left, ", ", p.top, ", ", p.right, ", ", p.bottom,
        " with the mode reflect for an image of ", image.height, " x ", image.width,
        ", expected less than its sides");
  check(image.height + p.top + p.bottom >= 1 && image.width + p.left + p.right >= 1,
        "pad: the padding leaves no pixel of an image of ", image.height, " x ", image.width);
}

}  // namespace

namespace internal {

std::vector<float> fill_for(const char* op, const Fill& fill, int channels) {
  check(std::all_of(fill.begin(), fill.end(), [](float v) { return v >= 0 && v <= 255; }), op,
        ": got a fill that is not from 0 to 255");
  check(fill.size() == 1 || std::ssize(fill) == channels, op, ": got ", std::ssize(fill),
        " values of fill for an image of ", channels, " channels, expected 1 or ", channels);
  return fill.size() == 1 ? std::vector<float>(static_cast<size_t>(channels), fill[0]) : fill;
}

}  // namespace internal

Image pad_image(const Image& image, const Padded& padding) {
  check_padding(image, padding);
  const std::vector<float> fill = internal::fill_for("pad", padding.fill, image.channels);
  Image out = make_image(image.height + padding.top + padding.bottom,
                         image.width + padding.left + padding.right, image.channels);
  const auto channels = static_cast<ptrdiff_t>(image.channels);
  for (int y = 0; y < out.height; ++y) {
    const int row = source_of(y - padding.top, image.height, padding.mode);
    uint8_t* to = out.row(y);
    for (int x = 0; x < out.width; ++x, to += channels) {
      const int column = row < 0 ? -1 : source_of(x - padding.left, image.width, padding.mode);
      if (column >= 0) {
        std::copy_n(image.row(row) + column * channels, channels, to);
      } else {
        std::transform(fill.begin(), fill.end(), to,
                       [](float value) { return static_cast<uint8_t>(value); });
      }
    }
  }
  return out;
}

Image erase_image(const Image& image, const Window& box, const Fill& value) {
  check(box.top >= 0 && box.left >= 0 && box.height >= 0 && box.width >= 0 &&
            box.height <= image.height - box.top && box.width <= image.width - box.left,
        "erase: got ", box.height, " x ", box.width, " at ", box.top, ", ", box.left,
        ", expected a rectangle in the image of ", image.height, " x ", image.width);
  const std::vector<float> fill = internal::fill_for("erase", value, image.channels);
  Image out = image;
  for (int y = box.top; y < box.top + box.height; ++y) {
    uint8_t* to = out.row(y) + ptrdiff_t{box.left} * image.channels;
    for (int x = 0; x < box.width; ++x, to += image.channels) {
      std::transform(fill.begin(), fill.end(), to,
                     [](float one) { return static_cast<uint8_t>(one); });
    }
  }
  return out;
}

Image vertical_flip_image(const Image& image) {
  Image out = internal::same_shape(image);
  const ptrdiff_t bytes = ptrdiff_t{image.width} * image.channels;
  for (int y = 0; y < image.height; ++y) {
    std::copy_n(image.row(image.height - 1 - y), bytes, out.row(y));
  }
  return out;
}

std::array<Image, 5> five_crop(const Image& image, int height, int width) {
  check(height >= 1 && width >= 1 && height <= image.height && width <= image.width,
        "five_crop: got ", height, " x ", width, ", expected at least 1 x 1 and at most ",
        image.height, " x ", image.width, ", the size of the image");
  const int down = image.height - height, right = image.width - width;
  // Half a pixel is rounded to the even number, as in Python.
  const auto half = [](int n) { return n / 2 + (n % 4 == 3 ? 1 : 0); };
  const auto cut = [&](int top, int left) { return crop_image(image, top, left, height, width); };
  return {cut(0, 0), cut(0, right), cut(down, 0), cut(down, right), cut(half(down), half(right))};
}

std::array<Image, 10> ten_crop(const Image& image, int height, int width, bool vertical) {
  std::array<Image, 5> plain = five_crop(image, height, width);
  std::array<Image, 5> mirrored =
      five_crop(vertical ? vertical_flip_image(image) : flip_image(image), height, width);
  std::array<Image, 10> all;
  std::move(plain.begin(), plain.end(), all.begin());
  std::move(mirrored.begin(), mirrored.end(), all.begin() + 5);
  return all;
}

}  // namespace binade::data
