// Shadow memory of the race detector: the last write and two reads of each granule of memory.
#include <binade/kernels/host/race.h>

#if BINADE_HOST_RACE
#include <binade/kernels/host/access_count.h>
#include <binade/kernels/host/race_clocks.h>
#include <binade/kernels/host/source_line.h>

#include <mutex>
#include <unordered_map>

namespace binade::kernels::host::race {
namespace {

// The place of an access in the source: an instruction of this program, or a Site.
class Place {
 public:
  Place() = default;
  static Place of(const void* instruction) {
    Place place;
    place.code_ = static_cast<uint32_t>(static_cast<const char*>(instruction) - anchor()) & kOffset;
    return place;
  }
  static Place of(Site site) {
    auto& known = sites();
    const auto same = [&](Site s) { return s.line == site.line && s.file == site.file; };
    auto found = std::find_if(known.rbegin(), known.rend(), same);
    if (found == known.rend()) {
      known.push_back(site);
      found = known.rbegin();
    }
    Place place;
    place.code_ = kSite | static_cast<uint32_t>(known.rend() - found - 1);
    return place;
  }

 private:
  friend std::string to_string(Place place);
  static constexpr uint32_t kSite = 1u << 31, kOffset = kSite - 1;
  static const char* anchor() { return reinterpret_cast<const char*>(&run_threads); }
  static std::vector<Site>& sites() {
    static auto& sites = *new std::vector<Site>;
    return sites;
  }

  uint32_t code_ = 0;
};

std::string to_string(Place place) {
  if ((place.code_ & Place::kSite) != 0) {
    return text(Place::sites()[place.code_ & Place::kOffset]);
  }
  const auto offset = static_cast<int32_t>(place.code_ << 1) >> 1;  // 31 bits, signed
  const SourceLine& line = source_line(Place::anchor() + offset);
  return line.inner == line.kernel ? line.inner : text(line.inner, " from ", line.kernel);
}

struct Record {
  uint32_t epoch = 0;
  uint32_t block = 0;
  Place place;
  uint16_t thread = 0;
  Kind kind = Kind::read;
  bool used = false;
};

struct Cell {
  uint32_t generation = 0;  // of the grid, or of the block for shared memory; other values: empty
  Record write, reads[2];
};

// The cells of some memory: one per 1 << `shift` bytes; 4 bytes until a smaller access comes.
struct Page {
  static constexpr size_t kBytes = 1024;
  unsigned shift = 2;
  std::unique_ptr<Cell[]> cells = std::make_unique<Cell[]>(kBytes >> 2);

  void refine(unsigned smaller) {
    auto finer = std::make_unique<Cell[]>(kBytes >> smaller);
    for (size_t i = 0; i < kBytes >> smaller; ++i) {
      finer[i] = cells[i >> (shift - smaller)];
    }
    cells.swap(finer);
    shift = smaller;
  }
};

class Shadow {
 public:
  Page& page(uintptr_t number) {
    auto& slot = recent_[number % kRecent];
    if (slot.page == nullptr || slot.number != number) {
      auto& page = pages_[number];
      if (page == nullptr) {
        page = std::make_unique<Page>();
      }
      slot = {number, page.get()};
    }
    return *slot.page;
  }

