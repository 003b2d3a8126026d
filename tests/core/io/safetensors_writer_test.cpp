#include <binade/core/io/crc32c.h>
#include <binade/core/io/json_text.h>
#include <binade/core/io/safetensors.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "tests/core/io/model_file_system.h"
#include "tests/core/io/safetensors_bytes.h"
#include "tests/support/temporary_directory.h"

namespace binade::safetensors_writer_test {
namespace {

using testing::as_bytes;
using testing::ModelFileSystem;
using testing::TemporaryDirectory;
using testing::with_length;

struct Sample {
  std::vector<TensorSource> sources;
  std::vector<std::string> data;
  std::map<std::string, std::string> metadata;
};

std::string random_name(std::mt19937& random) {
  std::string name = std::to_string(random());
  for (size_t i = random() % 6; i > 0; --i) {
    const uint32_t code = random() % 3 == 0 ? 1 + random() % 0x2fff : 1 + random() % 0x7f;
    append_utf8(name, code);
  }
  return name;
}

Sample random_sample(std::mt19937& random) {
  Sample sample;
  const size_t count = random() % 50 == 0 ? 1000 : random() % 8;
  sample.data.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    TensorSource source{
        random_name(random), static_cast<DType>(random() % kDTypeCount), {}, {}, {}};
    for (size_t d = random() % 5; d > 0; --d) {
      source.sizes.push_back(static_cast<int64_t>(random() % 4));
    }
    std::string& bytes = sample.data.emplace_back();
    bytes.resize(static_cast<size_t>(element_count(source.sizes)) * size_of(source.dtype));
    for (char& c : bytes) {
      c = static_cast<char>(source.dtype == DType::boolean ? random() % 2 : random());
    }
    source.bytes = as_bytes(bytes);
    sample.sources.push_back(std::move(source));
  }
  for (size_t i = random() % 3; i > 0; --i) {
    sample.metadata[random_name(random)] = random_name(random);
  }
  return sample;
}

TEST(SafetensorsWriter, RoundTripOfRandomSets) {
  std::mt19937 random(13);
  ModelFileSystem disk;
  const int rounds = std::getenv("BINADE_LONG") ? 10'000 : 1'000;
  for (int round = 0; round < rounds; ++round) {
    const Sample sample = random_sample(random);
    write_safetensors("model", sample.sources, sample.metadata, disk);
    const SafetensorsFile file = SafetensorsFile::open("model", disk);
    ASSERT_EQ(file.entries().size(), sample.sources.size());
    EXPECT_EQ(file.metadata(), sample.metadata);
    for (const TensorSource& source : sample.sources) {
      const TensorEntry& entry = file.at(source.name);
      EXPECT_EQ(file.dtype_of(entry), source.dtype);
      EXPECT_EQ(entry.sizes, source.sizes);
      EXPECT_EQ(entry.begin % size_of(source.dtype), 0u);
      const std::vector<std::byte> bytes = file.read(entry);
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), source.bytes.begin(), source.bytes.end()));
    }
  }
}

