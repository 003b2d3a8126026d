#include <binade/core/io/file_system.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/lens_report.h>
#include <binade/train/report/json_numbers_internal.h>
#include <binade/train/run_directory.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace binade::train {
namespace {

constexpr int kFirst = ExponentCounts::kLeast - 1, kExponents = ExponentCounts::kMost - kFirst + 1;

// The smaller of two scales, where 0 stands for none.
double smaller_scale(double a, double b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

// Adds a line to its row; a line of a gradient is also added to the scales.
void add_line(const nlohmann::json& line, LensRow& row, LensReport& report) {
  const double elements = line.at("elements");
  const auto add = [&](const char* name, double& to) {
    to += std::round(line.value(name, 0.0) * elements);
  };
  row.elements += elements;
  row.zeros += line.at("zeros").get<double>();
  row.nans += line.at("nans").get<double>();
  row.infinities += line.at("infinities").get<double>();
  row.largest = std::max(row.largest, line.at("largest").get<double>());
  add("f16_overflow", row.overflow);
  add("f16_subnormal", row.subnormal);
  add("f16_flushed", row.flushed);
  add("bf16_changed", row.changed_in_bf16);
  add("changed", row.changed);
  add("f16_lost", row.lost_in_f16);
  add("bf16_lost", row.lost_in_bf16);
  const double rounded_at = line.value("stored", "") == "f16" ? line.value("scale", 1.0) : 0;
  row.rounded_at = smaller_scale(row.rounded_at, rounded_at);
  row.exponents.resize(kExponents);
  const auto least = whole_number<int>(line.at("least_exponent"));
  const auto& counts = line.at("exponents");
  check(least >= kFirst && least - kFirst + counts.size() <= kExponents, "exponents out of range");
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto count = counts[i].get<double>();
    row.exponents[static_cast<size_t>(least - kFirst) + i] += count;
    sum += count;
  }
  if (!line.contains("static_scales")) {
    return;
  }
  report.gradients += sum;
  report.rounded_at = smaller_scale(report.rounded_at, rounded_at);
  report.largest_gradient = std::max(report.largest_gradient, line.at("largest").get<double>());
  const auto& scales = line.at("static_scales");
  for (size_t i = 0; i < scales.size(); ++i) {
    if (i == report.scales.size()) {
      report.scales.push_back({scales[i].at("scale").get<double>()});
    }
    LensScale& to = report.scales[i];
    check(to.scale == scales[i].at("scale").get<double>(), "scales differ between lines");
    const auto& flushed = scales[i].at("flushed");
    to.shows_flushed = to.shows_flushed && !flushed.is_null();
    to.flushed += flushed.is_null() ? 0 : flushed.get<double>();
    to.subnormal += scales[i].at("subnormal").get<double>();
    to.overflow += scales[i].at("overflow").get<double>();
  }
}

// Reads "worst" of a line. An infinity is null there.
std::vector<LensWorst> worst_of(const nlohmann::json& line) {
  constexpr size_t kMost = 4096, kParts = 5, kMostDims = 16;
  std::vector<LensWorst> all;
  for (const auto& entry : line.value("worst", nlohmann::json::array())) {
    check(entry.is_array() && entry.size() == kParts && all.size() < kMost,
          "an element of worst is not [exponent, index, value, f16, bf16]");
    LensWorst worst{.exponent = whole_number<int>(entry[0]), .value = entry[2].get<double>()};
    check(entry[1].is_array(), "the index of an element of worst is no list");
    for (const auto& at : entry[1]) {
      worst.place.push_back(whole_number(at));
    }
    const auto became = [&](const nlohmann::json& number) {
      return number.is_null() ? std::copysign(INFINITY, worst.value) : number.get<double>();
    };
    worst.in_f16 = became(entry[3]);
    worst.in_bf16 = became(entry[4]);
    check(worst.exponent >= kFirst && worst.exponent < kFirst + kExponents &&
              worst.place.size() <= kMostDims,
          "an element of worst is out of range");
    all.push_back(std::move(worst));
  }
  return all;
}

LensMoment moment_of(const nlohmann::json& line, size_t row) {
  LensMoment moment{.step = whole_number(line.at("step")),
                    .row = row,
                    .elements = line.at("elements"),
                    .zeros = line.at("zeros"),
                    .nans = line.at("nans"),
                    .infinities = line.at("infinities"),
                    .largest = line.at("largest"),
                    .scale = line.value("scale", 1.0),
                    .least_exponent = whole_number<int>(line.at("least_exponent"))};
  for (const auto& count : line.at("exponents")) {
    moment.exponents.push_back(count.get<double>());
  }
  moment.worst = worst_of(line);
  return moment;
}

std::string percent(double part, double whole) {
  if (part == 0 || whole == 0) {
    return "0";
  }
  const double value = 100 * part / whole;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, value < 0.01 ? "%.0e%%" : "%.2f%%", value);
  return buffer;
}

// One character per decade of the share, darker for more.
char shade(double share) {
  constexpr char kShades[] = " .:-=+*#@";
  if (share <= 0) {
    return ' ';
  }
  return kShades[std::clamp(static_cast<int>(std::floor(std::log10(share) * 2)) + 8, 1, 8)];
}

std::string padded(std::string s, size_t width) {
  if (s.size() > width) {
    s = "..." + s.substr(s.size() - width + 3);
  }
  s.resize(width, ' ');
  return s;
}

// True if a border of f16 is before this exponent: flushed, subnormal, normal, overflow.
bool is_border(int e) { return e == -25 || e == -14 || e == 16; }

