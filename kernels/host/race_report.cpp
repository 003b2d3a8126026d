// Turns the conflicts of the race detector into findings.
#include <binade/kernels/host/race.h>

#if BINADE_HOST_RACE
#include <binade/kernels/host/findings_internal.h>
#include <binade/kernels/host/race_shadow.h>
#include <binade/kernels/host/ranges_internal.h>

#include <cstring>

namespace binade::kernels::host::race {
namespace {

const char* verb(Kind kind, bool past) {
  switch (kind) {
    case Kind::read: return past ? "read" : "reads";
    case Kind::atomic: return past ? "changed it by an atomic" : "changes it by an atomic";
    case Kind::copy_issued: return past ? "began a cp.async to it" : "begins a cp.async to it";
    case Kind::write:
    case Kind::copy_landed: break;
  }
  return past ? "wrote" : "writes";
}

Act act_of(Kind kind) {
  switch (kind) {
    case Kind::read: return Act::read;
    case Kind::atomic: return Act::atomic;
    case Kind::copy_issued:
    case Kind::copy_landed: return Act::copy;
    case Kind::write: break;
  }
  return Act::write;
}

// A kernel of a user that reads without a fence of its own is as the example of CUDA's programming
// guide (Memory Fence Functions); where the first finding ends the launch, it is a race.
Remedy remedy_of(const Executor& x, const Conflict& c) {
  if (c.before.kind == Kind::copy_issued) {
    return Remedy::wait_for_copy;
  }
  if (c.unfenced && goes_on(x)) {
    return Remedy::fence_after;
  }
  if (c.now.block != c.before.block) {
    const bool atomic = c.now.kind == Kind::atomic || c.before.kind == Kind::atomic;
    return atomic ? Remedy::fence : c.updates ? Remedy::atomic : Remedy::another_launch;
  }
  if (c.updates) {
    return Remedy::atomic;
  }
  return c.now.thread / 32 == c.before.thread / 32 ? Remedy::syncwarp : Remedy::syncthreads;
}

FindingKind kind_of(const Conflict& c, Remedy remedy) {
  if (c.before.kind == Kind::copy_issued) {
    return FindingKind::copy_in_flight;
  }
  if (remedy == Remedy::fence_after) {
    return FindingKind::missing_fence;
  }
  const bool barrier = remedy == Remedy::syncthreads || remedy == Remedy::syncwarp;
  const bool reads = c.now.kind == Kind::read || c.before.kind == Kind::read;
  return barrier && reads ? FindingKind::missing_barrier : FindingKind::race;
}

const char* hint_of(Remedy remedy) {
  switch (remedy) {
    case Remedy::wait_for_copy: return ", which its thread has not waited for";
    case Remedy::fence_after: return "; no __threadfence() stands between the atomic and the read";
    case Remedy::fence:
    case Remedy::another_launch:
      return "; only __threadfence(), an atomic, an atomic and __threadfence() order blocks";
    case Remedy::atomic: return "; both change the old value: an atomic operation is missing";
    case Remedy::syncthreads: return "; no __syncthreads() stands between the two";
    case Remedy::syncwarp:
      return "; no __syncwarp() stands between the two, and the lanes of a warp do not run in step";
    case Remedy::none: break;
  }
  return "";
}

// An address that identifies the array, also one without a name.
const void* array_of(const Executor& x, const void* address) {
  if (in_arena(x, address)) {
    const SharedArray* array =
        array_at(x, static_cast<size_t>(static_cast<const char*>(address) - x.shared));
    return array != nullptr ? array->key : x.shared;
  }
  const RangeState* range = find_range(address);
  return range != nullptr ? range->range.begin : nullptr;
}

std::string target_of(const Executor& x, const FoundElement& element, const void* address) {
  if (!element.array.empty()) {
    return to_string(element);
  }
  return in_arena(x, address)
             ? text("shared memory at offset ", static_cast<const char*>(address) - x.shared)
             : text("global memory at ", reinterpret_cast<uintptr_t>(address));
}

FindingSide side_of_record(const Executor& x, const Record& record) {
  FindingSide side = side_of(x, record.thread, record.block, act_of(record.kind));
  side.line = record.place.line();
  return side;
}

std::string where_of(const Executor& x, const FindingSide& side) {
  return text("kernel ", x.grid.kernel, ", block ", side.block, ", thread ", side.thread, ": ");
}

FindingKey key_of(const Executor& x, const Conflict& c, FindingKind kind) {
  return {kind, c.now.place.number(), c.before.place.number(), array_of(x, c.address)};
}

Finding finding_of(const Executor& x, const Conflict& c, FindingKind kind) {
  const Remedy remedy = remedy_of(x, c);
  Finding f;
  f.kind = kind;
  f.severity = severity_of(kind);
  f.kernel = x.grid.kernel;
  f.first = side_of_record(x, c.now);
  f.second = side_of_record(x, c.before);
  f.element = element_of(x, c.address, false);
  if (f.element.array.empty()) {
    f.element = static_element(c.address, c.bytes);
  }
  f.bytes = c.bytes;
  f.remedy = remedy;
  f.order = c.order;
  f.message =
      text(where_of(x, f.first), "data race (", c.order, ") on ",
           target_of(x, f.element, c.address), ": this thread ", verb(c.now.kind, false), " at ",
           c.now.place, " (", c.bytes, " bytes); thread ", f.second.thread,
           c.now.block == c.before.block ? std::string() : text(" of block ", f.second.block), " ",
           verb(c.before.kind, true), " at ", c.before.place);
  if (kind == FindingKind::same_value_store) {
    f.remedy = Remedy::none;
    f.message += "; both write the same value";
  } else {
    f.message += hint_of(remedy);
  }
  return f;
}

// Two stores without an order, of which the second has not happened yet.
struct Stores {
  Conflict conflict;
  char before[16];
};
std::vector<Stores>& unsettled() {
  static auto& stores = *new std::vector<Stores>;
  return stores;
}

void collect(Executor& x, const Conflict& c, FindingKind kind) {
  const FindingKey key = key_of(x, c, kind);
  if (!count_again(key, x, c.address)) {
    add_finding(key, x, c.address, finding_of(x, c, kind));
  }
}

[[noreturn]] void end_with(Executor& x, const FindingKey& key, Finding finding) {
  die_with(x, *current_thread(x).fiber, key, std::move(finding));
}

}  // namespace

void report(Executor& x, const Conflict& conflict) {
  const FindingKind kind = kind_of(conflict, remedy_of(x, conflict));
  if (!goes_on(x)) {
    end_with(x, key_of(x, conflict, kind), finding_of(x, conflict, kind));
  }
  const bool stores = conflict.now.kind == Kind::write && conflict.before.kind == Kind::write;
  if (stores && !count_again(key_of(x, conflict, kind), x, conflict.address)) {
    Stores two{conflict, {}};
    std::memcpy(two.before, conflict.address, std::min(conflict.granule, sizeof two.before));
    unsettled().push_back(two);
    has_unsettled_stores = true;
  } else if (!stores) {
    collect(x, conflict, kind);
  }
}

void settle_stores(Executor& x) {
  std::vector<Stores>& stores = unsettled();
  for (const Stores& two : stores) {
    const bool same = std::memcmp(two.before, two.conflict.address,
                                  std::min(two.conflict.granule, sizeof two.before)) == 0;
    collect(
        x, two.conflict,
        same ? FindingKind::same_value_store : kind_of(two.conflict, remedy_of(x, two.conflict)));
  }
  stores.clear();
  has_unsettled_stores = false;
}

namespace {

// One access that is wrong by itself.
struct WrongAccess {
  FindingKind kind;
  Record now;
  const void* address;  // the first wrong byte
  size_t bytes;         // of the access
  bool ends = false;    // the launch cannot go on
};

Finding finding_at(const Executor& x, const WrongAccess& wrong) {
  Finding f;
  f.kind = wrong.kind;
  f.severity = severity_of(wrong.kind);
  f.kernel = x.grid.kernel;
  f.first = side_of_record(x, wrong.now);
  f.element = element_of(x, wrong.address, wrong.kind == FindingKind::out_of_bounds);
  f.bytes = wrong.bytes;
  f.message = where_of(x, f.first);
  return f;
}

// Adds a finding about one access, or ends the launch with it.
template <class Say>
void report_access(Executor& x, const WrongAccess& wrong, Say say) {
  const FindingKey key{wrong.kind, wrong.now.place.number(), 0, array_of(x, wrong.address)};
  const bool ends = wrong.ends || !goes_on(x);
  if (!ends && count_again(key, x, wrong.address)) {
    return;
  }
  Finding f = finding_at(x, wrong);
  f.message += say(f);
  if (ends) {
    end_with(x, key, std::move(f));
  }
  add_finding(key, x, wrong.address, std::move(f));
}

Record record_of(const Executor& x, const Access& access, Place place) {
  return {.epoch = 0,
          .block = static_cast<uint32_t>(x.block),
          .place = place,
          .thread = static_cast<uint16_t>(access.thread),
          .kind = access.kind,
          .used = true};
}

}  // namespace

void report_uninitialised(Executor& x, const Record& now, const char* address, size_t bytes) {
  report_access(x, {FindingKind::uninitialised_read, now, address, bytes}, [&](const Finding& f) {
    return text("read of uninitialised ", target_of(x, f.element, address), " at ", now.place);
  });
}

void report_misaligned(Executor& x, const void* address, size_t alignment, Place place) {
  const Record now = record_of(x, {address, alignment, Kind::read, x.current}, place);
  report_access(x, {FindingKind::misaligned, now, address, alignment}, [&](const Finding& f) {
    return text("access of ", target_of(x, f.element, address), " at ", place,
                " needs an address that is a multiple of ", alignment, ", and got one that is ",
                reinterpret_cast<uintptr_t>(address) % alignment, " beyond");
  });
}

// Bounds ----------------------------------------------------------------------------------------

bool is_static_memory(const void* address);

namespace {

std::string out_of_bounds_text(const Executor& x, const Finding& f, const void* address,
                               const Access& access, Place place) {
  const bool shared = in_arena(x, address);
  std::string what =
      f.element.array.empty() && shared
          ? text("shared memory at offset ", static_cast<const char*>(address) - x.shared, " of ",
                 x.grid.shared_bytes, " bytes")
          : target_of(x, f.element, address);
  return text(verb(access.kind, false), " out of bounds: ", what, " at ", place, " (", access.bytes,
              " bytes)");
}

void report_bounds(Executor& x, const Access& access, Place place, const void* address, bool ends) {
  report_access(
      x, {FindingKind::out_of_bounds, record_of(x, access, place), address, access.bytes, ends},
      [&](const Finding& f) { return out_of_bounds_text(x, f, address, access, place); });
}

bool writes(Kind kind) { return kind != Kind::read; }

Checked check_range(Executor& x, const Access& access, Place place, RangeState& state) {
  const auto at = reinterpret_cast<uintptr_t>(access.address);
  if (at < state.begin || at + access.bytes > state.end) {
    const uintptr_t first = at < state.begin || at >= state.end ? at : state.end;
    report_bounds(x, access, place, reinterpret_cast<const void*>(first), false);
    return Checked::wrong;
  }
  if (state.pitch_bytes > 0) {
    const auto in_row = static_cast<int64_t>(at - state.begin) % state.pitch_bytes;
    if (in_row + static_cast<int64_t>(access.bytes) > state.row_bytes) {
      const uintptr_t first =
          at + static_cast<uintptr_t>(std::max<int64_t>(state.row_bytes - in_row, 0));
      report_bounds(x, access, place, reinterpret_cast<const void*>(first), false);
      return Checked::wrong;
    }
  }
  if (writes(access.kind) && state.range.read_only) {
    state.kernel_wrote = true;
    report_access(
        x, {FindingKind::write_to_input, record_of(x, access, place), access.address, access.bytes},
        [&](const Finding& f) {
          return text(verb(access.kind, false), " ", f.element, " at ", place, ", and ",
                      f.element.array, " is an input");
        });
  }
  if (!state.written.empty()) {
    const bool reads = access.kind == Kind::read || access.kind == Kind::atomic;
    if (reads && !state.all_written(at, access.bytes)) {
      report_access(x,
                    {FindingKind::uninitialised_read, record_of(x, access, place), access.address,
                     access.bytes},
                    [&](const Finding& f) {
                      return text("reads ", f.element, " at ", place,
                                  ", which nothing has written");
                    });
    }
    if (writes(access.kind)) {
      state.mark(at, access.bytes, true);
    }
  }
  return state.range.read_only && !state.kernel_wrote ? Checked::no_race : Checked::right;
}

}  // namespace

Checked check_memory(Executor& x, const Access& access, Place place) {
  if (access.kind == Kind::copy_landed) {
    return Checked::right;  // compared when it was issued
  }
  if (in_arena(x, access.address)) {
    if (in_shared(x, access.address, access.bytes)) {
      return Checked::right;
    }
    const char* first = static_cast<const char*>(access.address);
    for (size_t i = 0; i < access.bytes && in_shared(x, first, 1); ++i) {
      ++first;
    }
    report_bounds(x, access, place, first, false);
    return Checked::wrong;
  }
  const auto at = reinterpret_cast<uintptr_t>(access.address);
  RangeState* state = recent_range;  // most accesses are to the array of the one before
  if (state == nullptr || at < state->low || at >= state->high) {
    if (range_table().empty() && !x.checks.only_named_memory) {
      return Checked::right;
    }
    state = find_range(access.address);
    recent_range = state;
  }
  if (state != nullptr) {
    return check_range(x, access, place, *state);
  }
  if (x.checks.only_named_memory && !is_static_memory(access.address)) {
    report_bounds(x, access, place, access.address, true);
  }
  return Checked::right;
}

void access_by_host(const Access& access, const void* instruction) {
  const RangeState* state = find_range(access.address);
  const auto at = reinterpret_cast<uintptr_t>(access.address);
  if (state == nullptr || state->range.host_visible || at < state->begin || at >= state->end) {
    return;
  }
  constexpr int kMostReports = 16;  // of one instruction
  static auto& reports = *new std::unordered_map<const void*, int>;
  if (++reports[instruction] > kMostReports) {
    return;
  }
  Finding finding;
  finding.kind = FindingKind::host_access;
  finding.severity = severity_of(finding.kind);
  finding.first.act = writes(access.kind) ? Act::write : Act::read;
  finding.first.line = line_of_instruction(instruction);
  finding.element = element_in(*state, access.address);
  finding.bytes = access.bytes;
  finding.message = text("code of the host ", verb(access.kind, false), " ", finding.element,
                         ", memory of the device; copy it by cudaMemcpy()");
  add_finding(finding);
}

}  // namespace binade::kernels::host::race

#endif
