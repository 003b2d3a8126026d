// Writes the report as JSON.
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/error.h>
#include <binade/lab/driver/report.h>

#include <cmath>

namespace binade::lab {
namespace {

// Writes the members of an object or the elements of an array, with commas between them.
class Members {
 public:
  Members& add(const char* name, const std::string& json) {
    out_ += (out_.empty() ? "" : ", ") + json_quoted(name) + ": " + json;
    return *this;
  }
  Members& text_of(const char* name, const std::string& value) {
    return add(name, json_quoted(value));
  }
  template <class T>
  Members& number(const char* name, T value) {
    if constexpr (std::is_floating_point_v<T>) {
      return add(name, std::isfinite(value) ? text(value) : "null");
    } else {
      return add(name, text(value));
    }
  }
  std::string object() const { return "{" + out_ + "}"; }

 private:
  std::string out_;
};

template <class List, class F>
std::string array_of(const List& list, F f) {
  std::string out;
  for (const auto& element : list) {
    out += (out.empty() ? "" : ", ") + f(element);
  }
  return "[" + out + "]";
}
template <class List>
std::string texts_of(const List& list) {
  return array_of(list, [](const std::string& word) { return json_quoted(word); });
}

std::string side_json(const FoundSide& side) {
  if (side.act.empty()) {
    return "null";
  }
  return Members()
      .text_of("act", side.act)
      .text_of("file", side.file)
      .number("line", side.line)
      .text_of("block", side.block)
      .text_of("thread", side.thread)
      .object();
}

std::string issue_json(const Issue& issue) {
  const Found& f = issue.found;
  return Members()
      .text_of("severity", name_of(f.gravity))
      .text_of("kind", f.kind)
      .text_of("headline", issue.headline)
      .add("details", texts_of(issue.details))
      .text_of("kernel", f.kernel)
      .text_of("array", f.array)
      .number("index", f.index)
      .add("first", side_json(f.first))
      .add("second", side_json(f.second))
      .number("count", f.count)
      .add("shapes", texts_of(issue.shapes))
      .add("inputs", texts_of(issue.inputs))
      .add("builds", texts_of(issue.builds))
      .object();
}

std::string line_json(const LineCount& line) {
  const FoundAccess& a = line.access;
  return Members()
      .text_of("file", a.file)
      .number("line", line.line)
      .text_of("kernel", line.kernel)
      .text_of("memory", a.shared ? "shared" : "global")
      .text_of("access", a.atomic  ? "atomic"
                         : a.write ? "write"
                                   : "read")
      .number("requests", a.requests)
      .number("lanes", a.lanes)
      .number("possible_lanes", a.possible_lanes)
      .number("sectors", a.sectors)
      .number("ideal_sectors", a.ideal_sectors)
      .number("passes", a.passes)
      .number("ideal_passes", a.ideal_passes)
      .number("bytes", a.bytes)
      .number("conflicts", a.conflicts)
      .object();
}

std::string together_json(const TogetherCount& count) {
  return Members()
      .text_of("file", count.row.file)
      .number("line", count.row.line)
      .text_of("kernel", count.row.kernel)
      .text_of("what", count.row.what)
      .number("warps", count.row.warps)
      .number("lanes", count.row.lanes)
      .object();
}

std::string counts_json(const Counts& counts) {
  return Members()
      .text_of("shape", counts.shape)
      .add("compared", counts.compared ? "true" : "false")
      .number("blocks", counts.blocks)
      .number("counted_blocks", counts.sampled)
      .number("requested_bytes", counts.requested_bytes)
      .number("compulsory_bytes", counts.compulsory_bytes)
      .number("operations", counts.flops)
      .add("lines", array_of(counts.lines, line_json))
      .add("together", array_of(counts.together, together_json))
      .add("bounds", array_of(counts.bounds,
                              [](const Bound& b) {
                                return Members()
                                    .text_of("gpu", b.gpu)
                                    .number("memory_us", b.memory_us)
                                    .number("compute_us", b.compute_us)
                                    .object();
                              }))
      .object();
}

std::string device_kernel_json(const DeviceKernel& kernel) {
  Members instructions;
  for (const auto& [name, count] : kernel.instructions) {
    instructions.number(name.c_str(), count);
  }
  return Members()
      .text_of("gpu", kernel.gpu)
      .text_of("architecture", kernel.architecture)
      .text_of("kernel", kernel.kernel)
      .number("registers", kernel.registers)
      .number("spilled_bytes", kernel.spilled_bytes)
      .number("stack_bytes", kernel.stack_bytes)
      .number("shared_bytes", kernel.shared_bytes)
      .add("occupancy", array_of(kernel.occupancy,
                                 [](const Occupancy& o) {
                                   return Members()
                                       .number("threads", o.threads)
                                       .number("dynamic_bytes", o.dynamic_bytes)
                                       .number("blocks", o.blocks)
                                       .number("warps", o.warps)
                                       .number("most_warps", o.most_warps)
                                       .text_of("limit", o.limit)
                                       .object();
                                 }))
      .add("instructions", instructions.object())
      .object();
}

}  // namespace

std::string to_json(const Report& report) {
  return Members()
             .text_of("file", report.file)
             .text_of("case", report.case_name)
             .text_of("elements", report.elements)
             .add("right", report.right() ? "true" : "false")
             .add("shapes", texts_of(report.shapes))
             .add("inputs", texts_of(report.inputs))
             .number("worst_error", report.worst_error)
             .text_of("worst_at", report.worst_at)
             .number("results", report.runs)
             .add("same_bits", report.same_bits ? "true" : "false")
             .add("issues", array_of(report.issues, issue_json))
             .add("counts", counts_json(report.counts))
             .text_of("device_note", report.device.note)
             .add("device", array_of(report.device.kernels, device_kernel_json))
             .object() +
         "\n";
}

}  // namespace binade::lab
