// Converts the executor's findings and counts to the lab's types.
#include <binade/kernels/host/named_ranges.h>
#include <binade/kernels/host/source_line.h>
#include <binade/lab/runner/convert_internal.h>

#include <cstdlib>
#include <map>

namespace binade::lab {
namespace host = kernels::host;

namespace {

const char* act_of(host::Act act, bool past) {
  switch (act) {
    case host::Act::none: return "";
    case host::Act::read: return past ? "read" : "reads";
    case host::Act::write: return past ? "wrote" : "writes";
    case host::Act::atomic: return past ? "changed by an atomic" : "changes by an atomic";
    case host::Act::copy: return past ? "began a copy to" : "begins a copy to";
    case host::Act::barrier: return past ? "waited at a barrier" : "waits at a barrier";
    case host::Act::collective:
      return past ? "waited in a warp function" : "waits in a warp function";
    case host::Act::end: return "ended";
    case host::Act::run: break;
  }
  return past ? "ran" : "runs";
}

// True for a place in a header of the lab or the compiler, not in the user's code.
bool is_of_lab(const std::string& file) {
  return file.find("/binade/lab/device/") != file.npos ||
         file.find("/binade/kernels/host/") != file.npos || file.starts_with("/usr/");
}

FoundSide side_from(const host::FindingSide& side) {
  FoundSide found;
  if (side.act == host::Act::none) {
    return found;
  }
  found.act = act_of(side.act, false);
  found.past = act_of(side.act, true);
  if (!is_of_lab(side.line.file)) {
    found.file = side.line.file;
    found.line = side.line.line;
    found.column = side.line.column;
  }
  if (!is_of_lab(side.line.inner_file)) {
    found.inner_file = side.line.inner_file;
    found.inner_line = side.line.inner_line;
  }
  found.block = to_string(side.block);
  found.thread = to_string(side.thread);
  found.warp = side.warp;
  found.lane = side.lane;
  return found;
}

}  // namespace

Found found_from(const host::Finding& finding) {
  Found found;
  found.kind = host::name_of(finding.kind);
  found.gravity = static_cast<Gravity>(finding.severity);
  found.kernel = finding.kernel;
  found.first = side_from(finding.first);
  found.second = side_from(finding.second);
  found.element = finding.element.space == host::MemorySpace::none ||
                          finding.element.space == host::MemorySpace::local
                      ? ""
                      : to_string(finding.element);
  found.array = finding.element.array;
  found.index = finding.element.index;
  found.length = finding.element.count;
  found.remedy = finding.remedy == host::Remedy::none ? "" : host::name_of(finding.remedy);
  found.order = finding.order;
  found.message = finding.message;
  found.ended = finding.ended;
  found.count = finding.count;
  found.elements = finding.elements;
  return found;
}

FoundAccess found_from(const host::AccessRow& row) {
  FoundAccess found;
  found.kernel = row.kernel;
  found.file = row.file;
  found.line = row.line;
  found.shared = host::is_shared(row.kind);
  found.atomic = host::is_atomic(row.kind);
  found.write =
      row.kind == host::AccessKind::global_write || row.kind == host::AccessKind::shared_write;
  found.requests = row.requests;
  found.lanes = row.lanes;
  found.possible_lanes = row.possible_lanes;
  found.sectors = row.sectors;
  found.ideal_sectors = row.ideal_sectors;
  found.passes = row.wavefronts;
  found.ideal_passes = row.ideal_wavefronts;
  found.bytes = row.bytes_used;
  found.conflicts = row.conflicts;
  return found;
}

FoundTogether found_from(const host::TogetherRow& row) {
  return {row.kernel, row.file, row.line, row.what, row.warps, row.lanes};
}

FoundLaunch found_from(const KernelShape& shape) {
  FoundLaunch launch;
  launch.kernel = shape.kernel;
  launch.line = shape.line;
  const dim3 all[] = {shape.grid, shape.block};
  for (int i = 0; i < 2; ++i) {
    uint32_t* to = i == 0 ? launch.grid : launch.block;
    to[0] = all[i].x;
    to[1] = all[i].y;
    to[2] = all[i].z;
  }
  launch.shared_bytes = shape.shared_bytes;
  return launch;
}

FoundWriters writers_of(const std::string& array, const void* begin, size_t elements,
                        size_t element_bytes) {
  FoundWriters writers;
  writers.array = array;
  std::map<std::pair<std::string, int32_t>, uint32_t> numbers;  // by line
  for (size_t i = 0; i < elements; ++i) {
    const host::LastWriter last =
        host::last_writer(static_cast<const char*>(begin) + i * element_bytes);
    FoundWriters::Writer writer;
    const FoundSide side = side_from(last.side);
    if (side.line > 0 && !last.kernel.empty()) {
      const auto [place, fresh] =
          numbers.emplace(std::pair(side.file, side.line), writers.lines.size() + 1);
      if (fresh) {
        writers.lines.push_back({side.file, side.line});
      }
      writer.line = place->second;
      const host::Coordinates b = last.side.block, t = last.side.thread;
      writer = {place->second, {b.x, b.y, b.z}, {t.x, t.y, t.z}};
    }
    writers.elements.push_back(writer);
  }
  return writers;
}
FoundNumber found_from(const NumberNote& note) {
  FoundNumber number;
  number.event = note.event == NumberEvent::exp_overflow   ? "exp"
                 : note.event == NumberEvent::f16_overflow ? "__half"
                                                           : "__nv_bfloat16";
  number.value = note.value;
  number.file = note.site.file == nullptr ? "" : note.site.file;
  number.line = note.site.line;
  if (note.instruction != nullptr) {
    const host::FindingLine& line = host::source_line(note.instruction);
    number.file = line.file;
    number.line = line.line;
  }
  number.block = to_string(host::Coordinates{note.block.x, note.block.y, note.block.z});
  number.thread = to_string(host::Coordinates{note.thread.x, note.thread.y, note.thread.z});
  number.count = note.count;
  return number;
}

}  // namespace binade::lab
