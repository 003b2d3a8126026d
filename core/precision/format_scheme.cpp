#include <binade/core/precision/format_scheme.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

namespace binade {
namespace {

struct NamedScheme {
  const char* name;
  const char* format;
  int64_t block;
  kernels::BlockScale rule;
};
constexpr NamedScheme kBlockSchemes[] = {
    {"mxfp8", "e4m3fn", 32, kernels::BlockScale::power},
    {"mxfp8-e5m2", "e5m2", 32, kernels::BlockScale::power},
    {"mxfp6", "e2m3", 32, kernels::BlockScale::power},
    {"mxfp6-e3m2", "e3m2", 32, kernels::BlockScale::power},
    {"mxfp4", "e2m1", 32, kernels::BlockScale::power},
    {"nvfp4", "e2m1", 16, kernels::BlockScale::nearest},
};

FormatScheme block_scheme(const NamedScheme& known) {
  const bool two_levels = known.rule == kernels::BlockScale::nearest;
  return {.format = number_format(known.format).with(Overflow::saturate),
          .scaling = FormatScaling::blocks,
          .block = known.block,
          .block_rule = known.rule,
          .block_scale = two_levels ? number_format("e4m3fn").with(Overflow::saturate)
                                    : number_format("e8m0")};
}

FormatScheme base_scheme(const std::string& name) {
  std::string names;
  for (const NamedScheme& known : kBlockSchemes) {
    if (name == known.name) {
      return block_scheme(known);
    }
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  try {
    return {.format = number_format(name)};
  } catch (Error& error) {
    error.add_context("(schemes of blocks: " + names + ")");
    throw;
  }
}

// The number after `prefix` in a word: 1 to `most`.
int64_t number_after(const std::string& word, const char* prefix, int64_t most) {
  int64_t number = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + std::strlen(prefix), end, number);
  check(error == std::errc() && stop == end && number > 0 && number <= most, "format scheme: got '",
        printable(word), "', expected ", prefix, "1 to ", prefix, most);
  return number;
}

bool is_rounding(const std::string& word) {
  return word == "nearest" || word == "toward-zero" || word == "stochastic";
}

void add_word(FormatScheme& scheme, const std::string& word) {
  constexpr const char* kDelayed = "delayed=";
  if (is_rounding(word)) {
    scheme.rounding = parse_rounding(word);
    return;
  }
  check(scheme.scaling != FormatScaling::blocks, "format scheme: got the word '", printable(word),
        "' for a scheme of blocks, expected nearest, toward-zero or stochastic");
  if (word.starts_with(kDelayed)) {
    constexpr int64_t kLongest = 4096;
    scheme.history = number_after(word, kDelayed, kLongest);
    set_scaling(scheme, FormatScaling::delayed);
    return;
  }
  check(word == "none" || word == "tensor" || word == "delayed", "format scheme: got the word '",
        printable(word),
        "', expected nearest, toward-zero, stochastic, none, tensor, delayed or delayed=N");
  set_scaling(scheme, parse_format_scaling(word));
}

void add_word(Accumulation& sum, const std::string& word) {
  constexpr const char *kChunks = "chunks=",
                       *kOrders[] = {"sequential", "chunks", "pairwise", "kahan"};
  constexpr int64_t kLongest = int64_t{1} << 40;
  if (is_rounding(word)) {
    sum.rounding = parse_rounding(word);
    return;
  }
  if (word.starts_with(kChunks)) {
    sum.order = kernels::SumOrder::chunks;
    sum.chunk = number_after(word, kChunks, kLongest);
    return;
  }
  const auto* found = std::find(std::begin(kOrders), std::end(kOrders), word);
  check(found != std::end(kOrders), "accumulation: got the word '", printable(word),
        "', expected sequential, chunks, chunks=N, pairwise, kahan, nearest, toward-zero or "
        "stochastic");
  sum.order = static_cast<kernels::SumOrder>(found - std::begin(kOrders));
}

// Calls f for every word after a slash.
void for_each_word(const std::string& text, const auto& f) {
  for (size_t slash = text.find('/'); slash != std::string::npos;) {
    const size_t next = text.find('/', slash + 1);
    f(text.substr(slash + 1, next - slash - 1));
    slash = next;
  }
}

// The format of a scheme as text. Saturation goes without saying where there is a scale.
std::string scaled_name(const FormatScheme& s) {
  if (s.scaling == FormatScaling::none) {
    return to_string(s.format);
  }
  const NumberFormat named = number_format(s.format.name.substr(0, s.format.name.find(':')));
  std::string words = to_string(s.format.with(named.overflow));
  if (s.format.overflow == Overflow::saturate) {
    return words;
  }
  return words + (words.find(':') == std::string::npos ? ":" : ",") +
         (s.format.overflow == Overflow::nan ? "overflow=nan" : "overflow=infinity");
}

}  // namespace

FormatScheme format_scheme(const std::string& text) {
  FormatScheme scheme = base_scheme(text.substr(0, text.find('/')));
  for_each_word(text, [&](const std::string& word) { add_word(scheme, word); });
  if (const size_t overflow = text.find("overflow="); overflow != std::string::npos) {
    scheme.format.overflow = base_scheme(text.substr(0, text.find('/'))).format.overflow;
  }
  return scheme;
}

void set_scaling(FormatScheme& scheme, FormatScaling scaling) {
  scheme.scaling = scaling;
  if (scaling != FormatScaling::none) {
    scheme.format.overflow = Overflow::saturate;
  }
}

std::string to_string(const FormatScheme& s) {
  std::string out = scaled_name(s);
  if (s.scaling == FormatScaling::blocks) {
    out = text("blocks of ", s.block, " ", s.format.name, " with ", s.block_scale.name, " scales");
    for (const NamedScheme& known : kBlockSchemes) {
      FormatScheme same = block_scheme(known);
      same.rounding = s.rounding;
      same.axis = s.axis;
      if (same == s) {
        out = known.name;
      }
    }
  } else if (s.scaling == FormatScaling::tensor) {
    out += "/tensor";
  } else if (s.scaling == FormatScaling::delayed) {
    out += text("/delayed=", s.history);
  }
  return s.rounding == Rounding::nearest_even ? out : out + "/" + to_string(s.rounding);
}

Accumulation accumulation(const std::string& text) {
  Accumulation sum{.format = number_format(text.substr(0, text.find('/')))};
  for_each_word(text, [&](const std::string& word) { add_word(sum, word); });
  return sum;
}

std::string to_string(const Accumulation& sum) {
  std::string out = to_string(sum.format);
  switch (sum.order) {
    case kernels::SumOrder::sequential: break;
    case kernels::SumOrder::chunks: out += text("/chunks=", sum.chunk); break;
    case kernels::SumOrder::pairwise: out += "/pairwise"; break;
    case kernels::SumOrder::kahan: out += "/kahan"; break;
  }
  return sum.rounding == Rounding::nearest_even ? out : out + "/" + to_string(sum.rounding);
}

FormatScaling parse_format_scaling(const std::string& name) {
  check(name == "none" || name == "tensor" || name == "delayed", "format scale: got '",
        printable(name), "', expected none, tensor or delayed");
  return name == "none"     ? FormatScaling::none
         : name == "tensor" ? FormatScaling::tensor
                            : FormatScaling::delayed;
}

}  // namespace binade
