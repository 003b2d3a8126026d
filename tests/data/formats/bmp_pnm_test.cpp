// Compares the pixels of the small BMP and PNM files of tests/fuzz/corpus (written by seeds.py)
// with Pillow's (pillow_pixels.py). Also tests files that Pillow cannot read, and every truncation.
#include <binade/data/decode.h>

#include <fstream>
#include <sstream>

#include "tests/data/test_files.h"

namespace binade::data::bmp_pnm_test {
namespace {

using test::bytes_of;
using test::decode;

std::vector<uint8_t> seed_file(const std::string& name) {
  return read_file(BINADE_SOURCE_DIR "/tests/fuzz/corpus/" + name, 1 << 20);
}

std::string digits_of(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte / 16];
    text += "0123456789abcdef"[byte % 16];
  }
  return text;
}

TEST(BmpAndPnm, pixels_are_those_of_pillow) {
  std::ifstream file(BINADE_SOURCE_DIR "/tests/data/formats/pillow_pixels.tsv");
  int files = 0;
  for (std::string name, digits; file >> name; ++files) {
    int width = 0, height = 0;
    ASSERT_TRUE(file >> width >> height >> digits);
    const Image image = decode(seed_file(name), {.channels = 4});
    EXPECT_EQ(std::pair(image.width, image.height), std::pair(width, height)) << name;
    EXPECT_EQ(digits_of(image.pixels), digits) << name;
  }
  EXPECT_GT(files, 30);
}

// Five columns and three rows, the lowest row first in the file; colour i is (4 i + 2, ...).
TEST(BmpAndPnm, runs) {
  const auto indices = [](const std::string& name) {
    const Image image = decode(seed_file(name));
    std::vector<int> out;
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
      out.push_back((image.pixels[i] - 2) / 4);
    }
    return out;
  };
  EXPECT_EQ(indices("bmp/good-rle8-odd.bmp"),
            (std::vector<int>{5, 6, 6, 6, 6, 1, 2, 3, 4, 4, 7, 7, 7, 7, 7}));
  EXPECT_EQ(indices("bmp/good-rle4-odd.bmp"),
            (std::vector<int>{5, 6, 7, 8, 7, 1, 2, 3, 4, 5, 7, 10, 7, 10, 7}));
  EXPECT_EQ(indices("bmp/good-rle8-steps.bmp"),
            (std::vector<int>{6, 6, 6, 6, 6, 0, 0, 4, 4, 0, 3, 0, 0, 0, 0}));
  EXPECT_EQ(indices("bmp/good-rle8-full.bmp"), (std::vector<int>{4, 4, 3, 3}));
  EXPECT_ERROR(decode(seed_file("bmp/bad-rle8-run.bmp")), "a run reaches pixel 6 of row 0");
  EXPECT_ERROR(decode(seed_file("bmp/bad-rle8-step-up.bmp")), "outside 5 x 3");
  EXPECT_ERROR(decode(seed_file("bmp/bad-rle8-none.bmp")), "the file ends in row 0 of 3");
  EXPECT_ERROR(decode(seed_file("bmp/bad-rle8-row.bmp")), "the file ends in row 2 of 3");
  EXPECT_ERROR(decode(seed_file("bmp/bad-rle8-early.bmp")), "the picture ends in row 0 of 3");
}

// Variants that Pillow cannot read are compared with the same pixels in another form.
TEST(BmpAndPnm, masks_and_headers) {
  const auto pixels = [](const std::string& name) {
    return decode(seed_file("bmp/good-" + name + ".bmp"), {.channels = 4}).pixels;
  };
  std::vector<uint8_t> swapped = pixels("24");  // in this file the masks swap red and blue
  for (size_t i = 0; i < swapped.size(); i += 4) {
    std::swap(swapped[i], swapped[i + 2]);
  }
  EXPECT_EQ(pixels("24-masks"), pixels("24"));
  EXPECT_EQ(pixels("24-masks-swapped"), swapped);
  EXPECT_EQ(pixels("os2-short24"), pixels("24"));
  EXPECT_EQ(pixels("os2-short"), pixels("os2"));
  EXPECT_EQ(pixels("v2"), pixels("565"));
  std::vector<uint8_t> with_alpha(24);  // bytes 0, 5, 10, ..., starting in the lowest row
  for (size_t i = 0; i < 24; ++i) {
    with_alpha[i] = static_cast<uint8_t>(5 * ((i + 12) % 24));
  }
  EXPECT_EQ(pixels("alpha-masks"), with_alpha);
  EXPECT_ERROR(decode(seed_file("bmp/bad-far-mask.bmp")), "the mask 0 of colour 0");
  EXPECT_ERROR(decode(seed_file("bmp/bad-torn-mask.bmp")), "bits side by side");
  EXPECT_ERROR(decode(seed_file("bmp/bad-jpeg.bmp")), "24 bits with compression 4");
  EXPECT_ERROR(decode(seed_file("bmp/bad-huffman.bmp")), "1 bits with compression 3");
  std::vector<uint8_t> odd_header = seed_file("bmp/good-24.bmp");
  odd_header[14] = 20;
  EXPECT_ERROR(decode(odd_header), "header of 20 bytes, expected 12, 16, 40");
}

