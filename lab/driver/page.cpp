// Writes the report as one HTML page that needs no other file.
#include <binade/kernels/base/error.h>
#include <binade/lab/driver/report.h>
#include <binade/train/report/page.h>

#include <filesystem>
#include <sstream>

namespace binade::lab {
namespace {

namespace page = train::page;
using page::escaped;

// Tables of numbers scroll sideways on a narrow screen; source lines keep their spaces.
constexpr const char* kPageStyle = R"(<style>
.issue { border-left: 4px solid var(--grid); padding: .1em 0 .1em 14px; margin: 1em 0; }
.issue.UNSAFE, .issue.WRONG { border-color: var(--bad); }
.issue h3 { margin: 0; font-size: 16px; } .issue ul { margin: .3em 0; padding-left: 1.2em; }
.issue p { margin: .3em 0; font-size: 14px; } h1 { overflow-wrap: anywhere; margin-bottom: .2em; }
.wide td, .wide th { overflow-wrap: normal; white-space: nowrap; } .wide td.text { white-space: normal; min-width: 14em; }
.wide caption { white-space: normal; max-width: min(90vw, 60em); } td.n { text-align: right; }
.source td { padding-top: 0; padding-bottom: 0; border: 0; } .source code { white-space: pre; font-size: 13px; } .note { font-size: 13px; padding-left: 1.5em; }
.source td:first-child, .source th:first-child { position: sticky; left: 0; background: var(--paper); }
.source .hit td { background: color-mix(in srgb, var(--bad) 12%, var(--paper)); }
</style>
)";

std::string average(uint64_t a, uint64_t b) {
  return b == 0 ? "" : page::short_number(static_cast<double>(a) / static_cast<double>(b));
}

template <class Words>
std::string listed(const Words& words, const char* separator) {
  std::string all;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : separator) + word;
  }
  return all;
}

std::string heading(const Report& report) {
  const std::string name = std::filesystem::path(report.file).filename().string();
  std::string out = text(
      "<h1>", escaped(name), ": ",
      report.right() ? "<span class=\"good\">right</span>" : "<span class=\"bad\">wrong</span>",
      "</h1>\n<p class=\"soft\">case ", escaped(report.case_name), ", ", escaped(report.elements),
      "; shapes ", listed(report.shapes, " "), "; inputs ", listed(report.inputs, ", "), ". ",
      report.runs, " results were compared, the largest error is ",
      page::short_number(report.worst_error), " of what is allowed",
      report.worst_at.empty() ? "" : " (" + escaped(report.worst_at) + ")");
  out += report.same_bits ? ". All schedules gave the same bits.</p>\n"
                          : ". Schedules gave different bits.</p>\n";
  if (!report.right() && !report.hint.empty()) {
    out += "<p>Hint: " + escaped(report.hint) + ".</p>\n";
  }
  return out;
}

std::string issue_part(const Issue& issue) {
  const std::string severity = name_of(issue.found.gravity);
  std::string out =
      text("<section class=\"issue ", severity, "\"><h3>",
           issue.found.gravity <= Gravity::wrong ? "<span class=\"bad\">" + severity + "</span>"
                                                 : severity,
           " ", escaped(issue.headline), "</h3>\n");
  if (!issue.details.empty()) {
    out += "<ul>";
    for (const std::string& detail : issue.details) {
      out += "<li>" + escaped(detail) + "</li>";
    }
    out += "</ul>\n";
  }
  std::string where;
  if (issue.found.count > 1) {
    where = text(issue.found.count, " times");
  }
  if (!issue.shapes.empty()) {
    where += (where.empty() ? "shapes " : ", shapes ") + listed(issue.shapes, " ");
  }
  if (!issue.inputs.empty()) {
    where += "; inputs " + listed(issue.inputs, ", ");
  }
  if (!where.empty()) {
    out += "<p class=\"soft\">" + escaped(where) + "</p>";
  }
  return out + "</section>\n";
}

std::string issues_part(const Report& report) {
  std::string out = "<h2>What was found</h2>\n";
  for (const Issue& issue : report.issues) {
    out += issue_part(issue);
  }
  return report.issues.empty() ? out + "<p>Nothing.</p>\n" : out;
}