 private:
  static constexpr size_t kRecent = 1024;
  struct Recent {
    uintptr_t number = 0;
    Page* page = nullptr;
  };
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  std::vector<Recent> recent_ = std::vector<Recent>(kRecent);
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

const char* verb(Kind kind, bool past) {
  switch (kind) {
    case Kind::read: return "read";
    case Kind::atomic: return past ? "changed it by an atomic" : "changes it by an atomic";
    case Kind::copy_issued: return past ? "began a cp.async to it" : "begins a cp.async to it";
    case Kind::write:
    case Kind::copy_landed: break;
  }
  return past ? "wrote" : "writes";
}

struct ThreadIndex {
  const Executor& x;
  int thread;
};
std::string to_string(ThreadIndex t) {
  return text(Index{t.x.threads[static_cast<size_t>(t.thread)].index});
}
struct Target {
  const Current& now;
};
std::string to_string(Target target) {
  const auto* address = static_cast<const char*>(target.now.access.address);
  return target.now.shared ? text("shared memory at offset ", address - target.now.x.shared)
                           : text("global memory at ", reinterpret_cast<uintptr_t>(address));
}

[[noreturn, gnu::cold, gnu::noinline]] void report(const Current& now, const Record& before,
                                                   const char* what) {
  const bool same_block = before.block == now.record.block;
  const uint3 block = block_index(now.x, before.block);
  const char* hint = "";
  if (before.kind == Kind::copy_issued) {
    hint = ", which its thread has not waited for";
  } else if (!same_block) {
    hint = "; only __threadfence(), an atomic, an atomic and __threadfence() order blocks";
  }
  if (same_block) {
    fail_thread("data race (", what, ") on ", Target{now}, ": this thread ",
                now.record.kind == Kind::read ? "reads" : verb(now.record.kind, false), " at ",
                now.record.place, " (", now.access.bytes, " bytes); thread ",
                ThreadIndex{now.x, before.thread}, " ", verb(before.kind, true), " at ",
                before.place, hint);
  }
  fail_thread("data race (", what, ") on ", Target{now}, ": this thread ",
              now.record.kind == Kind::read ? "reads" : verb(now.record.kind, false), " at ",
              now.record.place, " (", now.access.bytes, " bytes); thread ",
              ThreadIndex{now.x, before.thread}, " of block ", Index{block}, " ",
              verb(before.kind, true), " at ", before.place, hint);
}

void note_read(Current& now, Cell& cell) {
  Record& first = cell.reads[0];
  Record& second = cell.reads[1];
  const Record& self = now.record;
  // A read that is ordered before this one can be dropped: whatever follows this one follows it
  // too.
  if (!first.used || (first.block == self.block && first.thread == self.thread) ||
      ordered(now, first)) {
    first = self;
  } else if (!second.used || (second.block == self.block && second.thread == self.thread) ||
             (first.block == second.block && first.thread / 32 == second.thread / 32) ||
             ordered(now, second)) {
    second = self;
  }
}

void visit(Current& now, Cell& cell) {
  const Kind kind = now.record.kind;
  if (cell.generation != now.generation) {
    cell.generation = now.generation;
    cell.write.used = cell.reads[0].used = cell.reads[1].used = false;
  }
  if (!cell.write.used && now.shared && (kind == Kind::read || kind == Kind::atomic)) {
    fail_thread("read of uninitialised ", Target{now}, " at ", now.record.place);
  }
  const bool both_atomic = kind == Kind::atomic && cell.write.kind == Kind::atomic;
  if (!both_atomic && !ordered(now, cell.write)) {
    report(now, cell.write, kind == Kind::read ? "read after write" : "write after write");
  }
  if (kind == Kind::read) {
    note_read(now, cell);
    return;
  }
  for (Record& read : cell.reads) {
    if (!ordered(now, read)) {
      report(now, read, "write after read");
    }
    read.used = false;
  }
  cell.write = now.record;
}

void visit_range(Current& now) {
  auto address = reinterpret_cast<uintptr_t>(now.access.address);
  for (size_t left = now.access.bytes; left > 0;) {
    Page& page = now.d.shadow.page(address / Page::kBytes);
    const size_t offset = address % Page::kBytes;
    const size_t bytes = std::min(left, Page::kBytes - offset);
    if (((offset | bytes) & ((size_t{1} << page.shift) - 1)) != 0) {
      page.refine((offset | bytes) % 2 == 0 ? 1 : 0);
    }
    Cell* const end = page.cells.get() + ((offset + bytes) >> page.shift);
    for (Cell* cell = page.cells.get() + (offset >> page.shift); cell != end; ++cell) {
      visit(now, *cell);
    }
    address += bytes;
    left -= bytes;
  }
}

void access_at(Executor& x, Detector& d, const Access& access, Place place) {
  const auto* address = static_cast<const char*>(access.address);
  const bool shared = static_cast<size_t>(address - x.shared) < kMaxShared;
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
  visit_range(now);
}

}  // namespace

GridLock::GridLock() { detector().one_at_a_time.lock(); }
GridLock::~GridLock() { detector().one_at_a_time.unlock(); }

void begin_grid(Executor&) {
  Detector& d = detector();
  const char* builtins[] = {
      reinterpret_cast<const char*>(&threadIdx), reinterpret_cast<const char*>(&blockIdx),
      reinterpret_cast<const char*>(&blockDim), reinterpret_cast<const char*>(&gridDim)};
  const auto [low, high] = std::minmax_element(std::begin(builtins), std::end(builtins));
  d.builtins = *low;
  d.builtins_bytes = static_cast<size_t>(*high - *low) + sizeof(uint3);
  d.grid_generation = ++d.generation;
  d.clocks.begin_grid();
}
void end_grid(Executor&) {}

void begin_block(Executor& x) {
  Detector& d = detector();
  d.block_generation = ++d.generation;
  d.clocks.begin_block(x.thread_count, static_cast<uint32_t>(x.block));
}
void end_block(Executor& x) {
  if (x.options.count_accesses) {
    count::end_block(x);
  }
}

void access(Executor& x, const Access& access, Site site) {
  if (x.options.count_accesses) {
    count::access(x, access, site);
  }
  access_at(x, detector(), access, Place::of(site));
}

void access_by_instruction(Executor& x, const Access& access, const void* instruction) {
  Detector& d = detector();
  const auto* address = static_cast<const char*>(access.address);
  if (x.fibers.contains(address) || static_cast<size_t>(address - d.builtins) < d.builtins_bytes) {
    return;
  }
  if (x.options.count_accesses) {
    count::access(x, access, instruction);
  }
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

#endif