TEST(BmpAndPnm, pam) {
  const auto pixels = [](const std::string& name) {
    return decode(seed_file("pnm/good-pam-" + name + ".pnm"), {.channels = 4}).pixels;
  };
  EXPECT_EQ(pixels("bits"), (std::vector<uint8_t>{0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
                                                  255}));  // 1 is white here
  EXPECT_EQ(pixels("grey-alpha"), bytes_of("aaabcccd"));
  EXPECT_EQ(pixels("rgba"), bytes_of("abcdefgh"));
  EXPECT_EQ(pixels("untyped"), bytes_of("abcd"));
  EXPECT_EQ(pixels("16-bit"), bytes_of("aaac"));
  EXPECT_EQ(decode(seed_file("pnm/good-pam-rgba.pnm")).channels, 3);
  EXPECT_EQ(decode(seed_file("pnm/good-pam-grey-alpha.pnm")).pixels, bytes_of("ac"));
  EXPECT_ERROR(decode(seed_file("pnm/bad-pam-type.pnm")), "the type 'CMYK'");
  EXPECT_ERROR(decode(seed_file("pnm/bad-pam-no-end.pnm")), "truncated PAM");
  EXPECT_ERROR(decode(seed_file("pnm/bad-pam-joined.pnm")), "no new line after ENDHDR");
}

// Bytes after a picture mean a wrong size in the header, unless they are another picture.
TEST(BmpAndPnm, bytes_after_a_pnm_picture) {
  for (const std::string name : {"after", "text-after", "text-another", "p4-after", "pam-after"}) {
    EXPECT_ERROR(decode(seed_file("pnm/bad-" + name + ".pnm")), "after the pixels");
  }
  EXPECT_EQ(decode(seed_file("pnm/good-another.pnm")).pixels, bytes_of("a"));
  EXPECT_EQ(decode(seed_file("pnm/good-space-after.pnm")).pixels, bytes_of("a"));
  EXPECT_EQ(decode(seed_file("pnm/good-p1-after.pnm")).pixels, (std::vector<uint8_t>{0}));
  EXPECT_EQ(decode(seed_file("pnm/good-largest-comment.pnm")).pixels, bytes_of("ab"));
}

TEST(BmpAndPnm, errors) {
  EXPECT_ERROR(decode(seed_file("pnm/bad-above.pnm")), "a sample of 97, above the largest value 7");
  EXPECT_ERROR(decode(seed_file("pnm/bad-joined.pnm")), "no white space at byte 10");
  EXPECT_ERROR(decode(seed_file("pnm/bad-joined-width.pnm")), "no white space at byte 4");
  EXPECT_ERROR(decode(seed_file("pnm/bad-bit.pnm")), "no 0 or 1 at byte 8");
  EXPECT_ERROR(decode(seed_file("pnm/bad-bits-cut.pnm")), "truncated PNM");
  EXPECT_ERROR(decode(seed_file("pnm/bad-text-large.pnm")), "ratio of 300");
}

// Every truncated file is rejected, except if only bytes are missing that describe no pixels.
TEST(BmpAndPnm, cuts) {
  struct Case {
    const char* name;
    size_t rest = 0;  // bytes at the end that may be missing
  };
  for (const Case& cut : {Case{"bmp/good-rle8-odd.bmp", 2}, Case{"bmp/good-rle4-odd.bmp", 2},
                          Case{"bmp/good-24-masks.bmp"}, Case{"bmp/good-alpha-masks.bmp"},
                          Case{"bmp/good-os2-short.bmp"}, Case{"pnm/good-p4-odd.pnm"},
                          Case{"pnm/good-pam-rgba.pnm"}, Case{"pnm/good-p6.pnm"}}) {
    const std::vector<uint8_t> file = seed_file(cut.name);
    EXPECT_EQ(error_of([&] { decode(file); }), "none");
    for (size_t length = 3; length < file.size() - cut.rest; ++length) {
      const std::vector<uint8_t> part(file.begin(), file.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_NE(error_of([&] { decode(part); }), "none") << cut.name << " of " << length;
    }
  }
}

}  // namespace
}  // namespace binade::data::bmp_pnm_test
