// Generates an image folder of glyphs: letters and digits as strokes in random colours, rotated,
// sheared and shifted, over clutter and noise. Files are DIR/{train,test}/<class>/NNNNN, half PNG
// and half JPEG. Every picture is a pure function of (seed, part, number).
#pragma once
#include <binade/data/sample.h>

#include <string>

namespace binade::data {

struct GlyphOptions {
  uint64_t seed = 0;
  int classes = 10;  // 10 to 20
  int train = 6000;
  int test = 1200;
  int size = 32;  // height and width in pixels, 16 to 128
};

// Makes DIR, or reuses it if its marker file names the same options. It is written beside DIR, as
// DIR.X.tmp, and renamed at the end, so DIR is complete or absent; remains of killed processes are
// deleted. Several processes may make it at once: the first finished folder becomes DIR. Throws if
// DIR holds anything else. Returns true if it was made now.
bool make_glyph_folder(const std::string& directory, const GlyphOptions& options = {});

// Draws one picture: glyph `label` with the random numbers of (seed, part, number). The image is
// [size, size, 3].
Image draw_glyph(int label, const GlyphOptions& options, int part, int number);

}  // namespace binade::data
