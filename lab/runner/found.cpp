#include <binade/lab/runner/found.h>
#include <binade/lab/runner/wire.h>

namespace binade::lab {
namespace {

// Each function visits the members in one order, for writing and for reading.
template <class Side, class F>
void visit_side(Side& side, F f) {
  f(side.act);
  f(side.past);
  f(side.file);
  f(side.line);
  f(side.column);
  f(side.inner_file);
  f(side.inner_line);
  f(side.block);
  f(side.thread);
  f(side.warp);
  f(side.lane);
}
template <class T, class F>
void visit_found(T& found, F f) {
  f(found.kind);
  f(found.gravity);
  f(found.kernel);
  visit_side(found.first, f);
  visit_side(found.second, f);
  f(found.element);
  f(found.array);
  f(found.index);
  f(found.length);
  f(found.remedy);
  f(found.order);
  f(found.message);
  f(found.ended);
  f(found.count);
  f(found.elements);
}
template <class T, class F>
void visit_access(T& row, F f) {
  f(row.kernel);
  f(row.file);
  f(row.line);
  f(row.shared);
  f(row.atomic);
  f(row.write);
  f(row.requests);
  f(row.lanes);
  f(row.possible_lanes);
  f(row.sectors);
  f(row.ideal_sectors);
  f(row.passes);
  f(row.ideal_passes);
  f(row.bytes);
  f(row.conflicts);
}
template <class T, class F>
void visit_together(T& row, F f) {
  f(row.kernel);
  f(row.file);
  f(row.line);
  f(row.what);
  f(row.warps);
  f(row.lanes);
}
template <class T, class F>
void visit_launch(T& launch, F f) {
  f(launch.kernel);
  f(launch.line);
  for (int i = 0; i < 3; ++i) {
    f(launch.grid[i]);
    f(launch.block[i]);
  }
  f(launch.shared_bytes);
}
template <class T, class F>
void visit_number(T& number, F f) {
  f(number.event);
  f(number.value);
  f(number.file);
  f(number.line);
  f(number.block);
  f(number.thread);
  f(number.count);
}

auto writer_of(WireWriter& out) {
  return [&out](const auto& value) { out.add(value); };
}
auto reader_of(WireReader& in) {
  return [&in](auto& value) { in.read(value); };
}

}  // namespace

const char* name_of(Gravity gravity) {
  switch (gravity) {
    case Gravity::unsafe: return "UNSAFE";
    case Gravity::wrong: return "WRONG";
    case Gravity::warning: return "warning";
    case Gravity::performance: break;
  }
  return "performance";
}

void write(WireWriter& out, const Found& found) { visit_found(found, writer_of(out)); }
void write(WireWriter& out, const FoundAccess& row) { visit_access(row, writer_of(out)); }
void write(WireWriter& out, const FoundTogether& row) { visit_together(row, writer_of(out)); }
void write(WireWriter& out, const FoundLaunch& launch) { visit_launch(launch, writer_of(out)); }
void write(WireWriter& out, const FoundNumber& number) { visit_number(number, writer_of(out)); }
void write(WireWriter& out, const FoundWriters& writers) {
  out.add(writers.array).add(static_cast<uint64_t>(writers.lines.size()));
  for (const FoundWriters::Line& line : writers.lines) {
    out.add(line.file).add(line.line);
  }
  out.add(static_cast<uint64_t>(writers.elements.size()));
  for (const FoundWriters::Writer& writer : writers.elements) {
    out.add(writer.line);
    for (int i = 0; i < 3; ++i) {
      out.add(writer.block[i]).add(writer.thread[i]);
    }
  }
}
FoundWriters read_writers(WireReader& in) {
  FoundWriters writers;
  in.read(writers.array);
  writers.lines.resize(in.get<uint64_t>());
  for (FoundWriters::Line& line : writers.lines) {
    in.read(line.file);
    in.read(line.line);
  }
  writers.elements.resize(in.get<uint64_t>());
  for (FoundWriters::Writer& writer : writers.elements) {
    in.read(writer.line);
    for (int i = 0; i < 3; ++i) {
      in.read(writer.block[i]);
      in.read(writer.thread[i]);
    }
  }
  return writers;
}
Found read_found(WireReader& in) {
  Found found;
  visit_found(found, reader_of(in));
  return found;
}
FoundAccess read_access(WireReader& in) {
  FoundAccess row;
  visit_access(row, reader_of(in));
  return row;
}
FoundTogether read_together(WireReader& in) {
  FoundTogether row;
  visit_together(row, reader_of(in));
  return row;
}
FoundLaunch read_launch(WireReader& in) {
  FoundLaunch launch;
  visit_launch(launch, reader_of(in));
  return launch;
}
FoundNumber read_number(WireReader& in) {
  FoundNumber number;
  visit_number(number, reader_of(in));
  return number;
}

}  // namespace binade::lab
