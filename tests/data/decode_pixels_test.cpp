// Tests the pixels of PNG, PNM, BMP and TGA files made byte by byte, their limits and faults.
#include <binade/data/decode.h>
#include <binade/data/encode.h>
#include <sys/resource.h>
#include <zlib.h>

#include "tests/data/test_files.h"
#include "tests/support/child_process.h"

namespace binade::data::decode_pixels_test {
namespace {

using test::bytes_of;
using test::decode;
using test::picture;

std::vector<uint8_t> bmp_2x2() {
  std::vector<uint8_t> bytes(54 + 16);
  bytes[0] = 'B';
  bytes[1] = 'M';
  bytes[10] = 54;
  bytes[14] = 40;
  bytes[18] = bytes[22] = 2;
  bytes[26] = 1;
  bytes[28] = 24;
  for (size_t i = 54; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(i);
  }
  return bytes;
}

void put_u32(std::vector<uint8_t>& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<uint8_t>(value >> shift));
  }
}

std::vector<uint8_t> packed(const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t> out(::compressBound(bytes.size()));
  uLongf size = out.size();
  ::compress(out.data(), &size, bytes.data(), bytes.size());
  out.resize(size);
  return out;
}

struct PngParts {
  uint32_t width = 1, height = 1;
  uint8_t depth = 8, color_type = 0, interlace = 0;
  std::vector<uint8_t> palette = {}, transparency = {};
  std::vector<uint8_t> rows = {};  // each row is a filter byte and its samples
};

// Makes a complete PNG file with valid checksums.
std::vector<uint8_t> png_of(const PngParts& parts) {
  std::vector<uint8_t> png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto chunk = [&](const char* type, const std::vector<uint8_t>& data) {
    put_u32(png, static_cast<uint32_t>(data.size()));
    const size_t covered = png.size();
    png.insert(png.end(), type, type + 4);
    png.insert(png.end(), data.begin(), data.end());
    put_u32(png, static_cast<uint32_t>(
                     ::crc32(0, &png[covered], static_cast<uInt>(png.size() - covered))));
  };
  std::vector<uint8_t> header;
  put_u32(header, parts.width);
  put_u32(header, parts.height);
  header.insert(header.end(), {parts.depth, parts.color_type, 0, 0, parts.interlace});
  chunk("IHDR", header);
  if (!parts.palette.empty()) {
    chunk("PLTE", parts.palette);
  }
  if (!parts.transparency.empty()) {
    chunk("tRNS", parts.transparency);
  }
  const std::vector<uint8_t> data = packed(parts.rows);
  const auto middle = data.begin() + static_cast<ptrdiff_t>(data.size() / 2);
  chunk("IDAT", {data.begin(), middle});  // two chunks, as in large files
  chunk("IDAT", {middle, data.end()});
  chunk("IEND", {});
  return png;
}

// A grey PNG of 8 x 8 pixels whose pixel data are `bytes` zeros.
std::vector<uint8_t> png_bomb(size_t bytes) {
  return png_of({.width = 8, .height = 8, .rows = std::vector<uint8_t>(bytes)});
}

// Small files that would become large pictures or take long hit named limits and take no memory.
TEST(DecodePixels, ratio_and_time_are_limited) {
  const uint32_t side = 6000;  // 108 MB of RGB
  PngParts parts{.width = side, .height = side, .rows = std::vector<uint8_t>(100)};
  EXPECT_ERROR(decode(png_of(parts), {.channels = 3}), "DecodeLimits::max_ratio");
  // If the ratio allows it, the error is another one: the pixel data are too short.
  EXPECT_ERROR(decode(png_of(parts), {.channels = 3, .limits = {.max_ratio = 1e9}}),
               "less pixel data");
  EXPECT_ERROR(decode(png_of(parts), {.channels = 3, .limits = {.ratio_from = 200'000'000}}),
               "less pixel data");
  std::vector<std::vector<uint8_t>> files = {encode_png(picture(64, 64, 3, 1)), bmp_2x2(),
                                             bytes_of("P5\n1 1\n255\n.")};
  if (has_libjpeg()) {
    files.push_back(encode_jpeg(picture(64, 64, 3, 1)));
  }
  for (const auto& file : files) {
    EXPECT_EQ(error_of([&] { decode(file, {.limits = {.max_seconds = 60}}); }), "none");
    EXPECT_ERROR(decode(file, {.limits = {.max_seconds = 0}}), "DecodeLimits::max_seconds");
  }
}

