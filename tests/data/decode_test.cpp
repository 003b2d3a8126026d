#include <binade/data/decode.h>
#include <binade/data/encode.h>
#include <sys/stat.h>
#include <zlib.h>

#include "tests/data/test_files.h"

namespace binade::data::decode_test {
namespace {

using test::bytes_of;
using test::decode;
using test::picture;
using test::with_orientation;

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
  EXPECT_ERROR(decode(bytes_of(std::string_view("GIF89a\1\0\1\0", 10))), "truncated GIF");
  EXPECT_ERROR(decode(bytes_of(std::string_view("RIFF\0\0\0\0WEBPVP8 ", 16))), "WebP");
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
  // Where the bright corner is in the upright picture: at the end of rows, of columns?
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
}  // namespace binade::data::decode_test