std::string whole_file(FileSystem& disk) {
  const std::vector<std::byte> bytes = read_file("model", 1 << 30, disk);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(SafetensorsWriter, BytesAreDeterministicAndPadded) {
  std::mt19937 random(17);
  ModelFileSystem disk;
  for (int round = 0; round < 20; ++round) {
    Sample sample = random_sample(random);
    write_safetensors("model", sample.sources, sample.metadata, disk);
    const std::string first = whole_file(disk);
    std::shuffle(sample.sources.begin(), sample.sources.end(), random);
    write_safetensors("model", sample.sources, sample.metadata, disk);
    EXPECT_EQ(whole_file(disk), first);
    EXPECT_EQ(first[8], '{');
    EXPECT_EQ(static_cast<uint8_t>(first[0]) % 8, 0);
    EXPECT_EQ(SafetensorsWriter(sample.sources, sample.metadata).file_bytes(), first.size());
  }
}

TEST(SafetensorsWriter, KnownBytes) {
  ModelFileSystem disk;
  const std::string f32(8, 'f'), u8(1, 'u'), f64(8, 'd');
  const TensorSource kSources[] = {{"a", DType::u8, {1}, as_bytes(u8), {}},
                                   {"z", DType::f32, {2}, as_bytes(f32), {}},
                                   {"q\"\n", DType::f64, {}, as_bytes(f64), {}}};
  write_safetensors("model", kSources, {{"format", "pt"}}, disk);
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("q\"\u000a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                             R"("z":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(whole_file(disk), with_length(header + padding, f64 + f32 + u8));
}

TEST(SafetensorsWriter, ProducersStreamTheirBytes) {
  ModelFileSystem disk;
  const auto produce = [](int pieces) {
    return [pieces](const ByteSink& sink) {
      for (int i = 0; i < pieces; ++i) {
        sink(as_bytes("abcd"));
      }
    };
  };
  const TensorSource kGood[] = {{"a", DType::f32, {3}, {}, produce(3)}};
  write_safetensors("model", kGood, {}, disk);
  const SafetensorsFile file = SafetensorsFile::open("model", disk);
  EXPECT_EQ(std::memcmp(file.read(file.at("a")).data(), "abcdabcdabcd", 12), 0);
  const std::string before = whole_file(disk);
  for (const int pieces : {0, 2, 4}) {
    const TensorSource kBad[] = {{"a", DType::f32, {3}, {}, produce(pieces)}};
    EXPECT_THROW(write_safetensors("model", kBad, {}, disk), Error);
    EXPECT_EQ(whole_file(disk), before);  // the old file is unchanged
  }
  EXPECT_EQ(list_directory(".", disk).size(), 1u);
}

void write_with_sums(const Sample& sample, FileSystem& disk) {
  write_safetensors("model", sample.sources, sample.metadata, disk, SafetensorsSums::crc32c);
}

void read_all(FileSystem& disk) {
  const SafetensorsFile file = SafetensorsFile::open("model", disk);
  for (const TensorEntry& entry : file.entries()) {
    (void)file.read(entry);
  }
}

TEST(SafetensorsChecksums, AnyFlippedBitIsAnError) {
  std::mt19937 random(23);
  ModelFileSystem disk;
  const std::string f32 = "12345678", u8 = "u";
  const Sample sample{{{"weight", DType::f32, {2}, as_bytes(f32), {}},
                       {"none", DType::f16, {0, 3}, {}, {}},
                       {"b\"\n", DType::u8, {1}, as_bytes(u8), {}}},
                      {},
                      {{"format", "pt"}, {"note", "a \"binade.crc32c\":\" b"}}};
  write_with_sums(sample, disk);
  const std::string good = whole_file(disk);
  EXPECT_NO_THROW(read_all(disk));
  EXPECT_TRUE(SafetensorsFile::open("model", disk).has_checksums());
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    disk.remove_file("model");
    OutputFile file("model", disk);
    file.write(bad);
    file.finish();
    EXPECT_THROW(read_all(disk), Error) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST(SafetensorsChecksums, NameTheTensorAndAreOfEveryFile) {
  std::mt19937 random(29);
  ModelFileSystem disk;
  for (int round = 0; round < 100; ++round) {
    write_with_sums(random_sample(random), disk);
    EXPECT_NO_THROW(read_all(disk));
    const SafetensorsFile file = SafetensorsFile::open("model", disk);
    for (const TensorEntry& entry : file.entries()) {
      EXPECT_NO_THROW(file.verify(entry));
    }
  }
  const std::string data(3 << 20, 'x');
  const auto half = [&](const ByteSink& sink) {
    sink(as_bytes(data).first(1000));
    sink(as_bytes(data).subspan(1000));
  };
  write_with_sums({{{"large", DType::u8, {3 << 20}, {}, half}}, {}, {}}, disk);
  std::string bytes = whole_file(disk);
  bytes[bytes.size() - 7] ^= 4;
  disk.remove_file("model");
  OutputFile out("model", disk);
  out.write(bytes);
  out.finish();
  const SafetensorsFile file = SafetensorsFile::open("model", disk);
  for (const bool reads : {false, true}) {
    try {
      reads ? (void)file.read(file.at("large")) : file.verify(file.at("large"));
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(
          std::string(error.what()).find("model: tensor \"large\": its bytes have the checksum"),
          std::string::npos)
          << error.what();
    }
  }
}

// A newer rule is rejected by its name; the writer rejects the keys that it reserves.
TEST(SafetensorsChecksums, ANewerFormatIsRefused) {
  ModelFileSystem disk;
  EXPECT_THROW(write_safetensors("model", {}, {{kSafetensorsFormat, "1"}}, disk), Error);
  EXPECT_THROW(write_safetensors("model", {}, {{kSafetensorsChecksums, "1"}}, disk), Error);
  const auto json = [](const std::string& sum) {
    return R"({"__metadata__":{"binade.crc32c":")" + sum + R"(","binade.format":"2"}})";
  };
  const std::string zeros = json("00000000");
  char sum[9];
  std::snprintf(sum, sizeof sum, "%08x", crc32c(as_bytes(zeros)));
  const std::string file = with_length(json(sum));
  OutputFile out("newer", disk);
  out.write(file);
  out.finish();
  try {
    (void)SafetensorsFile::open("newer", disk);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("have format \"2\""), std::string::npos)
        << error.what();
  }
}

TEST(SafetensorsWriter, RefusesWhatAReaderWould) {
  const std::string four(4, 'x');
  const auto error_of_sources =
      [](std::vector<TensorSource> sources,
         std::map<std::string, std::string> metadata = {}) -> std::string {
    try {
      SafetensorsWriter writer(sources, metadata);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto bytes = as_bytes(four);
  const std::pair<std::string, const char*> kCases[] = {
      {error_of_sources({{"a", DType::f32, {2}, bytes, {}}}),
       "got 4 bytes, expected 8 for f32 of shape [2]"},
      {error_of_sources({{"a", DType::f32, {-1}, bytes, {}}}), "no negative size"},
      {error_of_sources({{"", DType::f32, {1}, bytes, {}}}), "empty name"},
      {error_of_sources({{std::string(1025, 'a'), DType::f32, {1}, bytes, {}}}), "1025 bytes"},
      {error_of_sources({{std::string("a\0", 2), DType::f32, {1}, bytes, {}}}), "NUL"},
      {error_of_sources({{"\xff", DType::f32, {1}, bytes, {}}}), "not UTF-8"},
      {error_of_sources({{"__metadata__", DType::f32, {1}, bytes, {}}}), "__metadata__"},
      {error_of_sources({{"a", DType::f32, {1}, bytes, {}}, {"a", DType::u8, {4}, bytes, {}}}),
       "\"a\" twice"},
      {error_of_sources({}, {{"a", "\xff"}}), "not UTF-8"},
  };
  for (const auto& [error, part] : kCases) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " got: " << error;
  }
}

TEST(SafetensorsWriter, MayReplaceTheFileThatIsBeingRead) {
  const TemporaryDirectory directory;
  const std::string path = directory / "model.safetensors", old(8, 'o'), fresh(12, 'f');
  const TensorSource kOld[] = {{"a", DType::f32, {2}, as_bytes(old), {}}};
  const TensorSource kNew[] = {{"a", DType::f32, {3}, as_bytes(fresh), {}}};
  write_safetensors(path, kOld);
  const SafetensorsFile reader = SafetensorsFile::open(path);
  write_safetensors(path, kNew);
  EXPECT_EQ(reader.read(reader.at("a"))[0], std::byte{'o'});
  const SafetensorsFile again = SafetensorsFile::open(path);
  EXPECT_EQ(again.read(again.at("a")).size(), 12u);
}

// --- files of others ---

TEST(SafetensorsData, RealFilesReadAndSurviveARewrite) {
  const char* given = std::getenv("BINADE_SHARED");
  const std::filesystem::path shared = given ? given : BINADE_SOURCE_DIR "/../shared";
  if (!std::filesystem::is_directory(shared / "data/safetensors")) {
    GTEST_SKIP() << "skipped: no ../shared";
  }
  int count = 0;
  for (const auto& found :
       std::filesystem::recursive_directory_iterator(shared / "data/safetensors")) {
    if (found.path().extension() != ".safetensors") {
      continue;
    }
    ++count;
    const SafetensorsFile file = SafetensorsFile::open(found.path().string());
    EXPECT_FALSE(file.entries().empty()) << found.path();
    std::vector<std::vector<std::byte>> data;
    std::vector<TensorSource> sources;
    for (const TensorEntry& entry : file.entries()) {
      data.push_back(file.read(entry));
      if (entry.dtype) {
        sources.push_back({entry.name, *entry.dtype, entry.sizes, data.back(), {}});
      }
    }
    ModelFileSystem disk;
    write_safetensors("model", sources, file.metadata(), disk);
    const SafetensorsFile again = SafetensorsFile::open("model", disk);
    EXPECT_EQ(again.metadata(), file.metadata());
    for (const TensorSource& source : sources) {
      EXPECT_EQ(again.read(again.at(source.name)), file.read(file.at(source.name))) << source.name;
    }
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace binade::safetensors_writer_test
