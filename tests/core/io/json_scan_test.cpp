#include <binade/core/io/file_system.h>
#include <binade/core/io/json_scan_internal.h>
#include <binade/core/io/json_text.h>
#include <binade/core/observe/warning.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <gtest/gtest.h>

#include <random>

#include "tests/support/error_of.h"

namespace binade::json_scan_test {
namespace {

// Returns the tokens of `text` in short form: {}[] unchanged, k:key s:string i:integer b n.
std::string scan(std::string_view text, JsonLimits limits = {}) {
  JsonScanner scanner("name", text, limits);
  std::string out;
  for (;;) {
    switch (scanner.next()) {
      case JsonToken::begin_object: out += "{ "; break;
      case JsonToken::end_object: out += "} "; break;
      case JsonToken::begin_array: out += "[ "; break;
      case JsonToken::end_array: out += "] "; break;
      case JsonToken::key: out += "k:" + std::string(scanner.string()) + " "; break;
      case JsonToken::string: out += "s:" + std::string(scanner.string()) + " "; break;
      case JsonToken::integer: out += "i:" + std::to_string(scanner.integer()) + " "; break;
      case JsonToken::boolean: out += "b "; break;
      case JsonToken::null: out += "n "; break;
      case JsonToken::end: return out;
    }
  }
}

std::string error_of(std::string_view text, JsonLimits limits = {}) {
  try {
    scan(text, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonScan, Tokens) {
  EXPECT_EQ(scan("{}"), "{ } ");
  EXPECT_EQ(scan(" \t\r\n[ ] \n"), "[ ] ");
  EXPECT_EQ(scan(R"({"a":[1,2,{"b":null}],"c":true,"d":false,"e":"x"})"),
            "{ k:a [ i:1 i:2 { k:b n } ] k:c b k:d b k:e s:x } ");
  EXPECT_EQ(scan("9007199254740992"), "i:9007199254740992 ");
  EXPECT_EQ(scan("[0]"), "[ i:0 ] ");
  EXPECT_EQ(scan(R"({"":{"":""}})"), "{ k: { k: s: } } ");
}

TEST(JsonScan, Escapes) {
  EXPECT_EQ(scan(R"("\"\\\/\b\f\n\r\t")"), "s:\"\\/\b\f\n\r\t ");
  EXPECT_EQ(scan(R"("\u0041\u00e9\u20AC\ud83d\ude00z")"),
            "s:A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z ");
  EXPECT_EQ(scan(R"("\u0000")"), std::string("s:\0 ", 4));
}

TEST(JsonScan, Refuses) {
  const std::pair<std::string_view, const char*> kCases[] = {
      {"", "ends here"},
      {" ", "ends here"},
      {"{", "ends here"},
      {"[", "ends here"},
      {"[1", "ends here"},
      {"{\"a\"", "expected ':'"},
      {"{\"a\":", "ends here"},
      {"{\"a\":1,", "ends here"},
      {"\"abc", "within a string"},
      {"\"abc\\", "unknown escape"},
      {"\"\\u12", "four hexadecimal"},
      {"{}x", "after the end"},
      {"{}{}", "after the end"},
      {"1 2", "after the end"},
      {"[1,]", "expected a value"},
      {"[,1]", "expected a value"},
      {"[1 2]", "expected ',' or ']'"},
      {"{\"a\":1,}", "expected a key"},
      {"{,}", "expected a key"},
      {"{a:1}", "expected a key"},
      {"{'a':1}", "expected a key"},
      {"{1:1}", "expected a key"},
      {"{\"a\" 1}", "expected ':'"},
      {"{\"a\":1]", "expected ',' or '}'"},
      {"[1}", "expected ',' or ']'"},
      {"]", "expected a value"},
      {"tru", "expected a value"},
      {"True", "expected a value"},
      {"nul", "expected a value"},
      {"NaN", "expected a value"},
      {"/**/1", "expected a value"},
      {"\xef\xbb\xbf{}", "expected a value"},
      {"\v1", "expected a value"},
      {"-1", "negative"},
      {"-0", "negative"},
      {"+1", "expected a value"},
      {".5", "expected a value"},
      {"1.0", "fraction or exponent"},
      {"1e2", "fraction or exponent"},
      {"1E2", "fraction or exponent"},
      {"01", "leading zeros"},
      {"00", "leading zeros"},
      {"9007199254740993", "above 2^53"},
      {"18446744073709551616", "above 2^53"},
      {"999999999999999999999999999999", "above 2^53"},
      {"0x10", "after the end"},
      {"\"\\x\"", "unknown escape"},
      {"\"\\U0041\"", "unknown escape"},
      {"\"\\u00g0\"", "four hexadecimal"},
      {"\"\\ud800\"", "lone surrogate"},
      {"\"\\udc00\"", "lone surrogate"},
      {"\"\\ud800\\ud800\"", "lone surrogate"},
      {"\"\\ud800\\u0041\"", "lone surrogate"},
      {"\"\\ud800x\"", "lone surrogate"},
      {"\"a\nb\"", "control character"},
      {std::string_view("\"a\0b\"", 5), "control character"},
      {std::string_view("{}\0", 3), "after the end"},
      {"\"\xff\"", "UTF-8"},
      {"{}\xc3", "UTF-8"},
      {"\"\xed\xa0\x80\"", "UTF-8"},
      {"[[[[[]]]]]", "deeper than 4"},
      {R"({"a":1,"a":2})", "key \"a\" twice"},
      {R"({"a":1,"b":2,"\u0061":3})", "key \"a\" twice"},
      {R"({"\u0061":1,"\u0061":2})", "key \"a\" twice"},
      {R"({"x":{"a\n":1,"a\u000A":2}})", "key \"a\\u000a\" twice"},
      {R"({"":1,"":2})", "key \"\" twice"},
  };
  for (const auto& [text, part] : kCases) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(part), std::string::npos) << text << " gave: " << error;
    EXPECT_EQ(error.find("name: at byte "), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(JsonScan, SameKeysInDifferentObjectsAreFine) {
  EXPECT_EQ(scan(R"({"a":{"a":1},"b":{"a":1}})"), "{ k:a { k:a i:1 } k:b { k:a i:1 } } ");
}

TEST(JsonScan, Limits) {
  EXPECT_EQ(error_of("[[[[]]]]"), "");
  EXPECT_NE(error_of("[[]]", {.depth = 1}), "");
  EXPECT_EQ(error_of(R"({"a":1,"b":2})", {.depth = 4, .keys = 2}), "");
  EXPECT_NE(error_of(R"({"a":1,"b":2,"c":3})", {.depth = 4, .keys = 2}).find("more than 2 keys"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(1'000'000, '[')), "");  // no recursion
}

TEST(JsonScan, SkipsWholeValues) {
  JsonScanner scanner("name", R"({"a":[1,{"x":[2]}],"b":7,"c":{}})");
  std::string keys;
  scanner.next();
  while (scanner.next() == JsonToken::key) {
    keys += scanner.string();
    scanner.skip_value();
  }
  EXPECT_EQ(keys, "abc");
  EXPECT_EQ(scanner.next(), JsonToken::end);
}

TEST(JsonScan, KeysStayWhileTheirObjectIsOpen) {
  JsonScanner scanner("name", R"({"k\u0065y":{"inner":"\u0041"},"z":1})");
  scanner.next();
  scanner.next();
  const std::string_view key = scanner.string();
  scanner.skip_value();
  scanner.next();
  EXPECT_EQ(key, "key");
}

TEST(JsonScan, EveryPrefixIsRefused) {
  const std::string text = R"({"a\u0041":{"b":[1,20,null],"c":"x\ud83d\ude00\n"},"d":true})";
  EXPECT_EQ(error_of(text), "");
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_NE(error_of(std::string_view(text).substr(0, length)), "") << length;
  }
}

TEST(JsonScan, RandomBytesNeverCrash) {
  std::mt19937 random(3);
  const std::string alphabet = "{}[]\",:\\u0019ad8cef-.e \n\xc3\xa9\xed";
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text(random() % 12, ' ');
    for (char& c : text) {
      c = alphabet[random() % alphabet.size()];
    }
    accepted += error_of(text).empty();
  }
  EXPECT_GT(accepted, 100);  // otherwise the test checks nothing
}

TEST(JsonText, QuotingReadsBack) {
  std::mt19937 random(5);
  for (int round = 0; round < 2'000; ++round) {
    std::string text;
    for (size_t i = random() % 20; i > 0; --i) {
      const uint32_t code = random() % (round % 2 ? 0x80 : 0x110000);
      append_utf8(text, code >= 0xd800 && code < 0xe000 ? 'x' : code);
    }
    EXPECT_EQ(scan(json_quoted(text)), "s:" + text + " ");
  }
}

TEST(JsonText, ShortQuotesAreOneLine) {
  EXPECT_EQ(json_quoted_short("a\nb"), "\"a\\u000ab\"");
  EXPECT_EQ(json_quoted("\x7f \xff \xc3\xa9"), "\"\\u007f \\\\xff \xc3\xa9\"");
  const std::string longest =
      json_quoted_short(std::string(79, 'a') + "\xc3\xa9" + std::string(5000, 'b'));
  EXPECT_EQ(longest, "\"" + std::string(79, 'a') + "\"...");  // characters are not split
}

// Untrusted names must not move the cursor, start a line, or reverse the text of a terminal.
TEST(Printable, EscapesAllThatIsNotText) {
  EXPECT_EQ(printable("caf\xc3\xa9 \\ \xf0\x9f\x90\x95"), "caf\xc3\xa9 \\ \xf0\x9f\x90\x95");
  EXPECT_EQ(printable("a\x1b[31m\r\n\t\x7f"), "a\\x1b[31m\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b\xc2\xa0"), "\\xc2\\x9b\xc2\xa0");  // C1; a no-break space
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");         // right to left
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");           // no UTF-8
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  const std::string name = "x\x1b]0;t\x07\n.png";
  EXPECT_EQ(binade::error_of([&] { fail(name, ": broken"); }), "x\\x1b]0;t\\x07\\x0a.png: broken");
  EXPECT_EQ(
      binade::error_of([&] { read_file(name); }).find("x\\x1b]0;t\\x07\\x0a.png: cannot open"), 0u);
  std::string seen;
  const auto before = set_warning_handler([&](const std::string& text) { seen = text; });
  warn(name);
  set_warning_handler(before);
  EXPECT_EQ(seen, "x\\x1b]0;t\\x07\\x0a.png");
}

TEST(JsonText, Utf8AcceptsEachCodePointAndNothingElse) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    std::string text;
    append_utf8(text, code);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    ASSERT_EQ(is_utf8(text), !surrogate) << code;
    ASSERT_FALSE(text.size() > 1 && is_utf8(std::string_view(text).substr(0, text.size() - 1)))
        << code;
  }
  // All valid three-byte sequences that begin with byte 7f or more: 7f and two bytes of text, or
  // characters of 2 + 1 bytes, or of 3 bytes.
  uint64_t count = 0;
  std::string bytes(3, '\0');
  for (uint32_t i = 0x7f0000; i < 1u << 24; ++i) {
    bytes[0] = static_cast<char>(i >> 16), bytes[1] = static_cast<char>(i >> 8),
    bytes[2] = static_cast<char>(i);
    count += is_utf8(bytes);
  }
  const uint64_t one = 0x80, two = 0x800 - 0x80, three = 0x10000 - 0x800 - 0x800;
  EXPECT_EQ(count, one * one + two + two * one + three);
  for (const char* bad :
       {"\xf4\x90\x80\x80", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

}  // namespace
}  // namespace binade::json_scan_test
