#include <binade/lab/source/tokens.h>

#include <algorithm>
#include <cctype>

namespace binade::lab {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (skip_blank()) {
      const size_t begin = at_;
      const TokenKind kind = take();
      const auto text = source_.substr(begin, at_ - begin);
      tokens_.push_back({kind, text, begin, line_});
      line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
      line_is_blank_ = false;
    }
    return std::move(tokens_);
  }

 private:
  char now(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  void skip_to(size_t end) {
    end = std::min(end, source_.size());
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    at_ = end;
  }
  size_t find_end(std::string_view text, size_t from) const {
    const size_t found = source_.find(text, from);
    return found == std::string_view::npos ? source_.size() : found + text.size();
  }
  // The end of the line, including lines continued by "\".
  size_t end_of_line() const {
    size_t end = source_.find('\n', at_);
    while (end != std::string_view::npos &&
           (source_[end - 1] == '\\' || (end > 1 && source_.substr(end - 2, 2) == "\\\r"))) {
      end = source_.find('\n', end + 1);
    }
    return std::min(end, source_.size());
  }

  // Skips blanks and comments. False at the end of the source.
  bool skip_blank() {
    while (at_ < source_.size()) {
      if (starts("//")) {
        skip_to(end_of_line());
      } else if (starts("/*")) {
        skip_to(find_end("*/", at_ + 2));
      } else if (std::isspace(static_cast<unsigned char>(now())) != 0 ||
                 (now() == '\\' && (now(1) == '\n' || now(1) == '\r'))) {
        line_is_blank_ |= now() == '\n';
        skip_to(at_ + 1);
      } else {
        return true;
      }
    }
    return false;
  }

  // A directive ends before a comment, because the comment may span lines.
  void take_directive() {
    const size_t end = end_of_line();
    const size_t comment = source_.substr(0, end).find("/*", at_);
    const size_t line_comment = source_.substr(0, end).find("//", at_);
    at_ = std::min({end, comment, line_comment});
  }
  void take_quoted(char quote) {
    for (++at_; at_ < source_.size() && now() != quote && now() != '\n'; ++at_) {
      at_ += now() == '\\' ? 1 : 0;
    }
    at_ = std::min(at_ + 1, source_.size());
  }
  // Takes a raw string: R"mark( ... )mark".
  void take_raw(size_t prefix) {
    const size_t open = source_.find('(', at_ + prefix);
    if (open == std::string_view::npos) {
      at_ = source_.size();
      return;
    }
    std::string close = ")";
    close += source_.substr(at_ + prefix, open - at_ - prefix);
    close += '"';
    at_ = find_end(close, open);
  }
  void take_name() {
    while (continues_name(now())) {
      ++at_;
    }
  }
  void take_number() {
    while (continues_name(now()) || now() == '.' || (now() == '\'' && continues_name(now(1))) ||
           ((now() == '+' || now() == '-') &&
            std::string_view("eEpP").find(source_[at_ - 1]) != std::string_view::npos &&
            !hexadecimal_e())) {
      ++at_;
    }
  }
  // True in 0x1e+2, where the "+" is an operator.
  bool hexadecimal_e() const {
    size_t begin = at_;
    while (begin > 0 && (continues_name(source_[begin - 1]) || source_[begin - 1] == '.')) {
      --begin;
    }
    const auto number = source_.substr(begin, at_ - begin);
    const bool hexadecimal = number.starts_with("0x") || number.starts_with("0X");
    return hexadecimal && (number.back() == 'e' || number.back() == 'E');
  }

  TokenKind take() {
    const char c = now();
    if (c == '#' && line_is_blank_) {
      take_directive();
      return TokenKind::directive;
    }
    for (const std::string_view prefix : {"R\"", "u8R\"", "uR\"", "UR\"", "LR\""}) {
      if (starts(prefix)) {
        take_raw(prefix.size());
        return TokenKind::text;
      }
    }
    if (c == '"' || c == '\'') {
      take_quoted(c);
      return TokenKind::text;
    }
    if (begins_name(c)) {
      take_name();
      return TokenKind::identifier;
    }
    if ((c >= '0' && c <= '9') || (c == '.' && now(1) >= '0' && now(1) <= '9')) {
      ++at_;
      take_number();
      return TokenKind::number;
    }
    at_ += starts("<<<") ? 3 : starts("::") ? 2 : 1;
    return TokenKind::punctuation;
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_is_blank_ = true;  // only blanks so far on this line
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Tokenizer(source).run(); }

}  // namespace binade::lab
