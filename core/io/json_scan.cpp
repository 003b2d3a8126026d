#include <binade/core/io/json_scan_internal.h>
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <utility>

namespace binade {
namespace {

constexpr uint64_t kLargestInteger = uint64_t{1} << 53;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonScanner::JsonScanner(std::string name, std::string_view text, JsonLimits limits)
    : name_(std::move(name)), text_(text), limits_(limits) {
  at_ = utf8_prefix(text_);
  if (at_ != text_.size()) {
    fail_here("not well-formed UTF-8");
  }
  at_ = 0;
  levels_.reserve(limits_.depth);  // a level never moves: views point into its deque
}

void JsonScanner::fail_here(const std::string& what) const {
  fail(name_, ": at byte ", at_, limits_.where, ": ", what);
}

JsonToken JsonScanner::next() {
  skip_whitespace();
  if (expect_ == Expect::comma_or_close) {
    const bool is_object = levels_.back().is_object;
    if (at_ == text_.size() || text_[at_] != ',') {
      return close(is_object ? '}' : ']');
    }
    ++at_;
    skip_whitespace();
    expect_ = is_object ? Expect::key : Expect::value;
  }
  if (expect_ == Expect::end) {
    if (at_ != text_.size()) {
      fail_here("got text after the end of the object");
    }
    return JsonToken::end;
  }
  if (at_ == text_.size()) {
    fail_here("the text ends here, expected more");
  }
  switch (expect_) {
    case Expect::first_key: return text_[at_] == '}' ? close('}') : scan_key();
    case Expect::key: return scan_key();
    case Expect::first_value: return text_[at_] == ']' ? close(']') : scan_value();
    default: return scan_value();
  }
}

void JsonScanner::skip_value() {
  const size_t depth = levels_.size();
  do {
    next();
  } while (levels_.size() > depth);
}

void JsonScanner::skip_whitespace() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

JsonToken JsonScanner::after_value(JsonToken token) {
  expect_ = levels_.empty() ? Expect::end : Expect::comma_or_close;
  return token;
}

JsonToken JsonScanner::open(bool is_object) {
  if (levels_.size() == limits_.depth) {
    fail_here(text("nested deeper than ", limits_.depth, " levels"));
  }
  ++at_;
  levels_.push_back({is_object, {}, {}});
  expect_ = is_object ? Expect::first_key : Expect::first_value;
  return is_object ? JsonToken::begin_object : JsonToken::begin_array;
}

JsonToken JsonScanner::close(char bracket) {
  if (at_ == text_.size()) {
    fail_here(text("the text ends here, expected ',' or '", bracket, "'"));
  }
  if (text_[at_] != bracket) {
    fail_here(text("expected ',' or '", bracket, "'"));
  }
  check_duplicate_keys(levels_.back());
  ++at_;
  const bool is_object = levels_.back().is_object;
  levels_.pop_back();
  return after_value(is_object ? JsonToken::end_object : JsonToken::end_array);
}

JsonToken JsonScanner::scan_key() {
  if (at_ == text_.size() || text_[at_] != '"') {
    fail_here("expected a key in double quotes");
  }
  Level& level = levels_.back();
  if (level.keys.size() == limits_.keys) {
    fail_here(text("more than ", limits_.keys, " keys in an object"));
  }
  scan_string();
  if (string_.data() == decoded_.data()) {
    string_ = level.decoded.emplace_back(decoded_);
  }
  level.keys.push_back(string_);
  skip_whitespace();
  if (at_ == text_.size() || text_[at_] != ':') {
    fail_here("expected ':' after a key");
  }
  ++at_;
  expect_ = Expect::value;
  return JsonToken::key;
}

JsonToken JsonScanner::scan_value() {
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  switch (c) {
    case '{': return open(true);
    case '[': return open(false);
    case '"': scan_string(); return after_value(JsonToken::string);
    case 't': return scan_word("true", JsonToken::boolean);
    case 'f': return scan_word("false", JsonToken::boolean);
    case 'n': return scan_word("null", JsonToken::null);
    case '-': fail_here("got a negative number, expected an integer from 0 to 2^53");
    default: break;
  }
  if (!is_digit(c)) {
    fail_here("expected a value");
  }
  scan_integer();
  return after_value(JsonToken::integer);
}

JsonToken JsonScanner::scan_word(std::string_view word, JsonToken token) {
  if (text_.substr(at_, word.size()) != word) {
    fail_here("expected a value");
  }
  at_ += word.size();
  return after_value(token);
}

void JsonScanner::scan_string() {
  const size_t begin = ++at_;
  decoded_.clear();
  bool escaped = false;
  for (size_t copied = begin;;) {
    if (at_ == text_.size()) {
      fail_here("the text ends within a string");
    }
    const char c = text_[at_];
    if (static_cast<uint8_t>(c) < 0x20) {
      fail_here("got a control character in a string, expected an escape");
    }
    if (c != '"' && c != '\\') {
      ++at_;
      continue;
    }
    if (c == '"' && !escaped) {
      string_ = text_.substr(begin, at_++ - begin);
      return;
    }
    decoded_.append(text_.substr(copied, at_ - copied));
    ++at_;
    if (c == '"') {
      string_ = decoded_;
      return;
    }
    escaped = true;
    decode_escape();
    copied = at_;
  }
}

void JsonScanner::decode_escape() {
  static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (const size_t found = kLetters.find(c); found != std::string_view::npos) {
    decoded_ += kMeanings[found];
    ++at_;
    return;
  }
  if (c != 'u') {
    fail_here("got an unknown escape in a string");
  }
  ++at_;
  uint32_t code = scan_hex4();
  if (code >= 0xd800 && code < 0xe000) {
    const bool high = code < 0xdc00 && text_.substr(at_, 2) == "\\u";
    at_ += high ? 2 : 0;
    const uint32_t low = high ? scan_hex4() : 0;
    if (low < 0xdc00 || low >= 0xe000) {
      fail_here("got a lone surrogate escape in a string");
    }
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(decoded_, code);
}

uint32_t JsonScanner::scan_hex4() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const char lower = static_cast<char>(c | 0x20);
    if (is_digit(c)) {
      code = code * 16 + static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      code = code * 16 + static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      fail_here("expected four hexadecimal digits after \\u");
    }
  }
  return code;
}

void JsonScanner::scan_integer() {
  const size_t begin = at_;
  integer_ = 0;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
    integer_ = integer_ * 10 + static_cast<uint64_t>(text_[at_] - '0');
    if (integer_ > kLargestInteger) {
      fail_here("got a number above 2^53");
    }
  }
  if (at_ - begin > 1 && text_[begin] == '0') {
    fail_here("got a number with leading zeros");
  }
  if (at_ < text_.size() && (text_[at_] == '.' || (text_[at_] | 0x20) == 'e')) {
    fail_here("got a number with fraction or exponent, expected an integer");
  }
}

void JsonScanner::check_duplicate_keys(Level& level) {
  std::sort(level.keys.begin(), level.keys.end());
  const auto same = std::adjacent_find(level.keys.begin(), level.keys.end());
  if (same != level.keys.end()) {
    fail_here(text("the object that ends here has the key ", json_quoted_short(*same), " twice"));
  }
}

}  // namespace binade
