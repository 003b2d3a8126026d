#include <binade/core/io/safetensors.h>

#include <gtest/gtest.h>

#include <random>

#include "tests/core/io/model_file_system.h"
#include "tests/core/io/safetensors_bytes.h"

namespace binade::safetensors_test {
namespace {

using testing::ModelFileSystem;
using testing::with_length;

SafetensorsFile open_bytes(const std::string& bytes, ModelFileSystem& disk) {
  disk.remove_file("model.safetensors");
  OutputFile file("model.safetensors", disk);
  file.write(bytes);
  file.finish();
  return SafetensorsFile::open("model.safetensors", disk);
}

// The error from opening a file with these bytes and reading all of it; empty if there is none.
std::string error_of(const std::string& bytes) {
  ModelFileSystem disk;
  try {
    const SafetensorsFile file = open_bytes(bytes, disk);
    for (const TensorEntry& entry : file.entries()) {
      file.read(entry);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
  return "{" + tensor("a", type, shape, offsets) + "}";
}

// --- what is accepted ---

TEST(Safetensors, Accepts) {
  struct Case {
    std::string header;
    size_t data, tensors;
  };
  const Case kCases[] = {
      {"{}", 0, 0},
      {"{}      ", 0, 0},
      {" \t\r\n{}\n", 0, 0},
      {R"({"__metadata__":{}})", 0, 0},
      {R"({"__metadata__":{"format":"pt","":"\u0000"}})", 0, 0},
      {one("F32", "[]", "[0,4]"), 4, 1},
      {one("F32", "[0]", "[0,0]"), 0, 1},
      {one("F32", "[3,0,5]", "[0,0]"), 0, 1},
      {one("F64", "[1,1,1,1,1,1,1,2]", "[0,16]"), 16, 1},
      {"{ " + tensor("b", "U8", "[2]", "[1,3]") + " , " + tensor("a", "BOOL", "[1]", "[0,1]") + "}",
       3, 2},
      {R"({"a":{"data_offsets":[0,2],"shape":[1],"dtype":"BF16"}})", 2, 1},
      {"{" + tensor("z", "U8", "[0]", "[2,2]") + "," + tensor("a", "U8", "[2]", "[0,2]") + "," +
           tensor("b", "U8", "[1]", "[2,3]") + "}",
       3, 3},
      {"{" + tensor(std::string(1024, 'n'), "I8", "[1]", "[0,1]") + "}", 1, 1},
      {R"({"\u0061\n\"":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8, 1},
  };
  for (const Case& test : kCases) {
    ModelFileSystem disk;
    try {
      const SafetensorsFile file =
          open_bytes(with_length(test.header, std::string(test.data, '\1')), disk);
      EXPECT_EQ(file.entries().size(), test.tensors) << test.header;
      EXPECT_TRUE(file.warnings().empty());
    } catch (const Error& error) {
      ADD_FAILURE() << test.header << " gave " << error.what();
    }
  }
}

TEST(Safetensors, UnknownFieldsAreIgnoredWithAWarning) {
  ModelFileSystem disk;
  const SafetensorsFile file = open_bytes(
      with_length(R"({"a":{"dtype":"U8","shape":[1],"extra":{"x":[1]},"data_offsets":[0,1]}})",
                  "x"),
      disk);
  ASSERT_EQ(file.warnings().size(), 1u);
  EXPECT_NE(file.warnings()[0].find("unknown field \"extra\""), std::string::npos);
  EXPECT_EQ(file.entries().size(), 1u);
}

TEST(Safetensors, TypesWithoutADTypeAreListedAndReadAsBytes) {
  struct Case {
    const char *type, *shape;
    size_t bytes;
  };
  const Case kCases[] = {{"I8", "[3]", 3},      {"U16", "[3]", 6},     {"U32", "[2]", 8},
                         {"U64", "[1]", 8},     {"I16", "[1]", 2},     {"F8_E4M3", "[5]", 5},
                         {"F8_E5M2", "[2]", 2}, {"F8_E8M0", "[2]", 2}, {"C64", "[1]", 8},
                         {"F4", "[4]", 2},      {"F6_E2M3", "[4]", 3}, {"F6_E3M2", "[8]", 6}};
  for (const Case& test : kCases) {
    ModelFileSystem disk;
    const std::string data(test.bytes, '\xab');
    const std::string header = one(test.type, test.shape, text("[0,", test.bytes, "]"));
    const SafetensorsFile file = open_bytes(with_length(header, data), disk);
    const TensorEntry& entry = file.at("a");
    EXPECT_EQ(entry.type, test.type);
    EXPECT_FALSE(entry.dtype.has_value());
    EXPECT_EQ(file.read(entry).size(), test.bytes);
    try {
      file.dtype_of(entry);
      ADD_FAILURE() << test.type;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(test.type), std::string::npos) << error.what();
    }
  }
}

TEST(Safetensors, FindsByName) {
  ModelFileSystem disk;
  const std::string header =
      "{" + tensor("b", "U8", "[1]", "[0,1]") + "," + tensor("a", "U8", "[1]", "[1,2]") + "}";
  const SafetensorsFile file = open_bytes(with_length(header, "xy"), disk);
  EXPECT_EQ(file.entries()[0].name, "b");  // in the order of the data
  EXPECT_EQ(file.read(file.at("a"))[0], std::byte{'y'});
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_THROW(file.at("c"), Error);
  EXPECT_EQ(file.dtype_of(file.at("a")), DType::u8);
  std::byte room[2];
  EXPECT_THROW(file.read(file.at("a"), room), Error);
}

// --- what is refused ---

TEST(Safetensors, RefusesFilesByTheirLength) {
  const auto length = [](uint64_t value, const std::string& rest) {
    std::string file(8, '\0');
    for (size_t i = 0; i < 8; ++i) {
      file[i] = static_cast<char>(value >> (8 * i));
    }
    return file + rest;
  };
  const std::pair<std::string, const char*> kCases[] = {
      {"", "the file has 0 bytes"},
      {"1234567", "the file has 7 bytes"},
      {length(0, "{}"), "the header has 0 bytes"},
      {length(3, "{}"), "but the file only 10"},
      {length(2, ""), "but the file only 8"},
      {length(100'000'001, "{}"), "expected 1 to 100000000"},
      {length(uint64_t{1} << 63, "{}"), "expected 1 to 100000000"},
      {length(~uint64_t{0}, "{}"), "expected 1 to 100000000"},
      {length(~uint64_t{0} - 7, "{}"), "expected 1 to 100000000"},
  };
  for (const auto& [bytes, part] : kCases) {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find(part), std::string::npos) << part << " got " << error;
    EXPECT_EQ(error.find("model.safetensors: "), 0u) << error;
  }
}

TEST(Safetensors, RefusesHeaders) {
  const std::string a = tensor("a", "U8", "[2]", "[0,2]");
  struct Case {
    std::string header;
    size_t data;
    const char* part;
  };
  const Case kCases[] = {
      {"[]", 0, "not a JSON object"},
      {"1", 0, "not a JSON object"},
      {"\"a\"", 0, "not a JSON object"},
      {"null", 0, "not a JSON object"},
      {"  ", 0, "ends here"},
      {"{}x", 0, "after the end"},
      {"{}{}", 0, "after the end"},
      {std::string("{}\0", 3), 0, "after the end"},
      {"{\"\xff\":1}", 0, "UTF-8"},
      {R"({"\ud800":{}})", 0, "lone surrogate"},
      {R"({"a":1})", 0, "not an object"},
      {R"({"a":[]})", 0, "not an object"},
      {R"({"a":{}})", 0, "dtype is missing"},
      {R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0, "shape is missing"},
      {R"({"a":{"dtype":"U8","shape":[0]}})", 0, "data_offsets is missing"},
      {R"({"a":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})", 0, "dtype is not a string"},
      {one("U9", "[0]", "[0,0]"), 0, "unknown dtype \"U9\""},
      {one("u8", "[0]", "[0,0]"), 0, "unknown dtype \"u8\""},
      {one("", "[0]", "[0,0]"), 0, "unknown dtype \"\""},
      {one("U8", "2", "[0,2]"), 2, "shape is not an array"},
      {one("U8", "{}", "[0,2]"), 2, "shape is not an array"},
      {one("U8", "[\"2\"]", "[0,2]"), 2, "not an integer"},
      {one("U8", "[[2]]", "[0,2]"), 2, "not an integer"},
      {one("U8", "[null]", "[0,2]"), 2, "not an integer"},
      {one("U8", "[-2]", "[0,2]"), 2, "negative"},
      {one("U8", "[2.0]", "[0,2]"), 2, "fraction"},
      {one("U8", "[2e0]", "[0,2]"), 2, "fraction"},
      {one("U8", "[02]", "[0,2]"), 2, "leading zeros"},
      {one("U8", "[9007199254740993]", "[0,2]"), 2, "above 2^53"},
      {one("U8", "[18446744073709551618]", "[0,2]"), 2, "above 2^53"},
      {one("U8", "[0,9223372036854775808]", "[0,0]"), 0, "above 2^53"},
      {one("U8", "[9007199254740992,9007199254740992]", "[0,0]"), 0, "too large"},
      {one("U8", "[0,9007199254740992,9007199254740992]", "[0,0]"), 0, "too large"},
      {one("U8", "[4294967296,4294967296]", "[0,0]"), 0, "too large"},
      {one("F64", "[2251799813685248,1024]", "[0,0]"), 0, "too large"},
      {one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "more than 8 dimensions"},
      {one("F32", "[2]", "[0,4]"), 4, "span 4 bytes, expected 8"},
      {one("F32", "[]", "[0,0]"), 0, "span 0 bytes, expected 4"},
      {one("F32", "[0]", "[0,4]"), 4, "span 4 bytes, expected 0"},
      {one("F4", "[3]", "[0,2]"), 2, "expected 1.5"},
      {one("U8", "[2]", "[2,0]"), 2, "run backwards"},
      {one("U8", "[2]", "[0]"), 2, "two integers"},
      {one("U8", "[2]", "[0,2,4]"), 2, "two integers"},
      {one("U8", "[2]", "{}"), 2, "two integers"},
      {one("U8", "[2]", "[\"0\",2]"), 2, "two integers"},
      {one("U8", "[2]", "[-1,1]"), 2, "negative"},
      {one("U8", "[2]", "[0,2]"), 1, "cut off"},
      {one("U8", "[2]", "[0,2]"), 3, "trailing bytes"},
      {one("U8", "[2]", "[1,3]"), 3, "(hole)"},
      {one("U8", "[9007199254740992]", "[0,9007199254740992]"), 2, "cut off"},
      {"{}", 1, "trailing bytes"},
      {"{" + a + "," + tensor("b", "U8", "[2]", "[1,3]") + "}", 3, "(overlap)"},
      {"{" + a + "," + tensor("b", "U8", "[2]", "[0,2]") + "}", 2, "(overlap)"},
      {"{" + a + "," + tensor("b", "U8", "[1]", "[3,4]") + "}", 4, "(hole)"},
      {"{" + tensor("b", "U8", "[1]", "[3,4]") + "," + a + "}", 4, "(hole)"},
      {"{" + a + "," + tensor("b", "U8", "[0]", "[1,1]") + "}", 2, "(overlap)"},
      {"{" + a + "," + tensor("b", "U8", "[0]", "[3,3]") + "}", 2, "(hole)"},
      {"{" + a + "," + a + "}", 2, "key \"a\" twice"},
      {"{" + a + "," + tensor("\\u0061", "U8", "[0]", "[2,2]") + "}", 2, "key \"a\" twice"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0,
       "key \"dtype\" twice"},
      {R"({"a":{"dtype":"U8","shape":[0],"sh\u0061pe":[0],"data_offsets":[0,0]}})", 0,
       "\"shape\" twice"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"data_offsets":[0,0]}})", 0,
       "\"data_offsets\" twice"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1,"x":1}})", 0, "\"x\" twice"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":[[[]]]}})", 0, "deeper than 4"},
      {R"({"__metadata__":1})", 0, "__metadata__ is not an object"},
      {R"({"__metadata__":{"a":1}})", 0, "not a string"},
      {R"({"__metadata__":{"a":null}})", 0, "not a string"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0, "not a string"},
      {R"({"__metadata__":{"a":"b","a":"c"}})", 0, "key \"a\" twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "key \"__metadata__\" twice"},
      {"{" + tensor("", "U8", "[0]", "[0,0]") + "}", 0, "empty name"},
      {"{" + tensor("a\\u0000b", "U8", "[0]", "[0,0]") + "}", 0, "NUL"},
      {"{" + tensor(std::string(1025, 'n'), "U8", "[0]", "[0,0]") + "}", 0, "1025 bytes"},
      {"{" + tensor("\\n\\u001b", "U8", "[1]", "[0,0]") + "}", 0, "tensor \"\\u000a\\u001b\""},
  };
  for (const Case& test : kCases) {
    const std::string error = error_of(with_length(test.header, std::string(test.data, '\0')));
    EXPECT_NE(error.find(test.part), std::string::npos) << test.header << " gave: " << error;
    EXPECT_EQ(error.find("model.safetensors: "), 0u) << error;
    EXPECT_EQ(error.find_first_of("\n\r\x1b"), std::string::npos) << error;
    EXPECT_LT(error.size(), 400u) << error;
  }
}

