// The report on a data folder as text and as JSON.
#include <binade/core/io/json_text.h>
#include <binade/data/sets/verify_dataset.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <charconv>

namespace binade::data {
namespace {

// The shortest decimal that reads back as the same number.
std::string number(double value) {
  constexpr size_t kLength = 32;
  char digits[kLength];
  return {digits, std::to_chars(digits, digits + kLength, value).ptr};
}

std::string rounded(const std::vector<double>& values) {
  std::string list;
  for (const double value : values) {
    constexpr double kDigits = 1e4;
    list += (list.empty() ? "" : ", ") +
            number(static_cast<double>(static_cast<int64_t>(value * kDigits + 0.5)) / kDigits);
  }
  return list;
}

template <class Values, class Write>
std::string joined(const Values& values, const Write& write) {
  std::string list;
  for (const auto& value : values) {
    list += (list.empty() ? "" : ", ") + write(value);
  }
  return list;
}

std::string smallest_to_largest(const DatasetReport& report) {
  int height[2] = {report.sizes.begin()->first.first, 0};
  int width[2] = {report.sizes.begin()->first.second, 0};
  for (const auto& [size, count] : report.sizes) {
    height[0] = std::min(height[0], size.first);
    height[1] = std::max(height[1], size.first);
    width[0] = std::min(width[0], size.second);
    width[1] = std::max(width[1], size.second);
  }
  return report.sizes.size() == 1 ? text("all ", width[0], " x ", height[0])
                                  : text(report.sizes.size(), " sizes from ", width[0], " x ",
                                         height[0], " to ", width[1], " x ", height[1]);
}

}  // namespace

std::string to_string(const DatasetReport& report, size_t shown) {
  std::string out;
  const auto add = [&](const auto&... parts) { out += text(parts...) + "\n"; };
  for (const DatasetPart& part : report.parts) {
    add(part.name, ": ", part.samples, " samples of ", part.classes.size(), " classes");
    for (size_t i = 0; i < part.classes.size() && i < shown; ++i) {
      add("  ", printable(part.classes[i].first), ": ", part.classes[i].second);
    }
    if (part.classes.size() > shown) {
      add("  ", part.classes.size() - shown, " more classes");
    }
  }
  if (!report.sizes.empty()) {
    add("pixels: ", smallest_to_largest(report), "; of train: mean ", rounded(report.mean),
        ", deviation ", rounded(report.deviation));
  }
  add("bad files: ", report.bad.size(),
      report.ignored_files == 0 ? std::string()
                                : text("; of another kind, left out: ", report.ignored_files));
  for (size_t i = 0; i < report.bad.size() && i < shown; ++i) {
    const bool is_named = report.bad[i].reason.starts_with(report.bad[i].name);
    add("  ", is_named ? "" : printable(report.bad[i].name) + ": ",
        printable(report.bad[i].reason));
  }
  if (report.bad.size() > shown) {
    add("  ", report.bad.size() - shown, " more");
  }
  add("duplicates: ", report.duplicates.size(), " pictures, ", report.leaks(),
      " of them in train and test");
  for (size_t i = 0; i < report.duplicates.size() && i < shown; ++i) {
    const DuplicateGroup& group = report.duplicates[i];
    add("  ", joined(group.names, [](const std::string& name) { return printable(name); }),
        group.across_parts ? " (train and test)" : "",
        group.has_several_labels ? " (several labels)" : "");
  }
  if (report.duplicates.size() > shown) {
    add("  ", report.duplicates.size() - shown, " more");
  }
  return out;
}

std::string to_json(const DatasetReport& report) {
  const auto numbers = [](const std::vector<double>& values) { return joined(values, number); };
  const std::string parts = joined(report.parts, [](const DatasetPart& part) {
    return text("{\"name\": ", json_quoted(part.name), ", \"samples\": ", part.samples,
                ", \"classes\": [",
                joined(part.classes,
                       [](const auto& one) {
                         return text("{\"name\": ", json_quoted(one.first),
                                     ", \"samples\": ", one.second, "}");
                       }),
                "]}");
  });
  const std::string bad = joined(report.bad, [](const BadImage& one) {
    return text("{\"part\": ", json_quoted(one.part), ", \"name\": ", json_quoted(one.name),
                ", \"reason\": ", json_quoted(one.reason), "}");
  });
  const std::string duplicates = joined(report.duplicates, [](const DuplicateGroup& group) {
    return text("{\"names\": [", joined(group.names, json_quoted),
                "], \"across_parts\": ", group.across_parts ? "true" : "false",
                ", \"several_labels\": ", group.has_several_labels ? "true" : "false", "}");
  });
  const std::string sizes = joined(report.sizes, [](const auto& one) {
    return text("{\"height\": ", one.first.first, ", \"width\": ", one.first.second,
                ", \"samples\": ", one.second, "}");
  });
  return text("{\"clean\": ", report.is_clean() ? "true" : "false",
              ", \"decoded\": ", report.decoded, ", \"ignored_files\": ", report.ignored_files,
              ",\n \"parts\": [", parts, "],\n \"mean\": [", numbers(report.mean),
              "], \"deviation\": [", numbers(report.deviation), "],\n \"sizes\": [", sizes,
              "],\n \"bad\": [", bad, "],\n \"duplicates\": [", duplicates, "]}\n");
}

}  // namespace binade::data
