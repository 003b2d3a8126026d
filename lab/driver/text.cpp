// Writes the report as text for a terminal.
#include <binade/kernels/base/error.h>
#include <binade/lab/driver/numbers_internal.h>
#include <binade/lab/driver/report.h>

#include <algorithm>
#include <cstdio>

namespace binade::lab {
namespace {

template <class Words>
std::string joined(const Words& words, const char* separator) {
  std::string all;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : separator) + word;
  }
  return all;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 3; ++unit) {
    bytes /= 1024;
  }
  return fixed(bytes, unit == 0 || bytes >= 100 ? 0 : 1) + " " + units[unit];
}

std::string issue_text(const Issue& issue) {
  std::string out = "  " + padded(name_of(issue.found.gravity), 12) + issue.headline + "\n";
  for (const std::string& detail : issue.details) {
    out += std::string(14, ' ') + detail + "\n";
  }
  std::string where;
  if (issue.found.count > 1) {
    where = text(issue.found.count, " times");
    if (issue.found.elements > 1) {
      where += text(", ", issue.found.elements, " elements");
    }
  }
  if (!issue.shapes.empty() && issue.found.gravity != Gravity::performance) {
    where += (where.empty() ? "" : "; ") + ("shapes " + joined(issue.shapes, " ")) + "; inputs " +
             joined(issue.inputs, ", ");
  }
  return where.empty() ? out : out + std::string(14, ' ') + "[" + where + "]\n";
}

std::string ratio_text(uint64_t a, uint64_t b) {
  return b == 0 ? "-" : fixed(static_cast<double>(a) / static_cast<double>(b), 2);
}

std::string counts_text(const Counts& counts) {
  std::string out = "  counts of shape " + counts.shape + ", a request is one of a warp" +
                    (counts.compared ? "" : "; too large to compare its numbers") + "\n";
  out += "  " + padded("line", 6) + padded("", 44) + padded("requests", 10) +
         padded("sectors (ideal)", 17) + padded("passes (ideal)", 16) + "lanes\n";
  for (const LineCount& line : counts.lines) {
    const FoundAccess& a = line.access;
    const std::string what = a.atomic ? "atomic" : a.write ? "write" : "read";
    out += "  " + padded(text(line.line), 6) + padded(line.code.substr(0, 42), 44) +
           padded(text(a.requests), 10);
    out += padded(a.shared ? ""
                           : ratio_text(a.sectors, a.requests) + " (" +
                                 ratio_text(a.ideal_sectors, a.requests) + ")",
                  17);
    out += padded(a.shared ? ratio_text(a.passes, a.requests) + " (" +
                                 ratio_text(a.ideal_passes, a.requests) + ")"
                           : "",
                  16);
    out += ratio_text(a.lanes, a.requests) + "  " + (a.shared ? "shared " : "global ") + what;
    if (a.atomic) {
      out += ", " + ratio_text(a.conflicts, a.requests) + " lanes on one address";
    }
    out += "\n";
  }
  for (const TogetherCount& count : counts.together) {
    out += "  " + padded(text(count.row.line), 6) + padded(count.code.substr(0, 42), 44) +
           padded(text(count.row.warps), 10) + std::string(33, ' ') +
           ratio_text(count.row.lanes, count.row.warps) + "  " + count.row.what + "\n";
  }
  const double compulsory = static_cast<double>(counts.compulsory_bytes);
  out += text("  counted on ", counts.sampled, " of ", counts.blocks, " blocks; bytes requested ",
              bytes_text(static_cast<double>(counts.requested_bytes)), ", compulsory ",
              bytes_text(compulsory), " (each input and output once): ",
              fixed(static_cast<double>(counts.requested_bytes) / std::max(compulsory, 1.0), 2),
              " x; ", fixed(counts.flops / std::max(compulsory, 1.0), 2), " operations a byte\n");
  for (const Bound& bound : counts.bounds) {
    out += "  " + padded(bound.gpu, 16) + "not below " +
           fixed(std::max(bound.memory_us, bound.compute_us), 3) + " us (" +
           (bound.memory_us >= bound.compute_us ? "bytes" : "operations") + ")\n";
  }
  return out + "  Bounds from the vendor's peak rates; they predict no time.\n";
}

// Lists the most frequent instructions and the total: "312 instructions: 24 LDG, 8 STG".
std::string instructions_text(const std::map<std::string, uint64_t>& instructions) {
  uint64_t all = 0;
  std::vector<std::pair<uint64_t, std::string>> most;
  for (const auto& [name, count] : instructions) {
    all += count;
    most.emplace_back(count, name);
  }
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr size_t kShown = 10;
  std::string out = text(all, " instructions: ");
  for (size_t i = 0; i < std::min(kShown, most.size()); ++i) {
    out += text(i == 0 ? "" : ", ", most[i].first, " ", most[i].second);
  }
  return out + (most.size() > kShown ? ", ..." : "");
}

std::string occupancy_text(const Occupancy& o) {
  const double share = o.most_warps == 0 ? 0 : 100.0 * o.warps / o.most_warps;
  return text("blocks of ", o.threads, " threads",
              o.dynamic_bytes > 0 ? text(" with ", o.dynamic_bytes, " B dynamic") : std::string(),
              ": ", o.blocks, " resident, occupancy ", fixed(share, 0), "%, limited by ", o.limit);
}

}  // namespace

std::string to_text(const DeviceCode& code) {
  std::string out = code.note.empty() ? "" : "  device code " + code.note + "\n";
  if (!code.kernels.empty()) {
    out += "  device code by nvcc: registers and spills of a thread, instructions of SASS\n";
  }
  for (const DeviceKernel& kernel : code.kernels) {
    out += text("  ", padded(kernel.gpu, 16), padded(kernel.architecture, 7), kernel.kernel, ": ",
                kernel.registers, " registers, ", kernel.spilled_bytes, " B spilled, ",
                kernel.shared_bytes, " B shared\n");
    for (const Occupancy& occupancy : kernel.occupancy) {
      out += std::string(25, ' ') + occupancy_text(occupancy) + "\n";
    }
    if (!kernel.instructions.empty()) {
      out += std::string(25, ' ') + instructions_text(kernel.instructions) + "\n";
    }
  }
  return out;
}

std::string to_text(const Report& report) {
  std::string out = report.file + "  case " + report.case_name + ": " + joined(report.shapes, " ") +
                    ", inputs " + joined(report.inputs, ", ") + "; " + report.elements + "\n";
  out += "  compiled    ";
  for (const CompiledBuild& build : report.builds) {
    out += build.name + " " + fixed(build.compile_seconds, 1) + " s  ";
  }
  out += "run ";
  for (const CompiledBuild& build : report.builds) {
    out += " " + build.name + " " + fixed(build.run_seconds, 1) + " s";
  }
  out += "\n";
  if (report.right()) {
    out += "  RIGHT       worst error " + fixed(report.worst_error, 2) + " of what is allowed" +
           (report.same_bits ? ", same bits in all schedules" : "") +
           text(", ", report.runs, " results\n");
  }
  for (const Issue& issue : report.issues) {
    out += issue_text(issue);
  }
  if (!report.right() && !report.hint.empty()) {
    out += "  hint        " + report.hint + "\n";
  }
  if (!report.output.empty()) {
    out += "  printed     " + report.output.substr(0, report.output.find('\n')) + "\n";
  }
  if (!report.counts.lines.empty()) {
    out += counts_text(report.counts);
  }
  return out + to_text(report.device);
}

}  // namespace binade::lab
