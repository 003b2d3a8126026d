// Geometry: consecutive windows as one. Internal to data.
#pragma once
#include <binade/data/sample.h>
#include <binade/data/window/window.h>

namespace binade::data::internal {

// The pixels of a rectangle at (top, left) of a picture, or of a copy that is `denominator` times
// smaller.
struct PixelView {
  const uint8_t* pixels;
  ptrdiff_t stride;  // bytes from a row to the next
  int channels;
  int top = 0, left = 0, height = 0, width = 0;  // in pixels of the copy
  int denominator = 1;
};
PixelView view_of(const Image& image);

// A rectangle of pixels.
struct Box {
  int top = 0, left = 0, height = 0, width = 0;
};

// Resizes without antialiasing: to nearest or nearest_exact pixels, or between 2 or 4 of them in
// each direction, as torch's interpolate(align_corners=False, antialias=False).
Image resize_plain(const Image& image, int height, int width, Interpolation interpolation);

class Geometry {
 public:
  // For a picture of that size. Throws Error if the window has no pixels or is too large.
  Geometry(const Window& window, int height, int width);

  // Adds the window that comes next. False if it needs pixels outside, or a second resize.
  bool add(const Window& next);
  int height() const { return kept_.height; }
  int width() const { return kept_.width; }
  // The largest of 1, 2, 4 and 8 by which the crop may be reduced so that both its sides are still
  // `gap` times as long as after the resize. Without a resize, or with gap 0, it is 1.
  int denominator(double gap) const;
  // The pixels of the picture, reduced by `denominator`, that are needed; inside the picture.
  Box needed(int denominator = 1) const;
  // REQUIRES: the view has the needed pixels. `out` keeps its memory.
  void apply(const PixelView& view, Image& out) const;

 private:
  bool resizes() const;
  bool is_inside() const;
  bool is_antialiased() const;
  void copy(const PixelView& view, Image& out) const;
  void resample(const PixelView& view, Image& out) const;
  void resize_crop(const PixelView& view, Image& out) const;

  Window window_;
  int height_, width_;  // of the picture
  Box kept_;            // of the result
};

}  // namespace binade::data::internal
