#include <binade/core/io/file_system.h>
#include <binade/data/decode.h>
#include <binade/data/encode.h>
#include <binade/data/glyph_painter_internal.h>
#include <binade/data/glyphs.h>
#include <binade/data/temporary_folder_internal.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/philox.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace binade::data {
namespace {

namespace fs = std::filesystem;
using internal::Color;
using internal::Point;
using internal::Polyline;

constexpr char kMarker[] = "binade-glyphs.txt";

float between(philox::Stream& random, float low, float high) {
  return low + (high - low) * random.next_uniform();
}

Color random_color(philox::Stream& random) {
  return {between(random, 0, 255), between(random, 0, 255), between(random, 0, 255)};
}

float luma(const Color& color) { return 0.3f * color[0] + 0.59f * color[1] + 0.11f * color[2]; }

// A colour whose luma differs from that of `other` by at least `contrast`.
Color contrasting_color(philox::Stream& random, const Color& other, float contrast) {
  constexpr int kTries = 64;
  for (int i = 0; i < kTries; ++i) {
    const Color color = random_color(random);
    if (std::abs(luma(color) - luma(other)) >= contrast) {
      return color;
    }
  }
  return luma(other) < 128 ? Color{255, 255, 255} : Color{0, 0, 0};
}

// Rotates (by up to about 25 degrees), shears, scales and shifts the strokes; the result is in
// pixels.
std::vector<Polyline> place(const std::vector<Polyline>& strokes, philox::Stream& random,
                            int size) {
  const float half_tangent = between(random, -.22f, .22f);  // tan(angle / 2): no sine needed
  const float below = 1 / (1 + half_tangent * half_tangent);
  const float cosine = (1 - half_tangent * half_tangent) * below, sine = 2 * half_tangent * below;
  const float shear = between(random, -.25f, .25f);
  const auto side = static_cast<float>(size);
  const float tall = side * between(random, .26f, .40f), wide = tall * between(random, .8f, 1.15f);
  const float center_x = side * between(random, .42f, .58f) - 0.5f;
  const float center_y = side * between(random, .42f, .58f) - 0.5f;
  const float wobble = between(random, 0, .06f);
  std::vector<Polyline> out = strokes;
  for (Polyline& line : out) {
    for (Point& point : line) {
      const float jitter_x = between(random, -wobble, wobble);
      const float jitter_y = between(random, -wobble, wobble);
      const float x = wide * (point.x + jitter_x + shear * point.y),
                  y = tall * (point.y + jitter_y);
      point = {center_x + cosine * x - sine * y, center_y + sine * x + cosine * y};
    }
  }
  return out;
}

Point random_point(philox::Stream& random, int size) {
  const auto side = static_cast<float>(size);
  const float x = between(random, 0, side);
  return {x, between(random, 0, side)};
}

// Draws short strokes and discs that belong to no class.
void clutter(internal::Painter& painter, philox::Stream& random) {
  const auto side = static_cast<float>(painter.size());
  for (uint32_t i = random.next_below(3); i > 0; --i) {
    const Point center = random_point(random, painter.size());
    const float radius = side * between(random, .03f, .12f);
    const Color color = random_color(random);
    painter.disc(center, radius, color, between(random, .2f, .5f));
  }
  for (uint32_t i = random.next_below(4); i > 0; --i) {
    const Point from = random_point(random, painter.size());
    const float dx = side * between(random, -.3f, .3f), dy = side * between(random, -.3f, .3f);
    const float width = side * between(random, .02f, .05f);
    const Color color = random_color(random);
    painter.stroke({{from, {from.x + dx, from.y + dy}}}, width, color, between(random, .25f, .6f));
  }
}

// Adds the sum of four uniform numbers to each value: close to normal noise, and exact in f32.
void add_noise(internal::Painter& painter, philox::Stream& random, float deviation) {
  const float scale = deviation * 1.7320508f;  // four uniforms have variance 1/3
  for (int y = 0; y < painter.size(); ++y) {
    for (int i = 0; i < 3 * painter.size(); ++i) {
      const uint32_t bits = random.next();
      const uint32_t sum =
          (bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24 & 255);
      painter.pixel(y, 0)[i] += (static_cast<float>(sum) / 255 - 2) * scale;
    }
  }
}

void check_options(const GlyphOptions& options) {
  check(options.classes >= 10 && options.classes <= internal::kMaxGlyphs, "glyphs: got ",
        options.classes, " classes, expected 10 to ", internal::kMaxGlyphs);
  constexpr int kMaxImages = 1'000'000;
  check(options.train >= options.classes && options.train <= kMaxImages &&
            options.test >= options.classes && options.test <= kMaxImages,
        "glyphs: got ", options.train, " training and ", options.test,
        " test images, expected at least one per class and at most ", kMaxImages);
  check(options.size >= 16 && options.size <= 128, "glyphs: got size ", options.size,
        ", expected 16 to 128");
}

std::string marker_text(const GlyphOptions& options) {
  return text("binade glyphs 1\nseed ", options.seed, "\nclasses ", options.classes, "\ntrain ",
              options.train, "\ntest ", options.test, "\nsize ", options.size, "\n");
}

void write_file(const fs::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  check(file.good(), path.native(), ": cannot write the file; is the disk full?");
}

void write_glyph(const fs::path& directory, const GlyphOptions& options, int part, int number) {
  const int label = number % options.classes, in_class = number / options.classes;
  const Image image = draw_glyph(label, options, part, number);
  const bool jpeg = has_libjpeg() && in_class % 2 == 1;
  char name[32];
  std::snprintf(name, sizeof name, "%05d.%s", in_class, jpeg ? "jpg" : "png");
  constexpr int kQuality = 92;
  constexpr int kLevel = 1;
  write_file(directory / std::string(1, internal::glyph_name(label)) / name,
             jpeg ? encode_jpeg(image, kQuality) : encode_png(image, kLevel));
}

void write_part(const fs::path& directory, const GlyphOptions& options, int part, int count) {
  for (int label = 0; label < options.classes; ++label) {
    fs::create_directories(directory / std::string(1, internal::glyph_name(label)));
  }
  constexpr int64_t kGrain = 16;
  kernels::parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      write_glyph(directory, options, part, static_cast<int>(number));
    }
  });
}

