// Tests every file of a collection of odd and broken images. MANIFEST.tsv names them and, if Pillow
// decodes 8-bit pixels, gives the SHA-256 of the RGBA pixels.
#include <binade/core/io/sha256.h>
#include <binade/data/decode.h>

#include <map>
#include <sstream>

#include "tests/data/test_files.h"

namespace binade::data::robustness_test {
namespace {

struct Entry {
  std::string path, result, pixels;
};

std::vector<Entry> read_manifest(const std::filesystem::path& folder) {
  std::ifstream file(folder / "MANIFEST.tsv");
  std::vector<Entry> entries;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    Entry entry;
    std::string bytes, hash;
    std::getline(fields, entry.path, '\t');
    std::getline(fields, bytes, '\t');
    std::getline(fields, hash, '\t');
    std::getline(fields, entry.result, '\t');
    std::getline(fields, entry.pixels, '\t');
    entries.push_back(entry);
  }
  return entries;
}

std::filesystem::path collection() {
  const auto shared = test::shared_folder();
  return shared.empty() ? shared : shared / "data" / "images-robustness";
}

// True for formats that Binade decodes; the names are Pillow's.
bool readable_kind(const std::string& result) {
  for (const char* kind :
       {"ok PNG", "ok JPEG", "ok BMP", "ok PPM", "ok TGA", "ok GIF", "ok WEBP"}) {
    if (result.rfind(kind, 0) == 0) {
      return true;
    }
  }
  return false;
}

TEST(Robustness, every_file_decodes_or_gives_one_error_line) {
  const auto folder = collection();
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "skipped: no ../shared";
  }
  std::map<std::string, int> refused;
  int decoded = 0;
  for (const Entry& entry : read_manifest(folder)) {
    try {
      DecodeOptions options{.channels = 3, .limits = {.max_pixels = 16'000'000}};
      const Image image = read_image(folder / entry.path, options);
      EXPECT_EQ(image.pixels.size(), 3 * static_cast<size_t>(image.height) * image.width);
      ++decoded;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(test::contains(text, entry.path)) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      if (readable_kind(entry.result)) {
        const std::string reason = text.substr(text.find(entry.path) + entry.path.size());
        ++refused[entry.result.substr(0, 7) + reason.substr(0, 70)];
        if (std::getenv("BINADE_VERBOSE") != nullptr) {
          std::printf("%s | %s\n", entry.result.c_str(), text.c_str());
        }
      }
    }
  }
  EXPECT_GT(decoded, 100);
  std::printf("decoded %d; refused although Pillow reads them:\n", decoded);
  for (const auto& [reason, count] : refused) {
    std::printf("%5d %s\n", count, reason.c_str());
  }
}

// Pillow 9.4 decodes runs of 4-bit colours wrongly, so these files are compared with a PNG of the
// collection, or not at all.
std::string expected_pixels(const std::vector<Entry>& entries, const Entry& entry) {
  if (entry.path == "image-rs/bmp/pal4rletrns.bmp") {
    return "";  // the PNG shows skipped pixels in black, not in colour 0
  }
  if (entry.path == "image-rs/bmp/pal4rle.bmp") {
    for (const Entry& other : entries) {
      if (other.path == "image-rs/bmp-reference/pal4rle.bmp.png") {
        return other.pixels;
      }
    }
  }
  return entry.pixels;
}

TEST(Robustness, pixels_match_the_manifest) {
  const auto folder = collection();
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "skipped: no ../shared";
  }
  int matching = 0, different = 0;
  const std::vector<Entry> entries = read_manifest(folder);
  for (const Entry& entry : entries) {
    const std::string pixels = expected_pixels(entries, entry);
    const bool comparable = pixels.size() == 64 && readable_kind(entry.result);
    if (!comparable) {
      continue;
    }
    try {
      DecodeOptions options{.channels = 4, .apply_orientation = false};
      const Image image = read_image(folder / entry.path, options);
      if (hex(sha256(std::as_bytes(std::span(image.pixels)))) == pixels) {
        ++matching;
      } else {
        ++different;
        std::printf("different: %s | %s\n", entry.path.c_str(), entry.result.c_str());
      }
    } catch (const Error&) {
    }
  }
  std::printf("%d match, %d differ\n", matching, different);
  EXPECT_GT(matching, 180);
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace binade::data::robustness_test
