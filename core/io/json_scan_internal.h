// A strict JSON scanner for headers of untrusted files (internal to core). It is a pull parser: no
// recursion, no tree, and memory bounded by the text. It accepts less than JSON: the only numbers
// are integers from 0 to 2^53 without sign, fraction, exponent or leading zero; nesting and the
// number of keys are limited; keys of an object differ after escapes are decoded; text is UTF-8 and
// escapes are whole characters. Anything else is an Error that names the byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace binade {

enum class JsonToken {
  begin_object,
  end_object,
  begin_array,
  end_array,
  key,
  string,
  integer,
  boolean,
  null,
  end,  // of the text
};

struct JsonLimits {
  size_t depth = 4;
  size_t keys = 1'000'001;               // of one object
  const char* where = " of the header";  // in errors: "at byte 12 of the header"
};

class JsonScanner {
 public:
  // `text` must outlive the scanner. Errors begin with `name`.
  JsonScanner(std::string name, std::string_view text, JsonLimits limits = {});
  JsonScanner(const JsonScanner&) = delete;
  JsonScanner& operator=(const JsonScanner&) = delete;

  JsonToken next();
  // Skips one value (the next token begins it).
  void skip_value();

  // The last key or string, decoded. A key stays valid while its object is open, a string until
  // next().
  std::string_view string() const { return string_; }
  uint64_t integer() const { return integer_; }
  size_t depth() const { return levels_.size(); }
  // Throws: "NAME: at byte 12 of the header: <what>", with the words of JsonLimits.
  [[noreturn]] void fail_here(const std::string& what) const;

 private:
  enum class Expect { value, first_key, key, first_value, comma_or_close, end };
  struct Level {
    bool is_object;
    std::vector<std::string_view> keys;
    std::deque<std::string> decoded;  // keys spelled with escapes
  };

  void skip_whitespace();
  JsonToken open(bool is_object);
  JsonToken close(char bracket);
  JsonToken scan_key();
  JsonToken scan_value();
  JsonToken scan_word(std::string_view word, JsonToken token);
  JsonToken after_value(JsonToken token);  // sets what may follow a complete value
  void scan_string();                      // sets string_; escapes are decoded into decoded_
  void decode_escape();
  uint32_t scan_hex4();
  void scan_integer();
  void check_duplicate_keys(Level& level);

  std::string name_;
  std::string_view text_;
  JsonLimits limits_;
  size_t at_ = 0;
  Expect expect_ = Expect::value;
  std::vector<Level> levels_;
  std::string_view string_;
  std::string decoded_;
  uint64_t integer_ = 0;
};

}  // namespace binade
