// Parses the header of a safetensors file, JSON -> TensorEntry, and checks every rule of the
// format.
#include <binade/core/io/json_scan_internal.h>
#include <binade/core/io/json_text.h>
#include <binade/core/io/safetensors.h>
#include <binade/core/io/safetensors_types_internal.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace binade {
namespace {

constexpr SafetensorsType kTypes[] = {
    {"F64", 64, DType::f64},
    {"F32", 32, DType::f32},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I64", 64, DType::i64},
    {"I32", 32, DType::i32},
    {"U8", 8, DType::u8},
    {"BOOL", 8, DType::boolean},
    {"C64", 64, std::nullopt},
    {"U64", 64, std::nullopt},
    {"U32", 32, std::nullopt},
    {"I16", 16, std::nullopt},
    {"U16", 16, std::nullopt},
    {"I8", 8, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},
};

class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text)
      : path_(path), scanner_(path, text) {}

  SafetensorsHeader parse() {
    expect(JsonToken::begin_object, "the header is not a JSON object");
    while (scanner_.next() == JsonToken::key) {
      if (scanner_.string() == "__metadata__") {
        parse_metadata();
      } else {
        parse_tensor(std::string(scanner_.string()));
      }
    }
    scanner_.next();  // nothing may follow
    return std::move(header_);
  }

 private:
  void expect(JsonToken token, const char* otherwise) {
    if (scanner_.next() != token) {
      scanner_.fail_here(otherwise);
    }
  }

  void parse_metadata() {
    expect(JsonToken::begin_object, "__metadata__ is not an object");
    while (scanner_.next() == JsonToken::key) {
      std::string key(scanner_.string());
      expect(JsonToken::string, "a value of __metadata__ is not a string");
      header_.metadata[std::move(key)] = scanner_.string();
    }
  }

  void parse_tensor(std::string name) {
    check(header_.entries.size() < kSafetensorsMaxTensors, path_, ": more than ",
          kSafetensorsMaxTensors, " tensors");
    check_tensor_name(path_, name);
    TensorEntry entry;
    entry.name = std::move(name);
    bool has_type = false, has_sizes = false, has_range = false;
    expect(JsonToken::begin_object, "the description of a tensor is not an object");
    while (scanner_.next() == JsonToken::key) {
      const std::string_view field = scanner_.string();
      if (field == "dtype") {
        parse_type(entry);
        has_type = true;
      } else if (field == "shape") {
        parse_sizes(entry);
        has_sizes = true;
      } else if (field == "data_offsets") {
        parse_range(entry);
        has_range = true;
      } else {
        warn_unknown(entry, field);
        scanner_.skip_value();
      }
    }
    if (!has_type || !has_sizes || !has_range) {
      const char* missing = !has_type ? "dtype" : !has_sizes ? "shape" : "data_offsets";
      fail_tensor(entry, text("the field ", missing, " is missing"));
    }
    check_bytes(entry);
    header_.entries.push_back(std::move(entry));
  }

  void parse_type(TensorEntry& entry) {
    expect(JsonToken::string, "dtype is not a string");
    const SafetensorsType* type = find_safetensors_type(scanner_.string());
    if (!type) {
      fail_tensor(entry, text("unknown dtype ", json_quoted_short(scanner_.string())));
    }
    entry.type = type->name;
    entry.dtype = type->dtype;
  }

  void parse_sizes(TensorEntry& entry) {
    entry.sizes = Dims();
    expect(JsonToken::begin_array, "shape is not an array");
    for (JsonToken token = scanner_.next(); token != JsonToken::end_array;
         token = scanner_.next()) {
      if (token != JsonToken::integer) {
        scanner_.fail_here("a size in shape is not an integer");
      }
      if (entry.sizes.size() == kMaxDims) {
        fail_tensor(entry, text("more than ", kMaxDims, " dimensions"));
      }
      entry.sizes.push_back(static_cast<int64_t>(scanner_.integer()));
    }
  }

  void parse_range(TensorEntry& entry) {
    constexpr const char* kExpected = "data_offsets is not an array of two integers";
    expect(JsonToken::begin_array, kExpected);
    expect(JsonToken::integer, kExpected);
    entry.begin = scanner_.integer();
    expect(JsonToken::integer, kExpected);
    entry.end = scanner_.integer();
    expect(JsonToken::end_array, kExpected);
  }

  void check_bytes(const TensorEntry& entry) const {
    if (entry.begin > entry.end) {
      fail_tensor(entry, text("data_offsets [", entry.begin, ", ", entry.end, "] run backwards"));
    }
    // Sizes of 0 count as 1 first, so that [0, 2^53, 2^53] is rejected too.
    uint64_t bits = find_safetensors_type(entry.type)->bits;
    bool overflow = false, empty = false;
    for (const int64_t size : entry.sizes) {
      empty |= size == 0;
      const auto factor = static_cast<uint64_t>(std::max<int64_t>(size, 1));
      overflow |= __builtin_mul_overflow(bits, factor, &bits);
    }
    if (overflow) {
      fail_tensor(entry, text("shape ", entry.sizes, " is too large"));
    }
    bits = empty ? 0 : bits;
    if (bits % 8 != 0 || bits / 8 != entry.bytes()) {
      fail_tensor(entry, text("data_offsets span ", entry.bytes(), " bytes, expected ", bits / 8.0,
                              " for ", entry.type, " of shape ", entry.sizes));
    }
  }

  void warn_unknown(const TensorEntry& entry, std::string_view field) {
    constexpr size_t kMostWarnings = 16;
    if (header_.warnings.size() < kMostWarnings) {
      header_.warnings.push_back(text(path_, ": tensor ", json_quoted_short(entry.name),
                                      ": ignored the unknown field ", json_quoted_short(field)));
    }
  }

  [[noreturn]] void fail_tensor(const TensorEntry& entry, const std::string& what) const {
    fail(path_, ": tensor ", json_quoted_short(entry.name), ": ", what);
  }

  const std::string& path_;
  JsonScanner scanner_;
  SafetensorsHeader header_;
};