// A rejected file takes no memory, because the size in its header is checked first.
TEST(DecodePixels, refused_files_take_no_memory) {
  const std::vector<uint8_t> bomb =
      png_of({.width = 9000, .height = 9000, .rows = std::vector<uint8_t>(5'000'000)});
  ASSERT_LT(bomb.size(), 20'000u);
  EXPECT_TRUE(testing::run_child([&] {
    const auto peak = [] {
      rusage usage;
      ::getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss;  // KiB
    };
    const long before = peak();
    for (const DecodeLimits& limits :
         {DecodeLimits{}, DecodeLimits{.max_pixels = 1'000'000}, DecodeLimits{.max_side = 8000}}) {
      if (error_of([&] { decode(bomb, {.channels = 3, .limits = limits}); }) == "none") {
        ::_exit(2);
      }
    }
    ::_exit(peak() - before <= 16 * 1024 ? 0 : 1);
  }));
}

// The expected values were computed by hand from the PNG specification.
TEST(DecodePixels, png_kinds_of_pixels) {
  const PngParts grey{.width = 3, .depth = 4, .rows = {0, 0x0f, 0x50}};
  EXPECT_EQ(decode(png_of(grey)).pixels, (std::vector<uint8_t>{0, 255, 85}));
  PngParts clear = grey;  // colour 15 is transparent
  clear.transparency = {0, 15};
  EXPECT_EQ(decode(png_of(clear), {.channels = 4}).pixels,
            (std::vector<uint8_t>{0, 0, 0, 255, 255, 255, 255, 0, 85, 85, 85, 255}));
  const PngParts palette{.width = 2,
                         .depth = 2,
                         .color_type = 3,
                         .palette = {1, 2, 3, 4, 5, 6},
                         .transparency = {7},
                         .rows = {0, 0x10}};
  EXPECT_EQ(decode(png_of(palette), {.channels = 4}).pixels,
            (std::vector<uint8_t>{1, 2, 3, 7, 4, 5, 6, 255}));
  PngParts beyond = palette;
  beyond.rows = {0, 0x20};
  EXPECT_ERROR(decode(png_of(beyond)), "a pixel has colour 2, the palette has 2 colours");
  beyond.palette = {1, 2};
  EXPECT_ERROR(decode(png_of(beyond)), "a palette of 2 bytes");
  const PngParts deep{.depth = 16, .color_type = 6, .rows = {0, 9, 255, 8, 0, 7, 1, 6, 2}};
  EXPECT_EQ(decode(png_of(deep), {.channels = 4}).pixels, (std::vector<uint8_t>{9, 8, 7, 6}));
  EXPECT_EQ(decode(png_of(deep)).pixels, (std::vector<uint8_t>{9, 8, 7}));
  const PngParts alpha{.color_type = 4, .rows = {0, 50, 60}};
  EXPECT_EQ(decode(png_of(alpha), {.channels = 4}).pixels, (std::vector<uint8_t>{50, 50, 50, 60}));
  EXPECT_ERROR(decode(png_of({.depth = 4, .color_type = 2, .rows = {0, 0, 0}})), "colour type 2");
  EXPECT_ERROR(decode(png_of({.rows = {5, 0}})), "filter 5");
  EXPECT_ERROR(decode(png_of({.interlace = 2, .rows = {0, 0}})), "interlace");
}

// Covers every filter, and the passes of an interlaced file whose size leaves some of them empty.
TEST(DecodePixels, png_filters_and_passes) {
  const PngParts filters{
      .width = 2, .height = 5, .rows = {0, 10, 20, 1, 5, 5, 2, 1, 1, 3, 1, 1, 4, 2, 3}};
  // none; left: 5 10; up: 6 11; average: 6/2+1 = 4, (4+11)/2+1 = 8; Paeth: 4+2, 8+3
  EXPECT_EQ(decode(png_of(filters)).pixels,
            (std::vector<uint8_t>{10, 20, 5, 10, 6, 11, 4, 8, 6, 11}));
  // The corner predicts the last pixel: left + up - corner = 12 + 8 - 10.
  EXPECT_EQ(decode(png_of({.width = 2, .height = 2, .rows = {0, 10, 8, 4, 2, 5}})).pixels,
            (std::vector<uint8_t>{10, 8, 12, 15}));
  const PngParts passes{
      .width = 3, .height = 2, .interlace = 1, .rows = {0, 1, 0, 3, 0, 2, 0, 4, 5, 6}};
  EXPECT_EQ(decode(png_of(passes)).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
}

TEST(DecodePixels, png_bomb_ends_in_an_error) {
  EXPECT_EQ(decode(png_bomb(72)).pixels.size(), 64u);  // 8 rows of a filter byte and 8 pixels
  EXPECT_ERROR(decode(png_bomb(71)), "cannot decode");
  EXPECT_ERROR(decode(png_bomb(size_t(64) << 20)), "cannot decode");
}

TEST(DecodePixels, png_with_bytes_after_its_end_is_rejected) {
  std::vector<uint8_t> png = encode_png(picture(4, 4, 3, 1));
  png.push_back(0);
  EXPECT_ERROR(decode(png), "after its end");
}

TEST(DecodePixels, pnm) {
  std::vector<uint8_t> ppm = bytes_of("P6 # comment\n2 1\n255\n");
  ppm.insert(ppm.end(), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(decode(ppm).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  ppm.pop_back();
  EXPECT_ERROR(decode(ppm), "truncated PNM");
  std::vector<uint8_t> pgm = bytes_of("P5\n3 1\n15\n");
  pgm.insert(pgm.end(), {0, 15, 5});
  EXPECT_EQ(decode(pgm).pixels, (std::vector<uint8_t>{0, 255, 85}));
  EXPECT_ERROR(decode(bytes_of("P5\n3 1\n15xyz")), "no white space at byte 9");
  EXPECT_ERROR(decode(bytes_of("P5\n99999999999999999999 1\n255\n")), "limit");
  EXPECT_ERROR(decode(bytes_of("P5\n0 1\n255\n")), "at least 1 x 1");
  EXPECT_ERROR(decode(bytes_of("P5\nx")), "no number");
}

TEST(DecodePixels, pnm_as_text) {
  const std::vector<uint8_t> bits = {255, 0, 255, 0, 0, 255};  // 1 is black
  EXPECT_EQ(decode(bytes_of("P1\n3 2\n0 1 0\n1#c\n10")).pixels, bits);
  EXPECT_EQ(decode(bytes_of("P1 3 2 010110")).pixels, bits);
  EXPECT_EQ(decode(bytes_of("P2 2 2 10 0 10 5 9")).pixels,
            (std::vector<uint8_t>{0, 255, 128, 230}));
  EXPECT_EQ(decode(bytes_of("P3 # x\n1 1\n65535\n0 65535 257\n")).pixels,
            (std::vector<uint8_t>{0, 255, 1}));
  EXPECT_ERROR(decode(bytes_of("P1 3 2 01011")), "truncated PNM");
  EXPECT_ERROR(decode(bytes_of("P1 3 2 010 11 ")), "truncated PNM: no 0 or 1");
  EXPECT_ERROR(decode(bytes_of("P1 3 2 010112")), "corrupt PNM: no 0 or 1 at byte 12");
  EXPECT_ERROR(decode(bytes_of("P2 2 2 10 0 10 5")), "truncated PNM");
  EXPECT_ERROR(decode(bytes_of("P2 2 1 10 1 11")), "a sample of 11, above the largest value 10");
  EXPECT_ERROR(decode(bytes_of("P5 1 1 7 a")), "a sample of 97, above the largest value 7");
  EXPECT_ERROR(decode(bytes_of("P2 2 1 10 1 -5")), "corrupt PNM: no number at byte 12");
  EXPECT_ERROR(decode(bytes_of("P3 30000 30000 255 1 2 3")), "limit");
  EXPECT_ERROR(decode(bytes_of("P8 1 1 255 .")), "text");
  EXPECT_ERROR(decode(bytes_of("P2P networks, and more of them")), "text");
}

TEST(DecodePixels, pnm_bits_and_pam) {
  std::vector<uint8_t> bits = bytes_of("P4\n9 2\n");
  bits.insert(bits.end(), {0x80, 0x80, 0x01, 0x7f});
  EXPECT_EQ(decode(bits).pixels, (std::vector<uint8_t>{0, 255, 255, 255, 255, 255, 255, 255, 0,  //
                                                       255, 255, 255, 255, 255, 255, 255, 0, 255}));
  bits.pop_back();
  EXPECT_ERROR(decode(bits), "truncated PNM");
  const auto pam = [](int depth, const char* type, std::vector<uint8_t> pixels) {
    std::vector<uint8_t> file = bytes_of(
        text("P7\n# x\nWIDTH 1\nHEIGHT 2\nDEPTH ", depth, "\nMAXVAL 255\n", type, "ENDHDR\n")
            .c_str());
    file.insert(file.end(), pixels.begin(), pixels.end());
    return file;
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(decode(pam(1, "TUPLTYPE GRAYSCALE\n", {1, 2})).pixels, (Bytes{1, 2}));
  EXPECT_EQ(decode(pam(2, "TUPLTYPE GRAYSCALE_ALPHA\n", {1, 2, 3, 4})).pixels, (Bytes{1, 3}));
  EXPECT_EQ(decode(pam(2, "", {1, 2, 3, 4}), {.channels = 4}).pixels,
            (Bytes{1, 1, 1, 2, 3, 3, 3, 4}));
  EXPECT_EQ(
      decode(pam(4, "TUPLTYPE RGB_ALPHA\n", {1, 2, 3, 4, 5, 6, 7, 8}), {.channels = 4}).pixels,
      (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_ERROR(decode(pam(3, "TUPLTYPE RGB\n", {1, 2, 3, 4, 5})), "truncated PNM");
  EXPECT_ERROR(decode(pam(3, "TUPLTYPE RGB_ALPHA\n", {1, 2, 3, 4, 5, 6})), "PAM of 3 samples");
  EXPECT_ERROR(decode(pam(5, "", Bytes(10))), "PAM of 5 samples");
  EXPECT_ERROR(decode(pam(0, "", {})), "PAM of 0 samples");
  EXPECT_ERROR(decode(pam(1, "SPEED 3\n", {1, 2})), "a line begins with 'SPEED'");
  EXPECT_ERROR(decode(bytes_of("P7\nWIDTH 1\n")), "truncated PAM: no word");
}

TEST(DecodePixels, bmp) {
  const Image image = decode(bmp_2x2());
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{64, 63, 62, 67, 66, 65, 56, 55, 54, 59, 58, 57}));
  const std::vector<uint8_t> file = bmp_2x2();
  for (size_t length = 2; length < file.size(); ++length) {
    const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_ERROR(decode(cut), "truncated BMP");
  }
  std::vector<uint8_t> big = file;
  big[20] = big[21] = 0x7f;
  EXPECT_ERROR(decode(big), "limit");
}

// Samples of n bits become v * 255 / (2^n - 1), rounded down.
TEST(DecodePixels, bmp_masks_and_palettes) {
  std::vector<uint8_t> file = bmp_2x2();
  file.resize(54 + 8);
  file[28] = 16;  // 5 bits each: 0x7c60, 0x0023 below, 0 above
  std::copy_n(std::vector<uint8_t>{0x60, 0x7c, 0x23, 0x80, 0, 0, 0, 0}.begin(), 8, &file[54]);
  EXPECT_EQ(decode(file).pixels, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 255, 24, 0, 0, 8, 24}));
  file[30] = 3;  // masks after the header: 4 bits of red, 0 of green
  EXPECT_ERROR(decode(file), "truncated BMP");
  file[10] = 66;
  file.insert(file.begin() + 54, {0, 0xf, 0, 0, 0, 0, 0, 0, 0xf, 0, 0, 0});
  EXPECT_ERROR(decode(file), "mask 0 of colour 1");
  file[10] = 60;
  EXPECT_ERROR(decode(file), "mask 0 of colour 1");
  file[58] = 0xf0;
  EXPECT_ERROR(decode(file), "pixels at byte 60, inside the header");
  file[10] = 66;
  file[58] = 0xf0;
  EXPECT_EQ(decode(file).pixels, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 204, 102, 0, 0, 34, 51}));
  file[58] = 0x50;
  EXPECT_ERROR(decode(file), "bits side by side");
  std::vector<uint8_t> palette = bmp_2x2();
  palette[28] = 4;
  palette[46] = 2;  // colours
  palette[10] = 62;
  palette.resize(54);
  palette.insert(palette.end(), {3, 2, 1, 0, 6, 5, 4, 0, 0x10, 0, 0, 0, 0x01, 0, 0, 0});
  EXPECT_EQ(decode(palette).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 4, 5, 6, 1, 2, 3}));
  palette[62] = 0x20;
  EXPECT_ERROR(decode(palette), "a pixel has colour 2, the palette has 2 colours");
}

