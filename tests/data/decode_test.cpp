#include <binade/data/decode.h>
#include <binade/data/encode.h>
#include <sys/stat.h>
#include <zlib.h>

#include "tests/data/test_files.h"

namespace binade::data {
namespace {

using test::bytes_of;
using test::picture;

Image decode(const std::vector<uint8_t>& bytes, DecodeOptions options = {}) {
  return decode_image(bytes, "file.img", options);
}

int64_t difference(const Image& a, const Image& b) {
  int64_t total = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    total += std::abs(a.pixels[i] - b.pixels[i]);
  }
  return total / static_cast<int64_t>(a.pixels.size());
}

TEST(Decode, png_round_trip_is_exact) {
  for (int channels : {1, 3}) {
    for (auto [height, width] : {std::pair{1, 1}, {7, 13}, {32, 32}, {65, 3}}) {
      const Image image = picture(height, width, channels, 3);
      EXPECT_EQ(decode(encode_png(image)), image) << height << " x " << width;
    }
  }
}

TEST(Decode, jpeg_round_trip_is_close) {
  if (!has_libjpeg()) {
    GTEST_SKIP() << "skipped: no libjpeg";
  }
  for (int channels : {1, 3}) {
    Image image = make_image(40, 33, channels);
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      image.pixels[i] = static_cast<uint8_t>(i * 200 / image.pixels.size());
    }
    const Image back = decode(encode_jpeg(image, 95));
    ASSERT_EQ(back.pixels.size(), image.pixels.size());
    EXPECT_LE(difference(back, image), 3);
  }
}

TEST(Decode, channels_are_converted) {
  const Image grey = picture(5, 6, 1, 1), color = picture(5, 6, 3, 1);
  const Image spread = decode(encode_png(grey), {.channels = 3});
  ASSERT_EQ(spread.channels, 3);
  EXPECT_EQ(spread.pixels[0], grey.pixels[0]);
  EXPECT_EQ(spread.pixels[5], grey.pixels[1]);
  EXPECT_EQ(decode(encode_png(color), {.channels = 1}).channels, 1);
  EXPECT_EQ(decode(encode_png(color), {.channels = 4}).pixels[3], 255);
  EXPECT_ERROR(decode(encode_png(color), {.channels = 2}), "channels 2");
}

TEST(Decode, every_truncation_is_rejected) {
  std::vector<std::vector<uint8_t>> files = {encode_png(picture(9, 11, 3, 2))};
  if (has_libjpeg()) {
    files.push_back(encode_jpeg(picture(9, 11, 3, 2), 80));
    files.push_back(encode_jpeg(picture(20, 17, 1, 2), 95));
  }
  for (const auto& file : files) {
    for (size_t length = 0; length < file.size(); ++length) {
      const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_ERROR(decode(cut), "file.img");
    }
    EXPECT_EQ(error_of([&] { decode(file); }), "none");
  }
}

