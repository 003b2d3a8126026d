// Memory accesses by source line, and advice about performance.
#include <binade/lab/driver/builds_internal.h>
#include <binade/lab/driver/gpus_internal.h>
#include <binade/lab/runner/wire.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace binade::lab {
namespace {

void add_rows(FoundAccess& total, const FoundAccess& row) {
  total.requests += row.requests;
  total.lanes += row.lanes;
  total.possible_lanes += row.possible_lanes;
  total.sectors += row.sectors;
  total.ideal_sectors += row.ideal_sectors;
  total.passes += row.passes;
  total.ideal_passes += row.ideal_passes;
  total.bytes += row.bytes;
  total.conflicts += row.conflicts;
}

std::string line_of_file(const std::string& file, int line) {
  std::istringstream lines(text_of_file(file));
  std::string found;
  for (int i = 0; i < line && std::getline(lines, found); ++i) {
  }
  const size_t first = found.find_first_not_of(" \t");
  return first == std::string::npos ? "" : found.substr(first);
}

// Adds an issue for each line whose accesses cost several times the minimum.
class Advice {
 public:
  explicit Advice(Report& report) : report_(report) {}

  void look_at(const FoundAccess& row) {
    constexpr uint64_t kFew = 8;  // fewer requests give no advice
    if (row.requests < kFew) {
      return;
    }
    const double requests = static_cast<double>(row.requests);
    if (row.atomic && row.conflicts >= 4 * row.requests) {
      add(row, "atomic contention",
          text(number_text(static_cast<double>(row.conflicts) / requests),
               " lanes of a warp on one address take turns"),
          "sum in registers or shared memory first, one atomic a warp or block");
    } else if (row.shared && row.passes >= 2 * row.ideal_passes) {
      add(row, "bank conflict",
          text(number_text(static_cast<double>(row.passes) / requests), " passes a request, ",
               number_text(static_cast<double>(row.ideal_passes) / requests), " would do"),
          "pad the rows by one element, or change which lane reads which element");
    } else if (!row.shared && !row.atomic && row.sectors >= 2 * row.ideal_sectors) {
      add(row, "uncoalesced",
          text(number_text(static_cast<double>(row.sectors) / requests), " sectors a request, ",
               number_text(static_cast<double>(row.ideal_sectors) / requests), " would do"),
          "let neighbouring lanes touch neighbouring elements");
    }
  }

 private:
  void add(const FoundAccess& row, const char* kind, const std::string& what, const char* advice) {
    Found found;
    found.kind = kind;
    found.gravity = Gravity::performance;
    found.kernel = row.kernel;
    found.first.file = row.file;
    found.first.line = row.line;
    found.message = what;
    found.count = row.requests;
    report_.issues.push_back(
        {.found = found,
         .headline = text(place_text(row.file, row.line), "  ", kind, ": ", what),
         .details = {advice},
         .shapes = {report_.counts.shape},
         .builds = {"race"}});
  }

  Report& report_;
};

uint64_t compulsory_bytes(const Case& of, const Translation& translation, const Sizes& sizes) {
  uint64_t bytes = 0;
  for (const Parameter& p : translation.parameters) {
    const CaseParameter* array = of.find(p.name);
    if (array != nullptr && p.passing == Passing::array) {
      bytes += static_cast<uint64_t>(of.count(*array, sizes)) * bytes_of(p.element);
    }
  }
  return bytes;
}

}  // namespace

void add_counts(Report& report, const Evidence& evidence, const Sizes& sizes) {
  const BuildResult& race = evidence.builds[static_cast<size_t>(Build::race)];
  const Problem& problem = evidence.problems[static_cast<size_t>(Build::race)];
  Counts& counts = report.counts;
  counts.shape = evidence.of.text_of(sizes);
  std::map<std::tuple<std::string, std::string, int, bool, bool, bool>, FoundAccess> rows;
  for (const Record& record : race.records) {
    WireReader in(record.payload);
    if (record.kind == RecordKind::count) {
      const FoundAccess row = read_access(in);
      auto& total = rows[{row.file, row.kernel, row.line, row.shared, row.atomic, row.write}];
      const bool fresh = total.requests == 0;
      FoundAccess copy = row;
      if (fresh) {
        total = copy;
      } else {
        add_rows(total, row);
      }
    } else if (record.kind == RecordKind::together) {
      const FoundTogether row = read_together(in);
      counts.together.push_back({line_of_file(row.file, row.line), row});
    } else if (record.kind == RecordKind::launch) {
      counts.launches.push_back(read_launch(in));
    }
  }
  const uint64_t limit = problem.runs.empty() ? 0 : problem.runs.back().sampled_blocks;
  for (const FoundLaunch& launch : counts.launches) {
    const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    counts.blocks += blocks;
    counts.sampled += limit == 0 ? blocks : std::min(blocks, limit);
  }
  Advice advice(report);
  double requested = 0;
  for (const auto& [key, row] : rows) {
    counts.lines.push_back({row.line, row.kernel, line_of_file(row.file, row.line), row});
    requested += row.shared ? 0 : static_cast<double>(row.bytes);
    advice.look_at(row);
  }
  const double scale = counts.sampled == 0 ? 1
                                           : static_cast<double>(counts.blocks) /
                                                 static_cast<double>(counts.sampled);
  counts.requested_bytes = static_cast<uint64_t>(requested * scale);
  counts.compulsory_bytes = compulsory_bytes(evidence.of, evidence.translation, sizes);
  counts.flops = evidence.of.flops(sizes);
  for (const Gpu& gpu : kGpus) {
    counts.bounds.push_back(
        {gpu.name, static_cast<double>(counts.compulsory_bytes) / gpu.bytes_per_second * 1e6,
         counts.flops / gpu.flops_per_second * 1e6});
  }
}

}  // namespace binade::lab