// The ranges, in order, must cover the data section exactly.
void check_ranges(const std::string& path, const SafetensorsHeader& header, uint64_t data_bytes) {
  uint64_t expected = 0;
  for (const TensorEntry& entry : header.entries) {
    check(entry.begin == expected, path, ": tensor ", json_quoted_short(entry.name),
          ": begins at byte ", entry.begin, " of the data, expected ", expected,
          entry.begin < expected ? " (overlap)" : " (hole)");
    expected = entry.end;
  }
  check(expected == data_bytes, path, ": the file has ", data_bytes, " bytes of data, expected ",
        expected, data_bytes < expected ? " (cut off?)" : " (trailing bytes)");
}

}  // namespace

const SafetensorsType* find_safetensors_type(std::string_view name) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const SafetensorsType& type) { return type.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string_view safetensors_type_name(DType dtype) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const SafetensorsType& type) { return type.dtype == dtype; });
  return found->name;
}

void check_tensor_name(const std::string& path, std::string_view name) {
  check(!name.empty(), path, ": a tensor has an empty name");
  check(name.size() <= kSafetensorsMaxName, path, ": tensor ", json_quoted_short(name),
        ": the name has ", name.size(), " bytes, expected at most ", kSafetensorsMaxName);
  check(name.find('\0') == std::string_view::npos, path, ": tensor ", json_quoted_short(name),
        ": the name has a NUL character");
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text,
                                           uint64_t data_bytes) {
  SafetensorsHeader header = HeaderParser(path, text).parse();
  const auto before = [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  };
  std::stable_sort(header.entries.begin(), header.entries.end(), before);
  check_ranges(path, header, data_bytes);
  return header;
}

}  // namespace binade
