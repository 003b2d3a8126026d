// The report as one HTML page that needs no other file.
#include <binade/kernels/base/error.h>
#include <binade/lab/driver/report.h>
#include <binade/train/report/page.h>

#include <algorithm>
#include <sstream>

namespace binade::lab {
namespace {

namespace page = train::page;

std::string average(uint64_t a, uint64_t b) {
  return b == 0 ? "" : page::short_number(static_cast<double>(a) / static_cast<double>(b));
}

std::string issues_table(const Report& report) {
  page::TableText table;
  table.caption = report.issues.empty() ? "Nothing was found." : "What was found.";
  table.head = {"severity", "what", "details", "shapes", "inputs"};
  const auto joined = [](const auto& words, const char* separator) {
    std::string all;
    for (const std::string& word : words) {
      all += (all.empty() ? "" : separator) + word;
    }
    return all;
  };
  for (const Issue& issue : report.issues) {
    table.rows.push_back({name_of(issue.found.gravity), issue.headline, joined(issue.details, "; "),
                          joined(issue.shapes, " "), joined(issue.inputs, ", ")});
  }
  return page::table_of(table);
}

std::string counts_table(const Counts& counts) {
  page::TableText table;
  table.caption =
      text("Accesses of memory by source line for shape ", counts.shape, ", counted on ",
           counts.sampled, " of ", counts.blocks,
           " blocks. A request is one of a warp; ideal: the fewest that its bytes need.");
  table.head = {"line",           "access", "requests", "sectors (ideal)",
                "passes (ideal)", "bytes",  "lanes",    "lanes on one address"};
  for (const LineCount& line : counts.lines) {
    const FoundAccess& a = line.access;
    table.rows.push_back(
        {text(line.line),
         std::string(a.shared ? "shared " : "global ") + (a.atomic  ? "atomic"
                                                          : a.write ? "write"
                                                                    : "read"),
         text(a.requests),
         a.shared
             ? ""
             : average(a.sectors, a.requests) + " (" + average(a.ideal_sectors, a.requests) + ")",
         a.shared ? average(a.passes, a.requests) + " (" + average(a.ideal_passes, a.requests) + ")"
                  : "",
         text(a.bytes), average(a.lanes, a.requests),
         a.atomic ? average(a.conflicts, a.requests) : ""});
  }
  return page::table_of(table);
}

std::string together_table(const Counts& counts) {
  page::TableText table;
  table.caption = "Barriers and warp functions by source line: how often a warp came to each.";
  table.head = {"line", "what", "warps", "lanes"};
  for (const TogetherCount& count : counts.together) {
    table.rows.push_back({text(count.row.line), count.row.what, text(count.row.warps),
                          average(count.row.lanes, count.row.warps)});
  }
  return counts.together.empty() ? "" : page::table_of(table);
}

std::string bounds_table(const Counts& counts) {
  page::TableText table;
  table.caption =
      text("Lower bounds from ", counts.compulsory_bytes, " compulsory bytes and ",
           page::short_number(counts.flops),
           " operations at the vendor's peak rates, in microseconds. They predict no time.");
  table.head = {"GPU", "by bytes", "by operations"};
  for (const Bound& bound : counts.bounds) {
    table.rows.push_back(
        {bound.gpu, page::short_number(bound.memory_us), page::short_number(bound.compute_us)});
  }
  return page::table_of(table);
}

std::string source_table(const Report& report, const std::string& source) {
  page::TableText table;
  table.caption = report.file;
  table.head = {"line", "requests", "source", "found"};
  std::istringstream lines(source);
  std::string code;
  for (int line = 1; std::getline(lines, code); ++line) {
    uint64_t requests = 0;
    for (const LineCount& count : report.counts.lines) {
      requests += count.line == line ? count.access.requests : 0;
    }
    std::string found;
    for (const Issue& issue : report.issues) {
      if (issue.found.first.line == line || issue.found.second.line == line) {
        found += (found.empty() ? "" : "; ") + issue.found.kind;
      }
    }
    table.rows.push_back({text(line), requests > 0 ? text(requests) : "", code, found});
  }
  return page::table_of(table);
}

}  // namespace

std::string to_page(const Report& report, const std::string& source) {
  page::TableText verdict;
  verdict.caption = "binade kernel";
  verdict.head = {"file", "case", "types", "verdict", "worst error / allowed"};
  verdict.rows = {{report.file, report.case_name, report.elements,
                   report.right() ? "right" : "wrong", page::short_number(report.worst_error)}};
  std::string out =
      page::head("Kernel " + report.case_name) + page::table_of(verdict) + issues_table(report);
  if (!report.counts.lines.empty()) {
    out +=
        counts_table(report.counts) + together_table(report.counts) + bounds_table(report.counts);
  }
  return out + source_table(report, source) + page::foot();
}

}  // namespace binade::lab