// A BMP of runs, 4 x 3, of a palette of `bits` whose colour i is (i, i, i).
std::vector<uint8_t> bmp_of_runs(int bits, const std::vector<uint8_t>& runs) {
  std::vector<uint8_t> file = bmp_2x2();
  file.resize(54);
  file[18] = 4;
  file[22] = 3;
  file[28] = static_cast<uint8_t>(bits);
  file[30] = bits == 8 ? 1 : 2;
  file[46] = 16;
  file[10] = 54 + 64;
  for (uint8_t i = 0; i < 16; ++i) {
    file.insert(file.end(), {i, i, i, 0});
  }
  file.insert(file.end(), runs.begin(), runs.end());
  return file;
}

// The lowest row comes first in the file.
TEST(DecodePixels, bmp_of_runs) {
  using Bytes = std::vector<uint8_t>;
  const auto grey = [](int bits, const Bytes& runs) {
    return decode(bmp_of_runs(bits, runs), {.channels = 1}).pixels;
  };
  EXPECT_EQ(grey(8, {4, 7, 0, 0, 1, 5, 0, 3, 1, 2, 3, 9, 0, 0, 2, 6, 0, 1}),
            (Bytes{6, 6, 0, 0, 5, 1, 2, 3, 7, 7, 7, 7}));
  EXPECT_EQ(grey(8, {2, 7, 0, 2, 1, 2, 1, 8, 0, 1}), (Bytes{0, 0, 0, 8, 0, 0, 0, 0, 7, 7, 0, 0}));
  EXPECT_EQ(grey(8, {4, 7, 0, 0, 4, 8, 0, 0, 4, 9, 0, 0, 0, 1}),
            (Bytes{9, 9, 9, 9, 8, 8, 8, 8, 7, 7, 7, 7}));
  EXPECT_EQ(grey(4, {3, 0x12, 1, 0x30, 0, 0, 0, 4, 0x45, 0x67, 0, 0, 0, 3, 0x89, 0xa0, 0, 1}),
            (Bytes{8, 9, 10, 0, 4, 5, 6, 7, 1, 2, 1, 3}));
  const auto error = [](int bits, const Bytes& runs) {
    return error_of([&] { decode(bmp_of_runs(bits, runs)); });
  };
  EXPECT_TRUE(
      test::contains(error(8, {5, 7, 0, 1}), "a run reaches pixel 5 of row 0, outside 4 x 3"));
  EXPECT_TRUE(test::contains(error(8, {2, 7, 0, 3, 1, 2, 3, 0}), "a run reaches pixel 5 of row 0"));
  EXPECT_TRUE(test::contains(error(8, {0, 2, 0, 3, 1, 1}), "of row 3, outside 4 x 3"));
  EXPECT_TRUE(test::contains(error(8, {4, 7, 0, 0, 4, 7, 0, 1}), "the picture ends in row 1 of 3"));
  EXPECT_TRUE(
      test::contains(error(8, {4, 7, 0, 0, 4}), "truncated BMP: the file ends in row 1 of 3"));
  EXPECT_TRUE(test::contains(error(8, {0, 4, 1, 2}), "truncated BMP: the file ends in row 0 of 3"));
  EXPECT_TRUE(
      test::contains(error(8, {4, 7, 0, 0, 4, 8, 0, 0, 3, 9}), "the file ends in row 2 of 3"));
  EXPECT_TRUE(test::contains(error(8, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), "more than 3 rows"));
  EXPECT_TRUE(
      test::contains(error(8, {4, 16}), "a pixel has colour 16, the palette has 16 colours"));
  std::vector<uint8_t> wide = bmp_of_runs(8, {0, 1});
  wide[28] = 24;
  EXPECT_ERROR(decode(wide), "24 bits with compression 1");
}