// True if the folder was made with the same options; throws if it is anything else.
bool is_made(const fs::path& directory, const GlyphOptions& options) {
  std::error_code ignored;
  if (!fs::exists(directory, ignored) || fs::is_empty(directory, ignored)) {
    return false;
  }
  check(fs::is_regular_file(directory / kMarker, ignored), directory.native(),
        ": the folder is not empty and holds no glyphs; give another folder");
  constexpr int64_t kMaxMarker = 4096;
  const std::vector<uint8_t> bytes = read_file(directory / kMarker, kMaxMarker);
  check(std::string(bytes.begin(), bytes.end()) == marker_text(options), directory.native(),
        ": holds glyphs made with other options; delete it or give another folder");
  return true;
}

}  // namespace

Image draw_glyph(int label, const GlyphOptions& options, int part, int number) {
  check_options(options);
  check(label >= 0 && label < options.classes, "glyphs: got label ", label, ", expected one of ",
        options.classes);
  philox::Stream random(options.seed,
                        static_cast<uint64_t>(part) << 32 | static_cast<uint32_t>(number));
  internal::Painter painter(options.size);
  const Color paper = random_color(random);
  Color other_paper = random_color(random);
  const float mix = between(random, 0, .25f);
  for (int c = 0; c < 3; ++c) {
    other_paper[c] = paper[c] + (other_paper[c] - paper[c]) * mix;
  }
  const float direction = between(random, -1, 1);
  painter.gradient(paper, other_paper, direction, 1 - std::abs(direction));
  clutter(painter, random);

  const Color ink = contrasting_color(random, paper, 75);
  const float width = static_cast<float>(options.size) * between(random, .055f, .125f);
  const std::vector<Polyline> strokes = place(internal::glyph_strokes(label), random, options.size);
  painter.stroke(strokes, width, ink, 1);
  add_noise(painter, random, between(random, 2, 14));
  return painter.finish();
}

bool make_glyph_folder(const std::string& directory, const GlyphOptions& options) {
  check_options(options);
  fs::path target = directory;
  if (!target.has_filename()) {
    target = target.parent_path();  // "dir/" means dir
  }
  check(target.has_filename(), "glyphs: got no folder name");
  try {
    if (is_made(target, options)) {
      return false;
    }
    internal::TemporaryFolder temporary(target, kMarker, marker_text(options));
    write_part(temporary.path() / "train", options, 0, options.train);
    write_part(temporary.path() / "test", options, 1, options.test);
    // Another process may have created the folder meanwhile.
    const bool made = temporary.rename_to_target();
    check(made || is_made(target, options), target.native(), ": the name was taken meanwhile");
    return made;
  } catch (const fs::filesystem_error& error) {
    fail("glyphs: cannot write ", target.native(), ": ", error.code().message());
  } catch (const FileError& error) {
    fail("glyphs: cannot write ", target.native(), ": ", error.what());
  }
}

}  // namespace binade::data
