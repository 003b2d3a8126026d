// TokenWindows: windows of a long sequence of token ids, for language models.
//
//   data::TokenWindows text(ids, {.context = 128});
//   data::TokenWindows corpus("train.bin", {.context = 1024, .dtype = data::TokenType::u16});
//
// Sample i has "tokens", ids [i stride, i stride + context), and "targets", the same shifted by
// one; both [context] i64. Ids after the last whole window are left out.
#pragma once
#include <binade/data/dataset.h>

#include <concepts>
#include <span>

namespace binade::data {

enum class TokenType : uint8_t { u16, u32 };  // little-endian

struct TokenWindowsOptions {
  int64_t context = 0;
  int64_t stride = 0;                // between the beginnings of windows; 0: context
  TokenType dtype = TokenType::u16;  // of files
  int64_t header_bytes = 0;          // skipped at the beginning of every file
  int64_t vocabulary = 0;            // an id that is not below it is an error; 0: not checked
};

class TokenWindows : public Dataset {
 public:
  // Files of any size: the operating system keeps what was read in its page cache, as for a memory
  // map, and a file that shrinks meanwhile is an error, not a signal. Windows do not reach from one
  // file into the next. Throws Error if a file is missing, is not a whole number of ids, or is too
  // short for one window.
  TokenWindows(std::string path, TokenWindowsOptions options);
  TokenWindows(const char* path, TokenWindowsOptions options)
      : TokenWindows(std::string(path), options) {}
  TokenWindows(std::vector<std::string> paths, TokenWindowsOptions options);
  // Ids in memory, copied: of any integer type, or a tensor [n] i64, i32 or u8.
  template <std::integral T>
  TokenWindows(const std::vector<T>& ids, TokenWindowsOptions options)
      : TokenWindows(std::vector<int64_t>(ids.begin(), ids.end()), options, InMemory{}) {}
  TokenWindows(const Tensor& ids, TokenWindowsOptions options);

  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override;
  int channels() const override { return 0; }
  std::string describe(int64_t index) const override;  // "train.bin: tokens 256 to 384"
  // Hashes only the token ids that no earlier window has: all windows together read each id once.
  uint64_t id(int64_t index) const override;
  std::optional<int64_t> length(int64_t index, std::string_view field) const override;
  bool in_memory() const override { return true; }  // as far as a cache is concerned
  int64_t tokens() const;                           // in all files

 private:
  struct InMemory {};
  struct Source;
  struct Place {
    const Source* source;
    int64_t first;  // id
  };
  TokenWindows(const std::vector<int64_t>& ids, TokenWindowsOptions options, InMemory);
  void check_options();
  void add(std::shared_ptr<const Source> source);
  Place place(int64_t index) const;

  TokenWindowsOptions options_;
  std::vector<std::shared_ptr<const Source>> sources_;
  std::vector<int64_t> ends_;  // of each source: windows up to its end
  int64_t size_ = 0;
};

}  // namespace binade::data
