// The tokens of CUDA C++: enough of the grammar of C++ to find declarations, launches and names
// without taking one inside a comment or a text for real.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace binade::lab {

enum class TokenKind { identifier, number, text, punctuation, directive };

// A piece of the source. Punctuation is one character, but for "::" and "<<<". A directive is a
// whole line that begins with #, with its continuation lines.
struct Token {
  TokenKind kind = TokenKind::punctuation;
  std::string_view text = {};
  size_t begin = 0;  // offset in the source
  int line = 0;      // of its first character, from 1

  size_t end() const { return begin + text.size(); }
  bool is(std::string_view wanted) const { return text == wanted; }
};

// Never fails: a text or comment without end reaches to the end of the source.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace binade::lab