std::string counts_table(const Counts& counts) {
  page::TableText table;
  table.caption = text(
      "For shape ", counts.shape, ", counted on ", counts.sampled, " of ", counts.blocks, " blocks",
      counts.sampled < counts.blocks ? ", which lie evenly between the first and the last" : "",
      ". A request is one of a warp; in brackets the fewest sectors and passes that its bytes "
      "need.",
      counts.compared ? "" : " The numbers of this shape were not compared.");
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
  table.caption = "Barriers and warp functions: how often a warp came to each.";
  table.head = {"line", "what", "warps", "lanes"};
  for (const TogetherCount& count : counts.together) {
    table.rows.push_back({text(count.row.line), count.row.what, text(count.row.warps),
                          average(count.row.lanes, count.row.warps)});
  }
  return counts.together.empty() ? "" : page::table_of(table);
}

std::string bounds_table(const Counts& counts) {
  page::TableText table;
  table.caption = text(
      "From ", counts.compulsory_bytes, " compulsory bytes and ", page::short_number(counts.flops),
      " operations at the vendor's peak rates, in microseconds. They predict no time.");
  table.head = {"GPU", "by bytes", "by operations"};
  for (const Bound& bound : counts.bounds) {
    table.rows.push_back(
        {bound.gpu, page::short_number(bound.memory_us), page::short_number(bound.compute_us)});
  }
  return page::table_of(table);
}

std::string device_table(const DeviceCode& code) {
  std::string out = "<h2>Device code</h2>\n";
  if (!code.note.empty()) {
    out += "<p>" + escaped(code.note) + ".</p>\n";
  }
  if (code.kernels.empty()) {
    return out;
  }
  page::TableText table;
  table.caption =
      "As nvcc compiles it: registers and spilled bytes of a thread, the share of a "
      "multiprocessor's warps that are resident, and instructions of SASS.";
  table.head = {"GPU",           "kernel",    "registers", "spilled bytes",
                "static shared", "occupancy", "SASS"};
  for (const DeviceKernel& kernel : code.kernels) {
    std::string occupancy, sass;
    for (const Occupancy& o : kernel.occupancy) {
      occupancy += text(occupancy.empty() ? "" : "; ", o.threads,
                        " threads: ", o.most_warps == 0 ? 0 : 100 * o.warps / o.most_warps, "% (",
                        o.limit, ")");
    }
    uint64_t all = 0;
    for (const auto& [name, count] : kernel.instructions) {
      all += count;
      sass += text(sass.empty() ? ": " : ", ", count, " ", name);
    }
    table.rows.push_back({kernel.gpu, kernel.kernel, text(kernel.registers),
                          text(kernel.spilled_bytes), text(kernel.shared_bytes), occupancy,
                          all == 0 ? "" : text(all) + sass});
  }
  return out + page::table_of(table);
}

std::string source_table(const Report& report, const std::string& source) {
  std::string out =
      "<h2>Source</h2>\n<div class=\"wide source\" tabindex=\"0\"><table>"
      "<tr><th>line</th><th>requests</th><th>source</th></tr>\n";
  std::istringstream lines(source);
  std::string code;
  for (int line = 1; std::getline(lines, code); ++line) {
    uint64_t requests = 0;
    for (const LineCount& count : report.counts.lines) {
      requests +=
          count.line == line && count.access.file == report.file ? count.access.requests : 0;
    }
    std::set<std::string> found;
    bool bad = false;
    for (const Issue& issue : report.issues) {
      const auto is_here = [&](const FoundSide& side) {
        return side.line == line && side.file == report.file;
      };
      if (is_here(issue.found.first) || is_here(issue.found.second)) {
        found.insert(issue.found.kind);
        bad |= issue.found.gravity <= Gravity::wrong;
      }
    }
    out += text("<tr", bad ? " class=\"hit\"" : "", "><td class=\"n soft\">", line,
                "</td><td class=\"n\">", requests > 0 ? text(requests) : std::string(),
                "</td><td><code>", escaped(code), "</code>",
                found.empty() ? std::string()
                              : text("<br><span class=\"note", bad ? " bad" : "", "\">",
                                     escaped(listed(found, "; ")), "</span>"),
                "</td></tr>\n");
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string to_page(const Report& report, const std::string& source) {
  std::string out = page::head("Kernel " + report.case_name) + kPageStyle + heading(report) +
                    issues_part(report) + source_table(report, source);
  if (!report.counts.lines.empty()) {
    out += "<h2>Accesses of memory</h2>\n" + counts_table(report.counts) +
           together_table(report.counts) + "<h2>Lower bounds</h2>\n" + bounds_table(report.counts);
  }
  if (!report.device.note.empty() || !report.device.kernels.empty()) {
    out += device_table(report.device);
  }
  return out + page::foot();
}

}  // namespace binade::lab
