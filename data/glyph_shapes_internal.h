// The strokes of the glyphs: digits and letters as polylines in a box of -1..1, y downwards.
#pragma once
#include <vector>

namespace binade::data::internal {

struct Point {
  float x, y;
};
using Polyline = std::vector<Point>;

inline constexpr int kMaxGlyphs = 20;

// The name of glyph `label` (one character), and its strokes with curves already flattened.
char glyph_name(int label);
const std::vector<Polyline>& glyph_strokes(int label);

}  // namespace binade::data::internal
