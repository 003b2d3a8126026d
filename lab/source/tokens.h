// Tokenises CUDA C++, precisely enough to find declarations, launches and names outside of comments
// and string literals.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace binade::lab {

enum class TokenKind { identifier, number, text, punctuation, directive };

// A token. Punctuation is one character, except "::" and "<<<". A directive is a whole line that
// begins with #, with its continuation lines.
struct Token {
  TokenKind kind = TokenKind::punctuation;
  std::string_view text = {};
  size_t begin = 0;  // offset in the source
  int line = 0;      // line of its first character, from 1

  size_t end() const { return begin + text.size(); }
  bool is(std::string_view wanted) const { return text == wanted; }
};

// Never fails: an unterminated string or comment extends to the end of the source.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace binade::lab
