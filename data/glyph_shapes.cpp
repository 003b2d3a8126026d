#include <binade/data/glyph_shapes_internal.h>

#include <array>
#include <utility>

namespace binade::data::internal {
namespace {

constexpr char kNames[kMaxGlyphs + 1] = "0123456789AEFHKLMPTX";

// A smooth curve through the points (Catmull-Rom) with each span split into four lines. It is
// closed if its last point equals its first.
Polyline curve(const Polyline& points) {
  constexpr int kCuts = 4;
  const int last = static_cast<int>(points.size()) - 1;
  const bool closed = points[0].x == points[last].x && points[0].y == points[last].y;
  const auto at = [&](int i) {
    if (closed) {
      return points[(i + last) % last];
    }
    return points[i < 0 ? 0 : (i > last ? last : i)];
  };
  const auto blend = [](float a, float b, float c, float d, float t) {
    return 0.5f * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t +
                   (3 * b - a - 3 * c + d) * t * t * t);
  };
  Polyline out = {points[0]};
  for (int i = 0; i < last; ++i) {
    const Point a = at(i - 1), b = at(i), c = at(i + 1), d = at(i + 2);
    for (int k = 1; k <= kCuts; ++k) {
      const float t = static_cast<float>(k) / kCuts;
      out.push_back({blend(a.x, b.x, c.x, d.x, t), blend(a.y, b.y, c.y, d.y, t)});
    }
  }
  return out;
}

Polyline turned(Polyline points) {  // rotates by 180 degrees
  for (Point& point : points) {
    point = {-point.x, -point.y};
  }
  return points;
}

using Strokes = std::vector<Polyline>;

Strokes digit(int value) {
  const Polyline six = curve(
      {{.45f, -.95f}, {-.25f, -.5f}, {-.55f, .35f}, {0, 1}, {.52f, .45f}, {0, -.05f}, {-.5f, .4f}});
  switch (value) {
    case 0:
      return {
          curve({{0, -1}, {.6f, -.5f}, {.6f, .5f}, {0, 1}, {-.6f, .5f}, {-.6f, -.5f}, {0, -1}})};
    case 1: return {{{-.4f, -.55f}, {.05f, -1}, {.05f, 1}}};
    case 2:
      return {curve({{-.55f, -.55f}, {0, -1}, {.55f, -.5f}, {.1f, .2f}, {-.6f, 1}}),
              {{-.6f, 1}, {.65f, 1}}};
    case 3:
      return {curve({{-.5f, -.8f}, {.1f, -1}, {.5f, -.55f}, {-.1f, -.08f}}),
              curve({{-.1f, -.08f}, {.6f, .45f}, {.05f, 1}, {-.55f, .75f}})};
    case 4: return {{{.3f, 1}, {.3f, -1}, {-.6f, .35f}, {.65f, .35f}}};
    case 5:
      return {{{.5f, -1}, {-.42f, -1}, {-.48f, -.1f}},
              curve({{-.48f, -.1f}, {.15f, -.3f}, {.6f, .3f}, {.1f, 1}, {-.55f, .75f}})};
    case 6: return {six};
    case 7: return {{{-.6f, -1}, {.6f, -1}, {-.15f, 1}}};
    case 8:
      return {curve({{0, -1}, {.45f, -.55f}, {0, -.1f}, {-.45f, -.55f}, {0, -1}}),
              curve({{0, -.1f}, {.58f, .45f}, {0, 1}, {-.58f, .45f}, {0, -.1f}})};
    default: return {turned(six)};
  }
}

Strokes letter(char name) {
  const Polyline stem = {{-.5f, -1}, {-.5f, 1}};
  switch (name) {
    case 'A': return {{{-.65f, 1}, {0, -1}, {.65f, 1}}, {{-.38f, .3f}, {.38f, .3f}}};
    case 'E': return {{{.5f, -1}, {-.5f, -1}, {-.5f, 1}, {.5f, 1}}, {{-.5f, 0}, {.35f, 0}}};
    case 'F': return {{{.5f, -1}, {-.5f, -1}, {-.5f, 1}}, {{-.5f, 0}, {.35f, 0}}};
    case 'H': return {stem, {{.5f, -1}, {.5f, 1}}, {{-.5f, 0}, {.5f, 0}}};
    case 'K': return {stem, {{.55f, -1}, {-.5f, .1f}}, {{-.15f, -.25f}, {.6f, 1}}};
    case 'L': return {{{-.5f, -1}, {-.5f, 1}, {.55f, 1}}};
    case 'M': return {{{-.7f, 1}, {-.6f, -1}, {0, .3f}, {.6f, -1}, {.7f, 1}}};
    case 'P':
      return {stem, curve({{-.5f, -1}, {.3f, -.95f}, {.5f, -.5f}, {.3f, -.05f}, {-.5f, 0}})};
    case 'T': return {{{-.65f, -1}, {.65f, -1}}, {{0, -1}, {0, 1}}};
    default: return {{{-.6f, -1}, {.6f, 1}}, {{.6f, -1}, {-.6f, 1}}};
  }
}

}  // namespace

char glyph_name(int label) { return kNames[label]; }

const std::vector<Polyline>& glyph_strokes(int label) {
  static const std::array<Strokes, kMaxGlyphs> kStrokes = [] {
    std::array<Strokes, kMaxGlyphs> strokes;
    for (int i = 0; i < kMaxGlyphs; ++i) {
      strokes[i] = i < 10 ? digit(i) : letter(kNames[i]);
    }
    return strokes;
  }();
  return kStrokes[label];
}

}  // namespace binade::data::internal