TEST(DecodePixels, tga) {
  std::vector<uint8_t> tga(18);
  tga[2] = 3;  // grey
  tga[12] = 3;
  tga[14] = 1;
  tga[16] = 8;
  tga[17] = 0x20;  // top row first
  tga.insert(tga.end(), {9, 8, 7});
  EXPECT_EQ(decode(tga).pixels, (std::vector<uint8_t>{9, 8, 7}));
  tga.pop_back();
  EXPECT_ERROR(decode(tga), "truncated TGA");
  tga[2] = 11;  // the same in packets: one run of 3
  tga.resize(18);
  tga.insert(tga.end(), {0x82, 5});
  EXPECT_EQ(decode(tga).pixels, (std::vector<uint8_t>{5, 5, 5}));
  tga.pop_back();
  EXPECT_ERROR(decode(tga), "truncated TGA");
  std::vector<uint8_t> mapped(18);  // two pixels from right to left, colours from 4 on
  mapped[1] = mapped[2] = 1;
  mapped[3] = 4;
  mapped[5] = 2;
  mapped[7] = 24;
  mapped[12] = 2;
  mapped[14] = 1;
  mapped[16] = 8;
  mapped[17] = 0x10;
  mapped.insert(mapped.end(), {3, 2, 1, 6, 5, 4, 5, 4});
  EXPECT_EQ(decode(mapped).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  mapped.back() = 6;
  EXPECT_ERROR(decode(mapped), "a pixel has colour 6, the colour map has 2 from 4");
}

}  // namespace
}  // namespace binade::data::decode_pixels_test
