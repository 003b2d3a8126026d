// A small painter on an RGB float canvas. It draws anti-aliased discs and strokes with round ends,
// using only + - * / and square roots, so pixels are the same on every machine.
#pragma once
#include <binade/data/glyph_shapes_internal.h>
#include <binade/data/sample.h>

#include <array>

namespace binade::data::internal {

using Color = std::array<float, 3>;  // 0..255

class Painter {
 public:
  explicit Painter(int size);
  int size() const { return size_; }
  float* pixel(int y, int x) { return &canvas_[3 * (static_cast<size_t>(y) * size_ + x)]; }

  // A linear gradient over the whole canvas along (dx, dy), a direction of length about 1.
  void gradient(const Color& from, const Color& to, float dx, float dy);
  // Draws lines through the points (in pixels), `width` pixels thick.
  void stroke(const std::vector<Polyline>& lines, float width, const Color& color, float opacity);
  void disc(Point center, float radius, const Color& color, float opacity);
  Image finish() const;  // rounds and clamps

 private:
  void blend(int y, int x, const Color& color, float share);

  int size_;
  std::vector<float> canvas_;   // [size, size, 3]
  std::vector<float> nearest_;  // [size, size] squared distance to the current stroke
};

}  // namespace binade::data::internal
