#include <binade/data/glyph_painter_internal.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::data::internal {

Painter::Painter(int size)
    : size_(size), canvas_(3 * static_cast<size_t>(size) * size), nearest_(canvas_.size() / 3) {}

void Painter::gradient(const Color& from, const Color& to, float dx, float dy) {
  const float scale = 1.0f / static_cast<float>(size_);
  for (int y = 0; y < size_; ++y) {
    for (int x = 0; x < size_; ++x) {
      const float u = static_cast<float>(x) * scale - 0.5f,
                  v = static_cast<float>(y) * scale - 0.5f;
      const float t = std::clamp(0.5f + u * dx + v * dy, 0.0f, 1.0f);
      for (int c = 0; c < 3; ++c) {
        pixel(y, x)[c] = from[c] + (to[c] - from[c]) * t;
      }
    }
  }
}

void Painter::blend(int y, int x, const Color& color, float share) {
  float* to = pixel(y, x);
  for (int c = 0; c < 3; ++c) {
    to[c] += (color[c] - to[c]) * share;
  }
}

void Painter::stroke(const std::vector<Polyline>& lines, float width, const Color& color,
                     float opacity) {
  std::fill(nearest_.begin(), nearest_.end(), std::numeric_limits<float>::max());
  const float reach = 0.5f * width + 1;
  const auto low = [&](float a) { return std::clamp(static_cast<int>(a - reach), 0, size_ - 1); };
  const auto high = [&](float a) {
    return std::clamp(static_cast<int>(a + reach) + 1, 0, size_ - 1);
  };
  for (const Polyline& line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      const Point a = line[i], b = line[i + 1];
      const float dx = b.x - a.x, dy = b.y - a.y;
      const float inverse = 1 / std::max(dx * dx + dy * dy, 1e-6f);
      for (int y = low(std::min(a.y, b.y)); y <= high(std::max(a.y, b.y)); ++y) {
        for (int x = low(std::min(a.x, b.x)); x <= high(std::max(a.x, b.x)); ++x) {
          const float px = static_cast<float>(x) - a.x, py = static_cast<float>(y) - a.y;
          const float t = std::clamp((px * dx + py * dy) * inverse, 0.0f, 1.0f);
          const float ex = px - t * dx, ey = py - t * dy;
          float& nearest = nearest_[static_cast<size_t>(y) * size_ + x];
          nearest = std::min(nearest, ex * ex + ey * ey);
        }
      }
    }
  }
  for (int y = 0; y < size_; ++y) {
    for (int x = 0; x < size_; ++x) {
      const float nearest = nearest_[static_cast<size_t>(y) * size_ + x];
      if (nearest < reach * reach) {
        const float cover = std::clamp(0.5f * width + 0.5f - std::sqrt(nearest), 0.0f, 1.0f);
        blend(y, x, color, cover * opacity);
      }
    }
  }
}

void Painter::disc(Point center, float radius, const Color& color, float opacity) {
  stroke({{center, center}}, 2 * radius, color, opacity);
}

Image Painter::finish() const {
  Image image = make_image(size_, size_, 3);
  std::transform(canvas_.begin(), canvas_.end(), image.pixels.begin(), [](float value) {
    return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
  });
  return image;
}

}  // namespace binade::data::internal
