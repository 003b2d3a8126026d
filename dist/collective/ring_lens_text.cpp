// The ring lens as a table and as JSON.
#include <binade/core/io/json_text.h>
#include <binade/core/observe/text_table_internal.h>
#include <binade/dist/collective/ring_lens.h>

#include <algorithm>
#include <cstdio>

namespace binade::dist {
namespace {

const char* name_of(Division division) {
  constexpr const char* kName[] = {"sum", "average, divided before", "average, divided after"};
  return kName[static_cast<int>(division)];
}

const char* name_of(ReductionOrder order) {
  return order == ReductionOrder::ring ? "ring" : "tree";
}

std::string short_number(double value) {
  char out[32];
  std::snprintf(out, sizeof out, value == 0 ? "0" : "%.2g", value);
  return out;
}

}  // namespace

std::string to_string(const ReductionChoice& choice) {
  return text(choice.dtype, choice.f32_carry ? " carried in f32" : "", ", ",
              name_of(choice.division), ", ", name_of(choice.order));
}

// A table of the relative error after hops 1, 2, 4, ... and of the result.
std::string to_text(const RingLensReport& report) {
  size_t most = 0;
  for (const RingLensRow& row : report.rows) {
    most = std::max(most, row.hops.size());
  }
  std::vector<std::string> heading = {"ranks", "dtype", "on the way", "result is", "order"};
  for (size_t hop = 1; hop < most; hop *= 2) {
    heading.push_back(text("hop ", hop));
  }
  for (const char* name : {"result", "largest, ulp", "infinite", "lost"}) {
    heading.push_back(name);
  }
  std::vector<std::vector<std::string>> table = {heading};
  for (const RingLensRow& row : report.rows) {
    const ReductionChoice& c = row.choice;
    auto& line = table.emplace_back();
    line = {text(row.ranks), to_string(c.dtype), c.f32_carry ? "f32" : to_string(c.dtype),
            name_of(c.division), name_of(c.order)};
    for (size_t hop = 1; hop < most; hop *= 2) {
      line.push_back(hop < row.hops.size() ? short_number(row.hops[hop - 1].relative) : "");
    }
    const HopError& result = row.hops.back();
    line.push_back(short_number(result.relative));
    line.push_back(short_number(result.ulps));
    line.push_back(text(result.infinite));
    line.push_back(text(result.lost));
  }
  return text(report.source, ": ", report.elements,
              " elements on every rank, errors relative to the exact sum\n") +
         text_table(table);
}

std::string to_json(const RingLensReport& report) {
  std::string out = text("{\"source\": ", json_quoted(report.source),
                         ", \"elements\": ", report.elements, ", \"rows\": [");
  const char* between = "\n";
  for (const RingLensRow& row : report.rows) {
    const ReductionChoice& c = row.choice;
    constexpr const char* kDivision[] = {"none", "before", "after"};
    out += text(between, " {\"ranks\": ", row.ranks, ", \"dtype\": \"", c.dtype,
                "\", \"f32_carry\": ", c.f32_carry ? "true" : "false", ", \"division\": \"",
                kDivision[static_cast<int>(c.division)], "\", \"order\": \"", name_of(c.order),
                "\", \"hops\": [");
    for (size_t i = 0; i < row.hops.size(); ++i) {
      const HopError& e = row.hops[i];
      out += text(i ? ", " : "", "{\"relative\": ", e.relative, ", \"ulps\": ", e.ulps,
                  ", \"infinite\": ", e.infinite, ", \"lost\": ", e.lost, "}");
    }
    out += "]}";
    between = ",\n";
  }
  return out + "\n]}\n";
}

}  // namespace binade::dist
