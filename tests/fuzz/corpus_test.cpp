// Every stored input of every fuzz target, in an ordinary program: seeds, what fuzzing kept, and
// what it found. An input good-* must be accepted, an input bad-* refused. Cut and altered copies
// of the inputs go through the target too.
#include <binade/data/decode.h>
#include <binade/kernels/base/error.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/targets.h"

namespace binade::fuzz {
namespace {

namespace fs = std::filesystem;
using Input = std::vector<uint8_t>;

const fs::path kCorpus = fs::path(BINADE_SOURCE_DIR) / "tests/fuzz/corpus";

std::vector<fs::path> sorted(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Input read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Corpus : public ::testing::TestWithParam<Target> {};

TEST_P(Corpus, EveryInputIsAcceptedOrRefused) {
  if (std::string_view(GetParam().name) == "webp" && !data::has_libwebp()) {
    GTEST_SKIP() << "skipped: no libwebp";
  }
  int good = 0, bad = 0;
  for (const fs::path& path : sorted(kCorpus / GetParam().name)) {
    const std::string name = path.filename();
    try {
      const std::string refusal = run(GetParam(), read(path));
      const bool accepted = refusal.empty();
      EXPECT_TRUE(accepted || !name.starts_with("good-")) << path << ": " << refusal;
      EXPECT_TRUE(!accepted || !name.starts_with("bad-")) << path;
      good += accepted && name.starts_with("good-");
      bad += !accepted && name.starts_with("bad-");
    } catch (const std::exception& error) {
      ADD_FAILURE() << path << ": " << error.what();
    }
  }
  EXPECT_GE(good, 1) << "no input good-*";
  EXPECT_GE(good + bad, 4);
}

Input altered(const Input& input, std::mt19937& random) {
  Input out = input;
  if (random() % 2 == 0) {
    out.resize(random() % (out.size() + 1));
  }
  for (uint32_t edits = random() % 3; !out.empty() && edits > 0; --edits) {
    out[random() % out.size()] ^= static_cast<uint8_t>(1u << random() % 8);
  }
  return out;
}

TEST_P(Corpus, AlteredInputsAreAcceptedOrRefused) {
  constexpr int kCopies = 8;
  std::mt19937 random(29);
  for (const fs::path& path : sorted(kCorpus / GetParam().name)) {
    const Input input = read(path);
    for (int i = 0; i < kCopies; ++i) {
      try {
        run(GetParam(), altered(input, random));
      } catch (const std::exception& error) {
        ADD_FAILURE() << "copy " << i << " of " << path << ": " << error.what();
      }
    }
  }
}

std::vector<std::pair<fs::path, Input>> good_inputs(const std::string& target) {
  std::vector<std::pair<fs::path, Input>> inputs;
  for (const fs::path& path : sorted(kCorpus / target)) {
    if (path.filename().native().starts_with("good-")) {
      inputs.emplace_back(path, read(path));
    }
  }
  EXPECT_FALSE(inputs.empty()) << target;
  return inputs;
}

// True for pictures that are whole without their last bytes: numbers as text, a second picture or
// spaces after the first, runs without the mark of their end, what version 2 of TGA adds.
bool may_be_cut(const std::string& name) {
  for (const char* start : {"good-rle", "good-p1", "good-p2", "good-p3", "good-another",
                            "good-space-after", "good-version-2"}) {
    if (name.starts_with(start)) {
      return true;
    }
  }
  return false;
}

// Formats that say how long they are, or where they end.
TEST(Damage, EveryTruncationIsRefused) {
  for (const char* name : {"jpeg", "png", "bmp", "pnm", "tga", "idx", "checksums", "listing",
                           "safetensors", "manifest", "store_manifest", "store_sample"}) {
    for (const auto& [path, input] : good_inputs(name)) {
      for (size_t length = 0; length < input.size() && !may_be_cut(path.filename()); ++length) {
        const Bytes cut = Bytes(input).first(length);
        EXPECT_NE(run(*find_target(name), cut), "") << path << " cut to " << length;
      }
    }
  }
}

// Formats that hold a checksum of all their bytes.
TEST(Damage, EveryFlippedBitIsRefused) {
  for (const char* name : {"checksums", "listing", "manifest", "store_manifest"}) {
    for (auto& [path, input] : good_inputs(name)) {
      for (size_t bit = 0; bit < 8 * input.size(); ++bit) {
        input[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
        EXPECT_NE(run(*find_target(name), input), "") << path << " bit " << bit;
        input[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Corpus, IsSmallAndBelongsToTargets) {
  uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kCorpus)) {
    if (entry.is_regular_file()) {
      bytes += entry.file_size();
      EXPECT_NE(find_target(entry.path().parent_path().filename().native()), nullptr) << entry;
    }
  }
  EXPECT_LE(bytes, 2u << 20);
}

TEST(Targets, RunChecksMessagesAndLetsOtherExceptionsThrough) {
  const Target quiet{"quiet", [](Bytes) { fail(""); }};
  const Target loud{"loud", [](Bytes) { fail(std::string(5000, 'x')); }};
  const Target lost{"lost", [](Bytes) { throw std::out_of_range("lost"); }};
  const Target fine{"fine", [](Bytes) {}};
  EXPECT_THROW(run(quiet, {}), Failure);
  EXPECT_THROW(run(loud, {}), Failure);
  EXPECT_THROW(run(lost, {}), std::out_of_range);
  EXPECT_EQ(run(fine, {}), "");
}

}  // namespace
}  // namespace binade::fuzz
