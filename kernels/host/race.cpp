// The race detector: compares each access with the earlier ones in shadow memory.
#include <binade/kernels/host/race.h>

#if BINADE_HOST_RACE
#include <binade/kernels/host/access_count.h>
#include <binade/kernels/host/findings_internal.h>
#include <binade/kernels/host/named_ranges.h>
#include <binade/kernels/host/race_clocks.h>
#include <binade/kernels/host/race_shadow.h>

#include <mutex>

namespace binade::kernels::host::race {
namespace {

// A launch, for the last writer of an element.
struct PastLaunch {
  uint32_t generation;
  const char* kernel;
  dim3 grid, block;
};

struct Detector {
  std::mutex one_at_a_time;
  Clocks clocks;
  Shadow shadow;
  uint32_t generation = 0, grid_generation = 0, block_generation = 0;
  // threadIdx etc.: thread_local variables of the executor.
  const char* builtins = nullptr;
  size_t builtins_bytes = 0;
  std::vector<int> group;
  std::vector<PastLaunch> launches;  // while findings are collected
};
Detector& detector() {
  static auto& detector = *new Detector;
  return detector;
}

// An access being checked against the cells.
struct Current {
  Executor& x;
  Detector& d;
  const Access& access;
  Record record;
  bool shared;
  uint32_t generation;  // cells of another generation are empty
  bool waited = false;  // for a write of memory that nothing has written
  const char* granule = nullptr;
  size_t granule_bytes = 0;
};

inline bool ordered(const Current& now, const Record& before) {
  if (!before.used) {
    return true;
  }
  const int thread = now.record.thread;
  if (before.kind == Kind::copy_issued) {  // in flight, also for the thread that issued it
    return before.block == now.record.block && before.thread == thread &&
           (now.record.kind == Kind::copy_landed || now.record.kind == Kind::copy_issued);
  }
  return before.block == now.record.block
             ? now.d.clocks.seen(thread, before.thread, before.epoch)
             : now.d.clocks.seen_in_logs(thread, before.block, before.thread, before.epoch);
}

void note_read(Current& now, Cell& cell) {
  Record& first = cell.reads[0];
  Record& second = cell.reads[1];
  const Record& self = now.record;
  // A read that is ordered before this one can be dropped: any access that comes after this one
  // also comes after it.
  if (!first.used || (first.block == self.block && first.thread == self.thread) ||
      ordered(now, first)) {
    first = self;
  } else if (!second.used || (second.block == self.block && second.thread == self.thread) ||
             (first.block == second.block && first.thread / 32 == second.thread / 32) ||
             ordered(now, second)) {
    second = self;
  }
}

[[gnu::cold, gnu::noinline]] void conflict(const Current& now, const Cell& cell,
                                           const Record& before, const char* order) {
  const Record& self = now.record;
  // Both threads update the value if both read it at the same place.
  const Place other_read = before.kind == Kind::read ? before.place : cell.updated;
  const auto read_there = [&](const Record& read) {
    return read.used && read.thread == self.thread && read.block == self.block &&
           read.place == other_read;
  };
  const bool updates =
      other_read.known() &&
      (self.kind == Kind::read ? self.place == other_read
                               : read_there(cell.reads[0]) || read_there(cell.reads[1]));
  const bool unfenced =
      self.kind == Kind::read && before.kind == Kind::write && before.block != self.block &&
      now.d.clocks.seen_after_fence(self.thread, before.block, before.thread, before.epoch);
  report(now.x, {self, before, order, now.granule, now.granule_bytes, now.access.bytes, now.shared,
                 updates, unfenced});
}

// False if the granule is shared memory that nothing has written yet.
bool visit(Current& now, Cell& cell) {
  const Kind kind = now.record.kind;
  if (cell.generation != now.generation) {
    cell.generation = now.generation;
    cell.write.used = cell.reads[0].used = cell.reads[1].used = false;
    cell.updated = {};
  }
  if (!cell.write.used && now.shared && (kind == Kind::read || kind == Kind::atomic)) {
    if (!now.waited) {
      return false;
    }
    report_uninitialised(now.x, now.record, now.granule, now.access.bytes);
  }
  const bool both_atomic = kind == Kind::atomic && cell.write.kind == Kind::atomic;
  if (!both_atomic && !ordered(now, cell.write)) {
    conflict(now, cell, cell.write, kind == Kind::read ? "read after write" : "write after write");
  }
  if (kind == Kind::read) {
    note_read(now, cell);
    return true;
  }
  Place updated;
  for (Record& read : cell.reads) {
    if (read.used && read.thread == now.record.thread && read.block == now.record.block) {
      updated = read.place;
    }
    if (!ordered(now, read)) {
      conflict(now, cell, read, "write after read");
    }
  }
  cell.reads[0].used = cell.reads[1].used = false;
  cell.updated = updated;
  cell.write = now.record;
  cell.write_generation = now.d.grid_generation;
  return true;
}

// False if a part of it is shared memory that nothing has written yet.
bool visit_range(Current& now) {
  auto address = reinterpret_cast<uintptr_t>(now.access.address);
  for (size_t left = now.access.bytes; left > 0;) {
    Page& page = now.d.shadow.page(address / Page::kBytes);
    const size_t offset = address % Page::kBytes;
    const size_t bytes = std::min(left, Page::kBytes - offset);
    if (((offset | bytes) & ((size_t{1} << page.shift) - 1)) != 0) {
      page.refine((offset | bytes) % 2 == 0 ? 1 : 0);
    }
    now.granule_bytes = size_t{1} << page.shift;
    now.granule = reinterpret_cast<const char*>(address);
    Cell* const end = page.cells.get() + ((offset + bytes) >> page.shift);
    for (Cell* cell = page.cells.get() + (offset >> page.shift); cell != end; ++cell) {
      if (!visit(now, *cell)) {
        return false;
      }
      now.granule += now.granule_bytes;
    }
    address += bytes;
    left -= bytes;
  }
  return true;
}

// A thread that reads shared memory before anything was written to it waits until no other thread
// can run. If one of them has written it by then, a barrier is missing; else it is uninitialised.
[[gnu::cold, gnu::noinline]] void wait_for_write(Executor& x) {
  current_thread(x).state = ThreadState::parked;
  x.parked.push_back(x.current);
  x.quiet = false;
  wait_until_ready(x);
  x.quiet = true;
}

void access_at(Executor& x, Detector& d, const Access& access, Place place) {
  if (has_unsettled_stores) {
    settle_stores(x);
  }
  const Checked checked = check_memory(x, access, place);
  if (checked == Checked::wrong) {
    return;
  }
  if (x.options.count_accesses) {
    count::access(x, access, place);
  }
  if (checked == Checked::no_race) {
    return;
  }
  const bool shared = in_arena(x, access.address);
  Current now{x,
              d,
              access,
              {.epoch = d.clocks.epoch(access.thread),
               .block = static_cast<uint32_t>(x.block),
               .place = place,
               .thread = static_cast<uint16_t>(access.thread),
               .kind = access.kind,
               .used = true},
              shared,
              shared ? d.block_generation : d.grid_generation};
  if (!visit_range(now)) {
    wait_for_write(x);
    now.waited = true;
    visit_range(now);
  }
}

}  // namespace

GridLock::GridLock() { detector().one_at_a_time.lock(); }
GridLock::~GridLock() { detector().one_at_a_time.unlock(); }

void begin_grid(Executor& x) {
  Detector& d = detector();
  const char* builtins[] = {
      reinterpret_cast<const char*>(&threadIdx), reinterpret_cast<const char*>(&blockIdx),
      reinterpret_cast<const char*>(&blockDim), reinterpret_cast<const char*>(&gridDim)};
  const auto [low, high] = std::minmax_element(std::begin(builtins), std::end(builtins));
  d.builtins = *low;
  d.builtins_bytes = static_cast<size_t>(*high - *low) + sizeof(uint3);
  d.grid_generation = ++d.generation;
  d.clocks.begin_grid();
  if (x.options.count_accesses) {
    count::begin_launch(x);
  }
  if (x.checks.collect_findings) {
    d.launches.push_back({d.grid_generation, x.grid.kernel, x.grid.grid, x.grid.block});
  } else {
    d.launches.clear();
  }
}
void end_grid(Executor&) {}

void begin_block(Executor& x) {
  Detector& d = detector();
  d.block_generation = ++d.generation;
  d.clocks.begin_block(x.thread_count, static_cast<uint32_t>(x.block));
}
void count_together(const Executor& x, const char* what, Site site, int lanes) {
  if (x.options.count_accesses) {
    count::together(x, what, site, lanes);
  }
}

void end_block(Executor& x) {
  if (has_unsettled_stores) {
    settle_stores(x);
  }
  if (x.options.count_accesses) {
    count::end_block(x);
  }
}

void access(Executor& x, const Access& access, Site site) {
  if (access.bytes > 0) {
    count_step(x);
    const Quiet quiet(x);
    x.last_address = access.address;
    access_at(x, detector(), access, Place::of(site));
  }
}

void access_by_instruction(Executor& x, const Access& access, const void* instruction) {
  Detector& d = detector();
  const auto* address = static_cast<const char*>(access.address);
  if (x.fibers.contains(address) || static_cast<size_t>(address - d.builtins) < d.builtins_bytes ||
      static_cast<size_t>(address - static_cast<const char*>(x.context)) < x.context_bytes) {
    return;
  }
  x.last_address = address;
  access_at(x, d, access, Place::of(instruction));
}

void join_barrier(Executor& x, int id) {
  Detector& d = detector();
  if (id == 0) {
    d.clocks.join_all();
    return;
  }
  d.group.clear();
  for (int i = 0; i < x.thread_count; ++i) {
    const Thread& thread = x.threads[static_cast<size_t>(i)];
    if (i == x.current || (thread.state == ThreadState::at_barrier && thread.barrier == id)) {
      d.group.push_back(i);
    }
  }
  d.clocks.join(d.group);
}

void join_warp(Executor& x, uint32_t lanes) {
  Detector& d = detector();
  d.group.clear();
  for_lanes(lanes, [&](int lane) { d.group.push_back((x.current & ~31) + lane); });
  d.clocks.join(d.group);
}

void fence(Executor& x) { detector().clocks.fence(x.current); }

void atomic_order(Executor& x, const void* address) {
  detector().clocks.atomic(x.current, reinterpret_cast<uintptr_t>(address),
                           in_shared(x, address, 1));
}

}  // namespace binade::kernels::host::race

namespace binade::kernels::host {

LastWriter last_writer(const void* address) {
  race::Detector& d = race::detector();
  const race::Cell* cell = d.shadow.find(address);
  LastWriter last;
  if (cell == nullptr || cell->write_generation == 0) {
    return last;
  }
  last.side.act = cell->write.kind == race::Kind::atomic ? Act::atomic : Act::write;
  last.side.line = cell->write.place.line();
  for (const race::PastLaunch& launch : d.launches) {
    if (launch.generation == cell->write_generation) {
      const uint32_t block = cell->write.block, thread = cell->write.thread;
      const dim3 g = launch.grid, b = launch.block;
      last.kernel = launch.kernel;
      last.side.block = {block % g.x, block / g.x % g.y, block / g.x / g.y};
      last.side.thread = {thread % b.x, thread / b.x % b.y, thread / b.x / b.y};
      last.side.warp = static_cast<int>(thread / 32);
      last.side.lane = static_cast<int>(thread % 32);
    }
  }
  return last;
}

}  // namespace binade::kernels::host

#endif