TEST(Safetensors, BooleansMustBeZeroOrOne) {
  EXPECT_EQ(error_of(with_length(one("BOOL", "[2]", "[0,2]"), std::string("\0\1", 2))), "");
  EXPECT_NE(error_of(with_length(one("BOOL", "[2]", "[0,2]"), "\1\2")).find("neither 0 nor 1"),
            std::string::npos);
}

TEST(Safetensors, AcceptsTheLongestHeader) {
  std::string header(kSafetensorsMaxHeader, ' ');
  header[0] = '{', header[1] = '}';
  EXPECT_EQ(error_of(with_length(header)), "");
}

TEST(Safetensors, RefusesTooManyTensors) {
  std::string header = "{";
  for (size_t i = 0; i <= kSafetensorsMaxTensors; ++i) {
    header += (i ? "," : "") + tensor(std::to_string(i), "U8", "[0]", "[0,0]");
  }
  header += "}";
  EXPECT_THROW(parse_safetensors_header("path", header, 0), Error);
}

// --- damage ---

std::string small_file() {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},)" + tensor("w\\u00e9", "F32", "[2,1]", "[0,8]") + "," +
      tensor("b", "BOOL", "[2]", "[8,10]") + "," + tensor("e", "I64", "[0]", "[10,10]") + "}";
  return with_length(header, std::string(8, 'x') + std::string("\0\1", 2));
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string file = small_file();
  ASSERT_EQ(error_of(file), "");
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(error_of(file.substr(0, length)), "") << length;
  }
  EXPECT_NE(error_of(file + "x"), "");
}

TEST(Safetensors, FlippedHeaderBitsNeverCrash) {
  const std::string file = small_file();
  const size_t header_end = file.size() - 10;
  int refused = 0;
  for (size_t bit = 0; bit < header_end * 8; ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    refused += !error_of(damaged).empty();
  }
  EXPECT_GT(refused, static_cast<int>(header_end) * 5);  // the rest gives other names or metadata
}

TEST(Safetensors, RandomDamageNeverCrashes) {
  std::mt19937 random(11);
  const std::string file = small_file();
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = file;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const size_t from = random() % damaged.size(), to = random() % damaged.size();
      switch (random() % 3) {
        case 0: damaged[to] = damaged[from]; break;
        case 1: damaged.insert(to, damaged.substr(from, random() % 20)); break;
        default: damaged.erase(to, random() % 5 % damaged.size()); break;
      }
      damaged += damaged.empty() ? "x" : "";
    }
    refused += !error_of(damaged).empty();
  }
  EXPECT_GT(refused, 15'000);
}

}  // namespace
}  // namespace binade::safetensors_test