std::string scale_text(const LensReport& report) {
  if (report.static_scale == 0) {
    return "";
  }
  std::string out =
      text("\nlargest gradient ", report.largest_gradient, ": the static loss scale it bears is ",
           report.static_scale, " (the largest power of two that keeps it below 65504)\n",
           "what a static scale does to the ", report.gradients,
           " gradients that are not 0, stored in f16:\n", padded("scale", 12),
           padded("flushed to 0", 18), padded("subnormal", 14), "overflow\n");
  for (const LensScale& row : report.scales) {
    out += padded(text(row.scale), 12) + padded(flushed_text(report, row), 18) +
           padded(percent(row.subnormal, report.gradients), 14) +
           percent(row.overflow, report.gradients) + "\n";
  }
  return out + rounding_note(report);
}

}  // namespace

LensReport read_lens(const std::string& file, FileSystem& files) {
  const std::vector<std::byte> bytes = read_file(file, uint64_t{1} << 32, files);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  LensReport report;
  std::map<std::pair<std::string, std::string>, size_t> index;
  std::set<int64_t> steps;
  int64_t number = 0;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    ++number;
    try {
      const auto line = nlohmann::json::parse(rest.substr(0, end));
      const std::pair<std::string, std::string> key(line.at("kind"), line.at("tensor"));
      const auto [at, is_new] = index.try_emplace(key, report.rows.size());
      if (is_new) {
        report.rows.push_back({.kind = key.first,
                               .layer = printable(line.at("layer").get<std::string>()),
                               .tensor = printable(key.second)});
      }
      add_line(line, report.rows[at->second], report);
      report.moments.push_back(moment_of(line, at->second));
      steps.insert(report.moments.back().step);
    } catch (const std::exception& error) {
      fail("lens: line ", number, " of ", file, " is no record of a lens (", error.what(),
           "); is the file complete?");
    }
  }
  check(!steps.empty(), "lens: got ", file, " without a record");
  report.steps = static_cast<int64_t>(steps.size());
  report.first_step = *steps.begin();
  report.last_step = *steps.rbegin();
  report.static_scale = report.gradients > 0 ? binade::static_scale(report.largest_gradient) : 0;
  return report;
}

void keep_lens_lines(const std::string& file, int64_t first_step, FileSystem& files) {
  keep_lines(
      file,
      [first_step](const std::string& text) {
        const auto line = nlohmann::json::parse(text, nullptr, false);
        const bool has_step =
            line.is_object() && line.contains("step") && line["step"].is_number_integer();
        return has_step && line["step"].get<int64_t>() < first_step;
      },
      files);
}

ExponentSpan span_of(const LensReport& report) {
  int least = 0, most = 0;
  for (const LensRow& row : report.rows) {
    for (int i = 0; i < kExponents; ++i) {
      if (row.exponents[static_cast<size_t>(i)] > 0) {
        least = std::min(least, kFirst + i);
        most = std::max(most, kFirst + i);
      }
    }
  }
  return {std::max(least, most - 63), most};
}

double elements_at(const LensRow& row, const ExponentSpan& span, int e) {
  const auto at = [&row](int exponent) {
    return row.exponents[static_cast<size_t>(exponent - kFirst)];
  };
  double sum = at(e);
  for (int below = kFirst; e == span.least && below < e; ++below) {
    sum += at(below);
  }
  return sum;
}

std::string effects_of(const LensRow& row) {
  std::string out;
  const auto add = [&](const char* name, double part) {
    out += part > 0 ? text(out.empty() ? "" : ", ", name, " ", percent(part, row.elements)) : "";
  };
  if (row.kind == "update") {
    add("lost in f16", row.lost_in_f16);
    add("lost in bf16", row.lost_in_bf16);
  } else {
    add("overflow", row.overflow);
    add("subnormal", row.subnormal);
    add(row.rounded_at > 0 ? "flushed at least" : "flushed", row.flushed);
    add("changed by bf16", row.changed_in_bf16);
  }
  add(row.rounded_at > 0 ? "zero or flushed before" : "zero", row.zeros);
  add("inf", row.infinities);
  add("NaN", row.nans);
  return row.rounded_at > 0 ? text("rounded at ", row.rounded_at, out.empty() ? "" : ": ", out)
                            : out;
}

std::string flushed_text(const LensReport& report, const LensScale& scale) {
  if (!scale.shows_flushed) {
    return "not known";
  }
  return (report.rounded_at > 0 ? "at least " : "") + percent(scale.flushed, report.gradients);
}

std::string rounding_note(const LensReport& report) {
  if (report.rounded_at == 0) {
    return "";
  }
  return text(
      "Gradients were stored in f16, at scales from ", report.rounded_at,
      " on, before they were counted. What storing flushed is among the zeros: the table gives "
      "lower bounds, and knows nothing of scales that large. A run in fp32 gives the whole "
      "numbers.\n");
}

std::string to_text(const LensReport& report) {
  constexpr size_t kName = 28;
  const ExponentSpan span = span_of(report);
  std::string out =
      text(report.rows.size(), " tensors at ", report.steps, " steps, ", report.first_step, " to ",
           report.last_step, ". Columns are exponents ", span.least, " to ", span.most,
           ", darker is more (a shade per half decade of the share).\n",
           "f16 flushes left of the first |, is subnormal up to the second, "
           "overflows from the third.\n");
  std::string kind;
  for (const LensRow& row : report.rows) {
    if (row.kind != kind) {
      kind = row.kind;
      out += "\n" + kind + "\n";
    }
    out += padded(row.tensor, kName) + " ";
    for (int e = span.least; e <= span.most; ++e) {
      out += is_border(e) ? "|" : "";
      out += shade(elements_at(row, span, e) / std::max(row.elements, 1.0));
    }
    out += "  " + effects_of(row) + "\n";
  }
  return out + scale_text(report);
}

}  // namespace binade::train
