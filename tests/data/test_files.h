// Helpers for the data tests: temporary folders, pictures with known content, texts of errors.
#pragma once
#include <binade/data/dataset.h>
#include <binade/data/decode.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/philox.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace binade::data::test {

namespace fs = std::filesystem;

// A temporary folder, deleted with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "binade-data-XXXXXX").native();
    check(::mkdtemp(name.data()) != nullptr, "cannot make a temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline void write_file(const fs::path& path, std::span<const uint8_t> bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

inline Image decode(const std::vector<uint8_t>& bytes, DecodeOptions options = {}) {
  return decode_image(bytes, "file.img", options);
}

// Smooth colours with some noise, which compress like a photograph.
inline Image picture(int height, int width, int channels, uint64_t seed) {
  Image image = make_image(height, width, channels);
  philox::Stream random(seed, 7);
  const uint32_t base = random.next();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const uint32_t smooth = (base >> (8 * (c % 4))) + 5u * static_cast<uint32_t>(y + c * x);
        image.row(y)[x * channels + c] = static_cast<uint8_t>(smooth % 200 + random.next() % 40);
      }
    }
  }
  return image;
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_ERROR(statement, part)                               \
  do {                                                              \
    const std::string got = ::binade::error_of([&] { statement; }); \
    EXPECT_TRUE(::binade::data::test::contains(got, part)) << got;  \
    EXPECT_EQ(got.find('\n'), std::string::npos) << got;            \
  } while (false)

// The folder with shared test data, or an empty path.
inline fs::path shared_folder() {
  if (const char* folder = std::getenv("BINADE_SHARED")) {
    return folder;
  }
  const fs::path beside = fs::path(BINADE_SOURCE_DIR) / ".." / "shared";
  return fs::is_directory(beside / "data") ? beside : fs::path();
}

// Inserts an APP1 block with the orientation after the start of a JPEG.
inline std::vector<uint8_t> with_orientation(const std::vector<uint8_t>& jpeg,
                                             uint8_t orientation) {
  const std::vector<uint8_t> exif = {
      0xff, 0xe1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'I',         'I', 42, 0, 8, 0, 0, 0,
      1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, orientation, 0,   0,  0, 0, 0, 0, 0};
  std::vector<uint8_t> out(jpeg.begin(), jpeg.begin() + 2);
  out.insert(out.end(), exif.begin(), exif.end());
  out.insert(out.end(), jpeg.begin() + 2, jpeg.end());
  return out;
}

}  // namespace binade::data::test
