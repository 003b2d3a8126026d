// The parts of the translator. Each finds one construct in a file's tokens and replaces it.
#pragma once
#include <binade/lab/source/tokens.h>
#include <binade/lab/source/translate.h>

#include <optional>
#include <set>

namespace binade::lab {

// A file that is being translated: its tokens, and the replacements in its text.
class Rewriter {
 public:
  Rewriter(std::string path, std::string_view source)
      : path_(std::move(path)), source_(source), tokens_(tokens_of(source)) {}

  const std::vector<Token>& tokens() const { return tokens_; }
  const Token& at(size_t i) const { return i < tokens_.size() ? tokens_[i] : end_; }
  size_t size() const { return tokens_.size(); }
  const std::string& path() const { return path_; }
  // The source from token `first` up to, but not including, token `end`.
  std::string_view between(size_t first, size_t end) const;

  // Replaces the tokens from `first` to `last`. Line numbers after them do not change.
  void replace(size_t first, size_t last, std::string text);
  void insert_before(size_t token, std::string text);
  std::string result() const;

  // The token that closes the bracket at `open`. Throws if there is none.
  size_t closing(size_t open) const;
  // The first token of the qualified name "a::b<...>::name" that ends at `last`.
  size_t begin_of_qualified(size_t last) const;

  template <class... Parts>
  [[noreturn]] void fail(const Token& where, const Parts&... parts) const {
    throw SourceError(text(path_, ":", where.line, ": ", parts...));
  }

 private:
  size_t before_template_arguments(size_t last) const;

  struct Edit {
    size_t begin, end;  // offsets in the source
    std::string text;
  };
  std::string path_;
  std::string_view source_;
  std::vector<Token> tokens_;
  std::vector<Edit> edits_;
  Token end_;
};

// State that all files of one translation share.
struct TranslationState {
  Translation result = {};
  std::set<std::string> included = {};  // files with #pragma once
  int shared_count = 0;
  int depth = 0;  // nesting depth of includes
  bool has_entry = false;
};

// Throws for features that the lab does not have, such as inline assembly and grid-wide groups.
void refuse_unsupported(const Rewriter& file);
void rewrite_shared(Rewriter& file, TranslationState& state);
void rewrite_launches(Rewriter& file);
void find_entry(Rewriter& file, TranslationState& state);
// Generates the code that calls solve() with an array of pointers to its arguments.
std::string entry_code(const std::vector<Parameter>& parameters);
// The replacement for an #include; nullopt if it stays.
std::optional<std::string> replace_include(const Rewriter& file, const Token& directive,
                                           TranslationState& state);
std::string translate_part(const std::string& path, std::string_view source,
                           TranslationState& state);

}  // namespace binade::lab
