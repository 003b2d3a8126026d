// Turns the findings of all builds into issues: one for each kind, array and pair of lines.
#include <binade/lab/driver/builds_internal.h>
#include <binade/lab/runner/wire.h>
#include <binade/lab/source/subscript.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

namespace binade::lab {
namespace {

// The source files of findings, each read once.
class Sources {
 public:
  const std::string& of(const std::string& file) {
    const auto [place, fresh] = texts_.emplace(file, "");
    if (fresh) {
      place->second = text_of_file(file);
    }
    return place->second;
  }

 private:
  std::map<std::string, std::string> texts_;
};

std::string place_of_side(const FoundSide& side) { return place_text(side.file, side.line); }

std::string thread_text(const FoundSide& side, bool with_block) {
  return (with_block ? "block " + side.block + " " : "") + "thread " + side.thread;
}

bool is_race(const Found& f) {
  return f.kind == "race" || f.kind == "missing barrier" || f.kind == "missing fence" ||
         f.kind == "copy in flight";
}

// The message without the thread at its start and the place at its end.
std::string short_message(const Found& f) {
  const size_t colon = f.message.find("): ");
  const std::string all = f.message.substr(0, f.message.find('\n'));
  const std::string rest = colon < all.size() ? all.substr(colon + 3) : all;
  // Messages end in the place: "..., at softmax.cu:12" or "... at softmax.cu:12 (4 bytes)".
  const size_t at = rest.rfind(" at ");
  const bool is_place = at != rest.npos && rest.find(':', at) != rest.npos;
  return rest.substr(0, !is_place ? rest.npos : at > 0 && rest[at - 1] == ',' ? at - 1 : at);
}

}  // namespace

std::string headline_of(const Found& f) {
  std::string line = f.first.line > 0 ? place_of_side(f.first) + "  " : "";
  line += f.kind;
  if (!f.order.empty()) {
    line += " (" + f.order + ")";
  }
  const bool says = f.kind == "out of bounds" || f.kind == "undefined arithmetic" ||
                    f.kind == "misaligned" || f.kind == "exception" || f.first.act == "runs";
  if (says && !f.message.empty() && (f.element.empty() || f.first.act == "runs")) {
    line += ": " + short_message(f);
  } else if (!f.element.empty()) {
    line += (f.kind == "out of bounds" ? ": " + f.first.act + " " : " on ") + f.element;
  }
  return line;
}

namespace {

std::vector<std::string> details_of(const Found& f) {
  std::vector<std::string> lines;
  const bool blocks = f.second.block != f.first.block;
  if (!f.second.act.empty() && f.first.line > 0) {
    const std::string what = f.element.empty() ? "" : " " + f.element;
    lines.push_back(text("block ", f.first.block, ": thread ", f.first.thread, " ", f.first.act,
                         is_race(f) ? what : "", " at :", f.first.line, "; ",
                         thread_text(f.second, blocks), " ", f.second.past, is_race(f) ? " it" : "",
                         " at :", f.second.line));
  } else if (f.first.line > 0 && !f.first.block.empty() && !f.kernel.empty()) {
    lines.push_back(text("block ", f.first.block, " thread ", f.first.thread, " (warp ",
                         f.first.warp, " lane ", f.first.lane, "), kernel ", f.kernel));
  }
  if (!f.remedy.empty()) {
    lines.push_back(is_race(f) && f.first.line != f.second.line && f.remedy.starts_with("__sync")
                        ? text("no ", f.remedy, " between :", std::min(f.first.line, f.second.line),
                               " and :", std::max(f.first.line, f.second.line))
                    : f.remedy == "a launch of its own"
                        ? "missing: a launch of its own, or __threadfence() on both sides of an "
                          "atomic operation"
                        : "missing: " + f.remedy);
  }
  if (!f.first.inner_file.empty() && f.first.inner_line > 0) {
    lines.push_back("in " + place_text(f.first.inner_file, f.first.inner_line));
  }
  if (!is_race(f) && !f.message.empty()) {
    const size_t colon = f.message.find("): ");  // after "kernel k, block ..., thread (...)"
    std::istringstream parts(colon == std::string::npos ? f.message : f.message.substr(colon + 3));
    const std::string headline = headline_of(f);
    for (std::string part; std::getline(parts, part) && lines.size() < 10;) {
      if (headline.find(part) == headline.npos) {
        lines.push_back(part);
      }
    }
  }
  return lines;
}

// Findings with the same key are one issue. A race within a warp and one between warps are equal.
std::string key_of(const Found& f) {
  const std::string a = place_of_side(f.first), b = place_of_side(f.second);
  return (f.kind == "missing barrier" ? "race" : f.kind) + "|" + f.array + "|" + std::min(a, b) +
         "|" + std::max(a, b);
}

// A barrier must separate two lines of one block; within one warp __syncwarp() is enough.
std::string remedy_of(const Found& f) {
  const bool in_block = is_race(f) && f.kind != "copy in flight" && f.first.block == f.second.block;
  const bool reads = f.order.find("read") != std::string::npos;
  if (!in_block || !reads || f.first.line == f.second.line || f.first.line == 0) {
    return f.remedy;
  }
  return f.first.warp == f.second.warp ? "__syncwarp()" : "__syncthreads()";
}

Issue& issue_for(Report& report, Found found) {
  found.remedy = remedy_of(found);
  const std::string key = key_of(found);
  for (Issue& issue : report.issues) {
    if (key_of(issue.found) == key) {
      issue.found.count += found.count;
      issue.found.elements = std::max(issue.found.elements, found.elements);
      if (issue.found.remedy == "__syncwarp()" && found.remedy == "__syncthreads()") {
        found.count = issue.found.count;  // a race between warps needs the stronger remedy
        found.elements = issue.found.elements;
        issue.found = found;
        issue.headline = headline_of(found);
        issue.details = details_of(found);
      }
      return issue;
    }
  }
  report.issues.push_back(
      {.found = found, .headline = headline_of(found), .details = details_of(found)});
  return report.issues.back();
}

// For an index beyond a static array the compiler's check knows the type and the source the name.
void name_array(Found& found, Sources& sources) {
  constexpr std::string_view kOf = " out of bounds of ";
  const size_t at = found.message.find(kOf);
  if (found.kind != "out of bounds" || !found.array.empty() || found.first.line == 0 ||
      at == found.message.npos) {
    return;
  }
  const size_t type = at + kOf.size(), end = found.message.find(" at ", type);
  const auto dimensions = std::count(found.message.begin() + static_cast<std::ptrdiff_t>(type),
                                     end == found.message.npos
                                         ? found.message.end()
                                         : found.message.begin() + static_cast<std::ptrdiff_t>(end),
                                     '[');
  const std::optional<Subscript> subscript =
      subscript_at(sources.of(found.first.file), found.first.line, found.first.column,
                   static_cast<int>(dimensions));
  if (subscript) {
    found.array = subscript->array;
    found.message.insert(type, subscript->base + ", ");
  }
}

void add_deaths(Report& report, const BuildResult& build, const Problem& problem,
                const std::set<uint32_t>& explained) {
  for (const BuildResult::Death& death : build.deaths) {
    if (explained.contains(death.run)) {
      continue;
    }
    Found found;
    found.kind = death.late ? "no end" : "crash";
    found.gravity = Gravity::unsafe;
    found.message = death.reason;
    found.count = 1;
    Issue& issue = issue_for(report, found);
    issue.headline =
        found.kind + ": the process of the " + name_of(build.build) + " build " + death.reason;
    issue.details.clear();
    issue.shapes.insert(problem.runs[death.run].shape);
    issue.inputs.insert(problem.runs[death.run].inputs);
    issue.builds.insert(name_of(build.build));
  }
}

// Drops findings without a line if there is one with a line for the same array.
void drop_blunt_issues(Report& report) {
  const auto is_sharper = [](const Issue& sharp, const Issue& blunt) {
    return sharp.found.first.line > 0 && sharp.found.kind == blunt.found.kind &&
           sharp.found.array == blunt.found.array;
  };
  const std::vector<Issue> all = report.issues;
  std::erase_if(report.issues, [&](const Issue& issue) {
    const bool blunt = issue.found.first.line == 0;
    const bool is_crash = issue.found.kind == "crash" || issue.found.kind == "no end";
    return blunt && std::any_of(all.begin(), all.end(), [&](const Issue& other) {
             return is_sharper(other, issue) || (is_crash && other.found.first.line > 0 &&
                                                 other.found.gravity <= Gravity::wrong);
           });
  });
}

}  // namespace

std::string place_text(const std::string& file, int line) {
  const std::string name = std::filesystem::path(file).filename().string();
  return line > 0 ? text(name, ":", line) : name;
}

void add_findings(Report& report, const Evidence& evidence) {
  Sources sources;
  // The race detector knows most, AddressSanitizer least; an issue shows its first finding.
  for (const Build of : {Build::race, Build::plain, Build::asan}) {
    const auto b = static_cast<size_t>(of);
    const BuildResult& build = evidence.builds[b];
    const Problem& problem = evidence.problems[b];
    std::set<uint32_t> whole, explained;
    for (const Record& record : build.records) {
      if (record.kind == RecordKind::end) {
        whole.insert(record.run);
      }
    }
    for (const Record& record : build.records) {
      const bool early = record.kind == RecordKind::early && !whole.contains(record.run);
      if (record.kind != RecordKind::finding && !early) {
        continue;
      }
      WireReader in(record.payload);
      Found found = read_found(in);
      name_array(found, sources);
      if (found.kind == "non-deterministic") {
        report.same_bits = false;
      }
      Issue& issue = issue_for(report, found);
      issue.shapes.insert(problem.runs[record.run].shape);
      issue.inputs.insert(problem.runs[record.run].inputs);
      issue.builds.insert(name_of(build.build));
      explained.insert(record.run);
    }
    add_deaths(report, build, problem, explained);
  }
  drop_blunt_issues(report);
}

void add_compiler_warnings(Report& report, const BuildResult& build) {
  static const std::regex form(
      R"(^(.*):(\d+):\d+: warning: (.*) \[-W(?:maybe-|conditional-|sometimes-)?uninitialized\]$)");
  std::istringstream lines(build.warnings);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (!std::regex_match(line, parts, form) || !seen.insert(line).second) {
      continue;
    }
    Found found;
    found.kind = "uninitialised variable";
    found.gravity = Gravity::unsafe;
    found.first.act = "reads";
    found.first.file = parts[1];
    found.first.line = std::stoi(parts[2]);
    found.message = parts[3];
    found.count = 1;
    report.issues.push_back({.found = found,
                             .headline = text(place_text(found.first.file, found.first.line),
                                              "  uninitialised variable: ", found.message),
                             .builds = {"compiler"}});
  }
}

void sort_issues(Report& report) {
  const auto rank = [](const Issue& i) {
    return std::make_tuple(i.found.gravity, i.found.first.line == 0, i.found.first.line);
  };
  std::stable_sort(report.issues.begin(), report.issues.end(),
                   [&](const Issue& a, const Issue& b) { return rank(a) < rank(b); });
}

}  // namespace binade::lab
