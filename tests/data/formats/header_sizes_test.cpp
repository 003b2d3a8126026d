// If the size in a header is wrong, the file is too short or has unexplained bytes. A picture
// without some of its rows or columns must not be accepted.
#include <binade/data/decode.h>

#include "tests/data/test_files.h"

namespace binade::data::header_sizes_test {
namespace {

using test::decode;

std::vector<uint8_t> seed_of(const std::string& name) {
  return read_file(BINADE_SOURCE_DIR "/tests/fuzz/corpus/" + name, 1 << 20);
}

// The positions of the two bytes of a side, the lower byte first.
struct Side {
  const char* file;
  size_t at;
};

TEST(HeaderSizes, one_row_or_column_less_or_more) {
  constexpr Side kSides[] = {
      {"bmp/good-24.bmp", 22},        {"bmp/good-8.bmp", 22},     {"bmp/good-v5.bmp", 22},
      {"bmp/good-rle8-odd.bmp", 22},  {"tga/good-rgb.tga", 12},   {"tga/good-rgb.tga", 14},
      {"tga/good-runs.tga", 12},      {"tga/good-runs.tga", 14},  {"tga/good-grey-runs.tga", 12},
      {"tga/good-mapped16.tga", 12},  {"gif/good-plain.gif", 30}, {"gif/good-plain.gif", 32},
      {"gif/good-interlaced.gif", 32}};
  for (const Side& side : kSides) {
    const std::vector<uint8_t> good = seed_of(side.file);
    EXPECT_EQ(error_of([&] { decode(good); }), "none") << side.file;
    for (const int change : {-1, 1}) {
      std::vector<uint8_t> bad = good;
      bad[side.at] = static_cast<uint8_t>(bad[side.at] + change);
      EXPECT_NE(error_of([&] { decode(bad); }), "none")
          << side.file << " byte " << side.at << " " << change;
    }
  }
}

TEST(HeaderSizes, bmp_counts_its_pixels) {
  std::vector<uint8_t> bmp = seed_of("bmp/good-24.bmp");  // 3 x 2: rows of 12 bytes
  bmp[22] = 1;
  EXPECT_ERROR(decode(bmp), "24 bytes of pixels, 3 x 1 of 24 bits are 12");
  for (const uint8_t count : {0, 12, 14}) {  // missing, right, or with two more bytes
    bmp[34] = count;
    EXPECT_EQ(decode(bmp).height, 1) << int{count};
  }
  bmp[35] = 7;  // a size larger than the file is ignored
  EXPECT_EQ(decode(bmp).height, 1);
}

// In version 2 a footer has the offsets of two areas, or 0.
TEST(HeaderSizes, tga_ends_with_its_pixels_or_a_footer) {
  const std::vector<uint8_t> plain = seed_of("tga/good-rgb.tga");
  const auto end = static_cast<uint8_t>(plain.size());
  const auto with_footer = [&](size_t area_bytes, uint8_t extension, uint8_t developer) {
    std::vector<uint8_t> tga = plain;
    tga.resize(tga.size() + area_bytes, 7);
    tga.insert(tga.end(), {extension, 0, 0, 0, developer, 0, 0, 0});
    const std::string_view signature("TRUEVISION-XFILE.\0", 18);
    tga.insert(tga.end(), signature.begin(), signature.end());
    return tga;
  };
  EXPECT_EQ(decode(with_footer(0, 0, 0)).pixels, decode(plain).pixels);
  EXPECT_EQ(decode(with_footer(9, end, 0)).pixels, decode(plain).pixels);
  EXPECT_EQ(decode(with_footer(9, static_cast<uint8_t>(end + 4), end)).pixels,
            decode(plain).pixels);
  EXPECT_ERROR(decode(with_footer(9, 0, 0)), "the pixels end at byte 30, expected 39");
  EXPECT_ERROR(decode(with_footer(9, static_cast<uint8_t>(end + 2), 0)), "expected 32");
  EXPECT_ERROR(decode(with_footer(9, static_cast<uint8_t>(end - 2), 0)), "expected 28");
  std::vector<uint8_t> stamped = with_footer(4 + 495, static_cast<uint8_t>(end + 4), 0);
  EXPECT_ERROR(decode(stamped), "expected 34");  // four unexplained bytes
  for (size_t i = 482; i < 494; ++i) {
    stamped[end + 4u + i] = i == 486 ? end : uint8_t(0);  // the offset of the stamp
  }
  EXPECT_EQ(decode(stamped).pixels, decode(plain).pixels);
  std::vector<uint8_t> tagged = with_footer(4 + 12, 0, static_cast<uint8_t>(end + 4));
  const std::vector<uint8_t> directory = {1, 0, 9, 9, end, 0, 0, 0, 4, 0, 0, 0};
  std::copy(directory.begin(), directory.end(), tagged.begin() + end + 4);
  EXPECT_EQ(decode(tagged).pixels, decode(plain).pixels);
  std::vector<uint8_t> longer = plain;
  longer.push_back(0);
  EXPECT_ERROR(decode(longer), "the pixels end at byte 30, expected 31");
  std::vector<uint8_t> runs = seed_of("tga/good-grey-runs.tga");  // 3 x 1: a run of 3
  runs[18] = 0x83;
  EXPECT_ERROR(decode(runs), "a packet of 4 pixels where 3 are left");
}

TEST(HeaderSizes, gif_has_no_more_codes_than_pixels) {
  std::vector<uint8_t> gif = seed_of("gif/good-runs.gif");  // 11 x 1, strings of several pixels
  for (const uint8_t width : {1, 5, 10, 12}) {
    gif[30] = width;
    EXPECT_NE(error_of([&] { decode(gif); }), "none") << int{width};
  }
  gif = seed_of("gif/good-plain.gif");
  gif[32] = 1;
  EXPECT_ERROR(decode(gif), "more pixels than its size");
}

}  // namespace
}  // namespace binade::data::header_sizes_test
