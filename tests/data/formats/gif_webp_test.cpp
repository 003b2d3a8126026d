// Tests the pixels of small GIF and WebP files (tests/fuzz/seeds.py), limits, and truncations.
#include <binade/data/decode.h>

#include <numeric>

#include "tests/data/test_files.h"

namespace binade::data::gif_webp_test {
namespace {

using test::decode;

std::vector<uint8_t> corpus(const std::string& name) {
  return read_file(BINADE_SOURCE_DIR "/tests/fuzz/corpus/" + name, 1 << 20);
}

// The pixels of palette indices; colour i is (3 i, 3 i + 1, 3 i + 2).
std::vector<uint8_t> coloured(const std::vector<int>& indices) {
  std::vector<uint8_t> pixels;
  for (const int i : indices) {
    for (int c = 0; c < 3; ++c) {
      pixels.push_back(static_cast<uint8_t>(3 * i + c));
    }
  }
  return pixels;
}

TEST(Gif, pixels) {
  const Image plain = decode(corpus("gif/good-plain.gif"));
  EXPECT_EQ(std::tuple(plain.height, plain.width, plain.channels), std::tuple(2, 3, 3));
  EXPECT_EQ(plain.pixels, coloured({0, 1, 2, 3, 2, 1}));
  // Eleven pixels in codes for runs; two of the codes stand for the string that is being added.
  EXPECT_EQ(decode(corpus("gif/good-runs.gif")).pixels, coloured(std::vector<int>(11, 0)));
  EXPECT_EQ(decode(corpus("gif/good-256.gif")).pixels.size(), 48u);
}

TEST(Gif, interlaced_rows_come_in_four_passes) {
  const Image image = decode(corpus("gif/good-interlaced.gif"));  // 9 rows of 2, in file order
  const int order[] = {0, 8, 4, 2, 6, 1, 3, 5, 7};
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(image.row(order[i])[0], 3 * ((2 * i) % 4)) << "row " << order[i];
  }
}

TEST(Gif, the_frame_lies_on_the_screen) {
  const Image inside = decode(corpus("gif/good-inside.gif"), {.channels = 4});
  EXPECT_EQ(std::pair(inside.height, inside.width), std::pair(4, 5));
  EXPECT_EQ(std::vector<uint8_t>(inside.row(1) + 8, inside.row(1) + 16),
            (std::vector<uint8_t>{3, 4, 5, 255, 6, 7, 8, 255}));
  EXPECT_EQ(std::accumulate(inside.row(0), inside.row(1), 0), 0);  // transparent black
  const Image outside = decode(corpus("gif/good-outside.gif"));    // as large as both
  EXPECT_EQ(std::pair(outside.height, outside.width), std::pair(3, 3));
  const Image clear = decode(corpus("gif/good-transparent.gif"), {.channels = 4});
  EXPECT_EQ(clear.pixels[3], 0);  // index 2
  EXPECT_EQ(clear.pixels[7], 255);
}

TEST(Gif, errors) {
  EXPECT_ERROR(decode(corpus("gif/bad-early.gif")), "end before its last pixel");
  EXPECT_ERROR(decode(corpus("gif/bad-code.gif")), "is possible");
  EXPECT_ERROR(decode(corpus("gif/bad-wide.gif")), "the limit of a side");
  EXPECT_ERROR(decode(corpus("gif/bad-colour.gif")), "the palette has 4 colours");
  DecodeOptions small{.limits = {.max_pixels = 5}};
  EXPECT_ERROR(decode(corpus("gif/good-plain.gif"), small), "max_pixels");
}

TEST(Webp, pixels) {
  if (!has_libwebp()) {
    EXPECT_ERROR(decode(corpus("webp/good-lossless.webp")), "no libwebp");
    GTEST_SKIP() << "skipped: no libwebp";
  }
  const Image image = decode(corpus("webp/good-lossless.webp"));
  ASSERT_EQ(std::tuple(image.height, image.width, image.channels), std::tuple(3, 5, 3));
  for (int i = 0; i < 15; ++i) {
    const uint8_t* p = image.pixels.data() + 3 * i;
    EXPECT_EQ(std::tuple(p[0], p[1], p[2]), std::tuple(i * 17 % 256, i * 40 % 256, 255 - i * 9));
  }
  const Image turned = decode(corpus("webp/good-exif.webp"));  // orientation 6
  EXPECT_EQ(std::pair(turned.height, turned.width), std::pair(5, 3));
  EXPECT_EQ(turned.pixels[6], image.pixels[0]);  // the first pixel moves to the right
  const Image alpha = decode(corpus("webp/good-alpha.webp"), {.channels = 4});
  EXPECT_EQ(alpha.pixels[4 * 5 + 3], 100);
  EXPECT_EQ(decode(corpus("webp/good-alpha.webp"), {.channels = 1}).channels, 1);
  DecodeOptions small{.limits = {.max_side = 4}};
  EXPECT_ERROR(decode(corpus("webp/good-lossless.webp"), small), "max_side");
}

TEST(Webp, the_first_frame_of_an_animation) {
  if (!has_libwebp()) {
    GTEST_SKIP() << "skipped: no libwebp";
  }
  EXPECT_EQ(decode(corpus("webp/good-animated.webp")), decode(corpus("webp/good-lossless.webp")));
}

// No truncated file gives a picture.
TEST(GifAndWebp, every_cut_is_an_error) {
  for (const std::string name :
       {"gif/good-plain.gif", "gif/good-256.gif", "webp/good-lossless.webp",
        "webp/good-lossy-alpha.webp", "webp/good-animated.webp"}) {
    const std::vector<uint8_t> bytes = corpus(name);
    const size_t spare = name.starts_with("gif") ? 3 : 0;  // the end of data and the trailer
    for (size_t length = 1; length + spare < bytes.size(); ++length) {
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_THROW(decode(cut), Error) << name << " cut to " << length;
    }
  }
}

}  // namespace
}  // namespace binade::data::gif_webp_test