TEST(Decode, every_png_bit_flip_is_rejected_or_harmless) {
  const Image image = picture(8, 8, 3, 5);
  const std::vector<uint8_t> file = encode_png(image);
  int harmless = 0;
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::vector<uint8_t> broken = file;
    broken[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    try {
      EXPECT_EQ(decode(broken), image) << "bit " << bit;
      ++harmless;
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(harmless, 0);
}

TEST(Decode, jpeg_bit_flips_never_crash) {
  if (!has_libjpeg()) {
    GTEST_SKIP() << "skipped: no libjpeg";
  }
  const std::vector<uint8_t> file = encode_jpeg(picture(16, 16, 3, 5), 80);
  int accepted = 0;
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::vector<uint8_t> broken = file;
    broken[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    try {
      const Image image = decode(broken, {.limits = {.max_pixels = 1 << 20}});
      accepted +=
          image.pixels.size() == static_cast<size_t>(image.height) * image.width * image.channels;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Decode, format_is_found_by_content) {
  EXPECT_ERROR(decode({}), "empty");
  EXPECT_ERROR(decode(bytes_of("hello, this is text and no picture")),
               "file.img: not an image Binade reads: text");
  EXPECT_ERROR(decode(bytes_of("GIF89a\1\0\1\0")), "a GIF");
  EXPECT_ERROR(decode(bytes_of(std::string_view("RIFF\0\0\0\0WEBPVP8 ", 16))), "a WebP");
  EXPECT_ERROR(decode(std::vector<uint8_t>(100, 0)), "not an image");
}

TEST(Decode, limits_hold_before_decoding) {
  const std::vector<uint8_t> png = encode_png(picture(20, 30, 3, 1));
  EXPECT_ERROR(decode(png, {.limits = {.max_side = 29}}), "30 x 20");
  EXPECT_ERROR(decode(png, {.limits = {.max_pixels = 599}}), "limit");
  EXPECT_ERROR(decode(png, {.limits = {.max_file_bytes = 10}}), "bytes");
  std::vector<uint8_t> huge = png;  // IHDR with 2^31 - 1 pixels a row
  huge[16] = 0x7f;
  const uint32_t crc = static_cast<uint32_t>(::crc32(0, &huge[12], 17));
  for (int i = 0; i < 4; ++i) {
    huge[29 + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
  }
  EXPECT_ERROR(decode(huge), "the limit of a side");
}

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
  std::vector<uint8_t> rows = {};  // each: a filter byte and its samples
};

// A whole PNG file, all checksums right.
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
  chunk("IDAT", {data.begin(), middle});  // two, as large files have
  chunk("IDAT", {middle, data.end()});
  chunk("IEND", {});
  return png;
}

// A grey PNG of 8 x 8 pixels whose pixel data is `bytes` zeros.
std::vector<uint8_t> png_bomb(size_t bytes) {
  return png_of({.width = 8, .height = 8, .rows = std::vector<uint8_t>(bytes)});
}

// Small files that would become large pictures, or take long: named limits, and no memory for them.
TEST(Decode, ratio_and_time_are_limited) {
  const uint32_t side = 6000;  // 108 MB of RGB
  PngParts parts{.width = side, .height = side, .rows = std::vector<uint8_t>(100)};
  EXPECT_ERROR(decode(png_of(parts), {.channels = 3}), "DecodeLimits::max_ratio");
  // Within the ratio it is another error: the pixel data is too short.
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

// Values computed by hand from the PNG specification.
TEST(Decode, png_kinds_of_pixels) {
  const PngParts grey{.width = 3, .depth = 4, .rows = {0, 0x0f, 0x50}};
  EXPECT_EQ(decode(png_of(grey)).pixels, (std::vector<uint8_t>{0, 255, 85}));
  PngParts clear = grey;  // the colour 15 is transparent
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

// Every filter, and the seven passes of an interlaced file of a size that leaves some empty.
TEST(Decode, png_filters_and_passes) {
  const PngParts filters{
      .width = 2, .height = 5, .rows = {0, 10, 20, 1, 5, 5, 2, 1, 1, 3, 1, 1, 4, 2, 3}};
  // none; left: 5 10; up: 6 11; average: 6/2+1 = 4, (4+11)/2+1 = 8; Paeth: 4+2, 8+3
  EXPECT_EQ(decode(png_of(filters)).pixels,
            (std::vector<uint8_t>{10, 20, 5, 10, 6, 11, 4, 8, 6, 11}));
  const PngParts passes{
      .width = 3, .height = 2, .interlace = 1, .rows = {0, 1, 0, 3, 0, 2, 0, 4, 5, 6}};
  EXPECT_EQ(decode(png_of(passes)).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Decode, png_bomb_ends_in_an_error) {
  EXPECT_EQ(decode(png_bomb(72)).pixels.size(), 64u);  // 8 rows of a filter byte and 8 pixels
  EXPECT_ERROR(decode(png_bomb(71)), "cannot decode");
  EXPECT_ERROR(decode(png_bomb(size_t(64) << 20)), "cannot decode");
}

TEST(Decode, png_with_bytes_after_its_end_is_rejected) {
  std::vector<uint8_t> png = encode_png(picture(4, 4, 3, 1));
  png.push_back(0);
  EXPECT_ERROR(decode(png), "after its end");
}

TEST(Decode, pnm) {
  std::vector<uint8_t> ppm = bytes_of("P6 # comment\n2 1\n255\n");
  ppm.insert(ppm.end(), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(decode(ppm).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  ppm.pop_back();
  EXPECT_ERROR(decode(ppm), "truncated PNM");
  std::vector<uint8_t> pgm = bytes_of("P5\n3 1\n15\n");
  pgm.insert(pgm.end(), {0, 15, 5});
  EXPECT_EQ(decode(pgm).pixels, (std::vector<uint8_t>{0, 255, 85}));
  EXPECT_ERROR(decode(bytes_of("P3\n1 1\n255\n1 2 3\n")), "P5 or P6");
  EXPECT_ERROR(decode(bytes_of("P5\n99999999999999999999 1\n255\n")), "limit");
  EXPECT_ERROR(decode(bytes_of("P5\n0 1\n255\n")), "at least 1 x 1");
  EXPECT_ERROR(decode(bytes_of("P5\nx")), "no number");
}

TEST(Decode, bmp) {
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
TEST(Decode, bmp_masks_and_palettes) {
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

TEST(Decode, tga) {
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

// Inserts an APP1 block with the orientation after the start of a JPEG.
std::vector<uint8_t> with_orientation(const std::vector<uint8_t>& jpeg, uint8_t orientation) {
  const std::vector<uint8_t> exif = {
      0xff, 0xe1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'I',         'I', 42, 0, 8, 0, 0, 0,
      1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, orientation, 0,   0,  0, 0, 0, 0, 0};
  std::vector<uint8_t> out(jpeg.begin(), jpeg.begin() + 2);
  out.insert(out.end(), exif.begin(), exif.end());
  out.insert(out.end(), jpeg.begin() + 2, jpeg.end());
  return out;
}

TEST(Decode, exif_orientation) {
  if (!has_libjpeg()) {
    GTEST_SKIP() << "skipped: no libjpeg";
  }
  Image image = make_image(8, 16, 1);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t(100));
  for (int y = 0; y < 4; ++y) {
    std::fill_n(image.row(y), 4, uint8_t(255));  // bright corner, top left
  }
  const std::vector<uint8_t> file = encode_jpeg(image, 100);
  // The place of the bright corner in the upright picture: is it at the end of rows, of columns?
  const struct {
    uint8_t orientation;
    bool swapped, bottom, right;
  } cases[] = {{1, false, false, false}, {2, false, false, true}, {3, false, true, true},
               {4, false, true, false},  {5, true, false, false}, {6, true, false, true},
               {7, true, true, true},    {8, true, true, false},  {0, false, false, false},
               {9, false, false, false}};
  for (const auto& expected : cases) {
    const Image turned = decode(with_orientation(file, expected.orientation));
    SCOPED_TRACE(int{expected.orientation});
    EXPECT_EQ(turned.height, expected.swapped ? 16 : 8);
    EXPECT_EQ(turned.width, expected.swapped ? 8 : 16);
    const int y = expected.bottom ? turned.height - 1 : 0,
              x = expected.right ? turned.width - 1 : 0;
    EXPECT_GT(turned.row(y)[x], 200);
    EXPECT_LT(turned.row(turned.height - 1 - y)[turned.width - 1 - x], 150);
  }
  EXPECT_EQ(decode(with_orientation(file, 6), {.apply_orientation = false}).height, 8);
}

TEST(Decode, jpeg_is_decoded_smaller_on_request) {
  if (!has_libjpeg()) {
    GTEST_SKIP() << "skipped: no libjpeg";
  }
  const std::vector<uint8_t> file = encode_jpeg(picture(256, 400, 3, 1), 90);
  EXPECT_EQ(decode(file, {.target_side = 32}).height, 32);
  EXPECT_EQ(decode(file, {.target_side = 33}).height, 64);
  EXPECT_EQ(decode(file, {.target_side = 300}).height, 256);
}

TEST(Decode, read_image_names_the_path) {
  const test::TemporaryFolder folder;
  EXPECT_ERROR(read_image(folder.path() / "absent.png"), "absent.png");
  EXPECT_ERROR(read_image(folder.path()), "not a regular file");
  const std::filesystem::path fifo = folder.path() / "fifo.png";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_ERROR(read_image(fifo), "not a regular file");
  test::write_file(folder.path() / "a.png", encode_png(picture(3, 3, 3, 1)));
  EXPECT_EQ(read_image(folder.path() / "a.png"), picture(3, 3, 3, 1));
}

}  // namespace
}  // namespace binade::data
