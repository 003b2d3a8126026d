// Geometry: joins consecutive windows into one, and computes its pixels.
#include <binade/data/transforms.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/image/resample_bytes.h>

#include <algorithm>
#include <cmath>

namespace binade::data::internal {
namespace {

using kernels::ResampleAxis;
using kernels::ResampleFilter;

constexpr int kMaxImageSide = 1 << 30;

ResampleFilter filter_of(Interpolation interpolation) {
  return interpolation == Interpolation::bicubic ? ResampleFilter::bicubic
                                                 : ResampleFilter::bilinear;
}

// One direction of a crop that is resized, in a copy of the picture that is `denominator` times
// smaller. Positions count from the first pixel of the copy that the crop touches.
struct CropAxis {
  int origin;
  ResampleAxis axis;

  CropAxis(int begin, int length, int out, int denominator)
      : origin(begin / denominator),
        axis{.in = static_cast<int>(kernels::ceil_div(begin + length, denominator)) - origin,
             .begin = double(begin) / denominator - origin,
             .length = double(length) / denominator,
             .out = out} {}
  CropAxis& keep(int first, int count) {
    axis.first = first;
    axis.count = count;
    return *this;
  }
};

// The resampler of this thread: its buffers are reused.
kernels::Resampler& resampler() {
  static thread_local kernels::Resampler instance;
  return instance;
}

void reshape(Image& image, int height, int width, int channels) {
  image.height = height;
  image.width = width;
  image.channels = channels;
  image.pixels.resize(static_cast<size_t>(height) * static_cast<size_t>(width) *
                      static_cast<size_t>(channels));
}

}  // namespace

PixelView view_of(const Image& image) {
  return {.pixels = image.pixels.data(),
          .stride = ptrdiff_t{image.width} * image.channels,
          .channels = image.channels,
          .height = image.height,
          .width = image.width};
}

Geometry::Geometry(const Window& window, int height, int width)
    : window_(window), height_(height), width_(width) {
  check(window.height >= 1 && window.width >= 1 && window.height <= kMaxImageSide &&
            window.width <= kMaxImageSide && std::abs(int64_t{window.top}) <= kMaxImageSide &&
            std::abs(int64_t{window.left}) <= kMaxImageSide,
        "window: got ", window.height, " x ", window.width, " at ", window.top, ", ", window.left,
        ", expected sides of 1 to ", kMaxImageSide);
  check(window.out_height >= 0 && window.out_height <= kMaxImageSide && window.out_width >= 0 &&
            window.out_width <= kMaxImageSide &&
            (window.out_height == 0) == (window.out_width == 0),
        "window: got a resize to ", window.out_height, " x ", window.out_width,
        ", expected sides of 1 to ", kMaxImageSide, ", or twice 0 to keep the size");
  if (window_.out_height == 0) {
    window_.out_height = window_.height;
    window_.out_width = window_.width;
  }
  kept_ = {0, 0, window_.out_height, window_.out_width};
}

bool Geometry::resizes() const {
  return window_.out_height != window_.height || window_.out_width != window_.width;
}

bool Geometry::is_inside() const {
  return window_.top >= 0 && window_.left >= 0 && window_.top + window_.height <= height_ &&
         window_.left + window_.width <= width_;
}

// True if the resampler does the resize; it reads only pixels of the crop.
bool Geometry::is_antialiased() const {
  return window_.antialias && (window_.interpolation == Interpolation::bilinear ||
                               window_.interpolation == Interpolation::bicubic);
}

bool Geometry::add(const Window& next) {
  const Geometry follower(next, kept_.height, kept_.width);
  const Window& w = follower.window_;
  if (!follower.is_inside()) {
    return false;
  }
  if (!follower.resizes()) {
    kept_ = {kept_.top + w.top, kept_.left + w.left, w.height, w.width};
    return true;
  }
  if (resizes() || !is_inside()) {
    return false;
  }
  const int top = window_.top + kept_.top + w.top, left = window_.left + kept_.left + w.left;
  window_ = w;
  window_.top = top;
  window_.left = left;
  kept_ = {0, 0, w.out_height, w.out_width};
  return true;
}

int Geometry::denominator(double gap) const {
  if (gap <= 0 || !resizes() || !is_inside() || !is_antialiased()) {
    return 1;
  }
  for (const int denominator : {8, 4, 2}) {
    const double reduction = denominator * gap;
    if (window_.height >= reduction * window_.out_height &&
        window_.width >= reduction * window_.out_width) {
      return denominator;
    }
  }
  return 1;
}

Box Geometry::needed(int denominator) const {
  if (!resizes() || !is_inside() || !is_antialiased()) {
    // Without a resize only the kept part. Outside pixels are zeros; at least one is decoded.
    const bool whole = resizes();
    const int top = window_.top + (whole ? 0 : kept_.top),
              left = window_.left + (whole ? 0 : kept_.left);
    const int bottom = top + (whole ? window_.height : kept_.height),
              right = left + (whole ? window_.width : kept_.width);
    Box box{std::clamp(top, 0, height_ - 1), std::clamp(left, 0, width_ - 1), 0, 0};
    box.height = std::clamp(bottom, box.top + 1, height_) - box.top;
    box.width = std::clamp(right, box.left + 1, width_) - box.left;
    return box;
  }
  const ResampleFilter filter = filter_of(window_.interpolation);
  CropAxis rows(window_.top, window_.height, window_.out_height, denominator);
  CropAxis columns(window_.left, window_.width, window_.out_width, denominator);
  const auto y = inputs_of(rows.keep(kept_.top, kept_.height).axis, filter);
  const auto x = inputs_of(columns.keep(kept_.left, kept_.width).axis, filter);
  return {rows.origin + y.first, columns.origin + x.first, y.last - y.first, x.last - x.first};
}

void Geometry::copy(const PixelView& view, Image& out) const {
  reshape(out, kept_.height, kept_.width, view.channels);
  std::fill(out.pixels.begin(), out.pixels.end(), uint8_t{0});
  const int top = window_.top + kept_.top - view.top, left = window_.left + kept_.left - view.left;
  const int first = std::max(0, -left), last = std::min(kept_.width, view.width - left);
  const int end = std::min(kept_.height, view.height - top);
  for (int y = std::max(0, -top); y < end && first < last; ++y) {
    const uint8_t* from =
        view.pixels + (top + y) * view.stride + ptrdiff_t{left + first} * view.channels;
    std::copy_n(from, ptrdiff_t{last - first} * view.channels,
                out.row(y) + ptrdiff_t{first} * view.channels);
  }
}

void Geometry::resample(const PixelView& view, Image& out) const {
  reshape(out, kept_.height, kept_.width, view.channels);
  CropAxis rows(window_.top, window_.height, window_.out_height, view.denominator);
  CropAxis columns(window_.left, window_.width, window_.out_width, view.denominator);
  const ptrdiff_t down = rows.origin - view.top, across = columns.origin - view.left;
  resampler()({.x = view.pixels + down * view.stride + across * view.channels,
               .x_stride = view.stride,
               .channels = view.channels,
               .rows = rows.keep(kept_.top, kept_.height).axis,
               .columns = columns.keep(kept_.left, kept_.width).axis,
               .filter = filter_of(window_.interpolation),
               .y = out.pixels.data()});
}

// Copies the crop, then resizes it: for crops with pixels outside, and for other interpolations.
void Geometry::resize_crop(const PixelView& view, Image& out) const {
  Geometry crop = *this;
  crop.window_.out_height = window_.height;
  crop.window_.out_width = window_.width;
  crop.kept_ = {0, 0, window_.height, window_.width};
  Image padded;
  crop.copy(view, padded);
  if (!is_antialiased()) {
    const Image resized =
        resize_plain(padded, window_.out_height, window_.out_width, window_.interpolation);
    out = crop_image(resized, kept_.top, kept_.left, kept_.height, kept_.width);
    return;
  }
  Geometry rest = *this;
  rest.window_.top = rest.window_.left = 0;
  rest.height_ = window_.height;
  rest.width_ = window_.width;
  rest.resample(view_of(padded), out);
}

void Geometry::apply(const PixelView& view, Image& out) const {
  if (!resizes()) {
    copy(view, out);
  } else if (is_inside() && is_antialiased()) {
    resample(view, out);
  } else {
    resize_crop(view, out);
  }
}

}  // namespace binade::data::internal
