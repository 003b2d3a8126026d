// TokenWindows: reads windows by position (pread), which the page cache serves as it would a memory
// map. A map would end the program by SIGBUS if the file shrinks; a read returns fewer bytes.
#include <binade/core/io/file_system.h>
#include <binade/core/io/hash64.h>
#include <binade/data/checksums.h>
#include <binade/data/fields_internal.h>
#include <binade/data/sets/token_windows.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace binade::data {
namespace {

size_t width_of(TokenType type) { return type == TokenType::u16 ? 2 : 4; }

}  // namespace

// A file, or ids in memory.
struct TokenWindows::Source {
  std::string name;
  std::optional<InputFile> file = {};
  std::vector<uint32_t> ids = {};
  int64_t count = 0;

  // Fills `out` from id `first` on.
  void read(int64_t first, std::span<int64_t> out, const TokenWindowsOptions& options) const {
    if (!file) {
      std::copy_n(ids.begin() + first, out.size(), out.begin());
      return;
    }
    const size_t width = width_of(options.dtype);
    std::vector<std::byte> bytes(out.size() * width);
    file->read(static_cast<uint64_t>(options.header_bytes) + static_cast<uint64_t>(first) * width,
               bytes);
    for (size_t i = 0; i < out.size(); ++i) {
      uint32_t id = 0;
      for (size_t b = 0; b < width; ++b) {
        id |= std::to_integer<uint32_t>(bytes[i * width + b]) << (8 * b);
      }
      out[i] = id;
    }
  }
};

TokenWindows::TokenWindows(std::string path, TokenWindowsOptions options)
    : TokenWindows(std::vector<std::string>{std::move(path)}, options) {}

TokenWindows::TokenWindows(std::vector<std::string> paths, TokenWindowsOptions options)
    : options_(options) {
  check_options();
  check(!paths.empty(), "token windows: got no files");
  for (const std::string& path : paths) {
    auto source = std::make_shared<Source>(Source{.name = path});
    source->file.emplace(path);
    const auto size = static_cast<int64_t>(source->file->size());
    if (const auto expected = expected_checksum(path);
        expected && expected->size != uint64_t(size)) {
      verify_checksum(path, *expected, {.size = static_cast<uint64_t>(size)});
    }
    const int64_t bytes = size - options_.header_bytes,
                  width = static_cast<int64_t>(width_of(options_.dtype));
    check(bytes >= 0 && bytes % width == 0, path, ": token windows: got ", size,
          " bytes, expected a header of ", options_.header_bytes, " and ids of ", width,
          " bytes; is it another TokenType?");
    source->count = bytes / width;
    add(std::move(source));
  }
}

TokenWindows::TokenWindows(const Tensor& ids, TokenWindowsOptions options)
    : TokenWindows(
          [&] {
            check(ids.defined() && ids.dim() == 1 && !is_floating(ids.dtype()) &&
                      ids.dtype() != DType::boolean,
                  "token windows: got ",
                  ids.defined() ? text(ids.dtype(), " ", ids.sizes()) : "an undefined tensor",
                  ", expected ids [n] of i64, i32 or u8");
            return plain(ids).to(DType::i64).to_vector<int64_t>();
          }(),
          options, InMemory{}) {}

TokenWindows::TokenWindows(const std::vector<int64_t>& ids, TokenWindowsOptions options, InMemory)
    : options_(options) {
  check_options();
  auto source = std::make_shared<Source>(Source{.name = "ids"});
  source->ids.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] <= std::numeric_limits<uint32_t>::max(), "token windows: got id ",
          ids[i], " at position ", i, ", expected 0 to 2^32 - 1");
    source->ids.push_back(static_cast<uint32_t>(ids[i]));
  }
  source->count = static_cast<int64_t>(ids.size());
  add(std::move(source));
}

void TokenWindows::check_options() {
  TokenWindowsOptions& o = options_;
  constexpr int64_t kMost = int64_t(1) << 40;
  check(o.context >= 1 && o.context <= kMost, "token windows: got context ", o.context,
        ", expected at least 1 (TokenWindowsOptions::context)");
  check(o.stride >= 0 && o.stride <= kMost && o.header_bytes >= 0 && o.vocabulary >= 0,
        "token windows: got stride ", o.stride, ", header_bytes ", o.header_bytes,
        " and vocabulary ", o.vocabulary, ", expected at least 0");
  o.stride = o.stride == 0 ? o.context : o.stride;
}

void TokenWindows::add(std::shared_ptr<const Source> source) {
  check(source->count > options_.context, source->name, ": token windows: got ", source->count,
        " ids, expected at least ", options_.context + 1, ": the context and one more");
  size_ += (source->count - options_.context - 1) / options_.stride + 1;
  ends_.push_back(size_);
  sources_.push_back(std::move(source));
}

TokenWindows::Place TokenWindows::place(int64_t index) const {
  check(index >= 0 && index < size_, "token windows: got index ", index, ", expected one of ",
        size_);
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
  const auto source = static_cast<size_t>(end - ends_.begin());
  const int64_t begin = source == 0 ? 0 : ends_[source - 1];
  return {sources_[source].get(), (index - begin) * options_.stride};
}

Sample TokenWindows::get(int64_t index) const {
  const Place at = place(index);
  std::vector<int64_t> ids(static_cast<size_t>(options_.context) + 1);
  at.source->read(at.first, ids, options_);
  for (size_t i = 0; i < ids.size() && options_.vocabulary > 0; ++i) {
    check(ids[i] < options_.vocabulary, at.source->name, ": got id ", ids[i], " at token ",
          at.first + static_cast<int64_t>(i), ", expected less than the vocabulary of ",
          options_.vocabulary);
  }
  const std::span<const int64_t> all = ids;
  return {.fields = {{"tokens", Tensor::from(all.first(ids.size() - 1), {options_.context})},
                     {"targets", Tensor::from(all.last(ids.size() - 1), {options_.context})}}};
}

std::string TokenWindows::describe(int64_t index) const {
  const Place at = place(index);
  return text(at.source->name, ": tokens ", at.first, " to ", at.first + options_.context);
}

uint64_t TokenWindows::id(int64_t index) const {
  const Place at = place(index);
  const int64_t whole = options_.context + 1;
  const int64_t count = at.first == 0 ? whole : std::min(options_.stride, whole);
  std::vector<int64_t> ids(static_cast<size_t>(count));
  at.source->read(at.first + whole - count, ids, options_);
  Hash64 hash;
  hash.add(std::as_bytes(std::span(ids)));
  return hash.value();
}

std::optional<int64_t> TokenWindows::length(int64_t /*index*/, std::string_view field) const {
  return field == "tokens" || field == "targets" ? std::optional(options_.context) : std::nullopt;
}

int64_t TokenWindows::tokens() const {
  int64_t all = 0;
  for (const auto& source : sources_) {
    all += source->count;
  }
  return all;
}

}  // namespace binade::data
