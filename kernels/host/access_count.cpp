// Turns the accesses of a block into requests of warps.
#include <binade/kernels/host/race.h>

#if BINADE_HOST_RACE
#include <binade/kernels/host/access_count.h>
#include <binade/kernels/host/findings_internal.h>

#include <numeric>
#include <unordered_map>

namespace binade::kernels::host {

namespace race {
bool is_constant(const void* address);
}

namespace count {
namespace {

constexpr size_t kAccessKinds = 6;

// The executions of one instruction in this block so far.
struct Executions {
  Place place;
  AccessKind kind{};
  std::vector<uint32_t> count = std::vector<uint32_t>(kMaxThreads);  // by thread
  std::vector<Request> requests[kMaxWarps];
  bool used = false;
};

struct BlockExecutions {
  Place place;
  std::vector<uint32_t> count = std::vector<uint32_t>(kMaxThreads);  // by thread
};

// A thread's last access, as stored in the request.
struct Last {
  Place place;
  AccessKind kind{};
  uint32_t k = 0;
  uintptr_t begin = 0, end = 0;
};

struct BlockCounter {
  std::vector<Last> last = std::vector<Last>(kMaxThreads);
  std::vector<std::unique_ptr<Executions>> accesses;         // by place and kind
  std::vector<std::unique_ptr<BlockExecutions>> executions;  // by place
  std::unordered_map<uint64_t, bool> same_line;              // of two places
  std::unordered_map<uintptr_t, bool> constant_pages;        // tables of the program
};
BlockCounter& block_counter() {
  static auto& counter = *new BlockCounter;
  return counter;
}

Executions& executions_of(BlockCounter& counter, Place place, AccessKind kind) {
  const size_t index = place.number() * kAccessKinds + static_cast<size_t>(kind);
  if (counter.accesses.size() <= index) {
    counter.accesses.resize(index + 1);
  }
  auto& slot = counter.accesses[index];
  if (slot == nullptr) {
    slot = std::make_unique<Executions>();
    slot->place = place;
    slot->kind = kind;
  }
  slot->used = true;
  return *slot;
}

bool on_one_line(BlockCounter& counter, Place a, Place b) {
  const uint64_t pair = uint64_t{a.number()} << 32 | b.number();
  const auto found = counter.same_line.find(pair);
  if (found != counter.same_line.end()) {
    return found->second;
  }
  return counter.same_line[pair] = a.line() == b.line();
}

// The host compiler copies a struct of four floats as four floats. Adjacent accesses of one source
// line within 16 aligned bytes count as the one access that a GPU makes.
bool continues(BlockCounter& counter, const Last& last, Place place, AccessKind kind,
               uintptr_t address, size_t bytes) {
  constexpr uintptr_t kWidest = 16;
  return address == last.end && kind == last.kind && !(place == last.place) &&
         last.begin / kWidest == (address + bytes - 1) / kWidest &&
         place.instruction() != nullptr && last.place.instruction() != nullptr &&
         on_one_line(counter, last.place, place);
}

bool is_no_access(BlockCounter& counter, const void* address) {
  constexpr uintptr_t kPage = 4096;
  // Shuffles read an option of the executor.
  const auto option = static_cast<size_t>(static_cast<const char*>(address) -
                                          reinterpret_cast<const char*>(&options()));
  if (option < sizeof(Options)) {
    return true;
  }
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) / kPage;
  const auto found = counter.constant_pages.find(page);
  if (found != counter.constant_pages.end()) {
    return found->second;
  }
  return counter.constant_pages[page] = race::is_constant(address);
}

AccessKind kind_of(race::Kind kind, bool shared) {
  switch (kind) {
    case race::Kind::read: return shared ? AccessKind::shared_read : AccessKind::global_read;
    case race::Kind::atomic: return shared ? AccessKind::shared_atomic : AccessKind::global_atomic;
    case race::Kind::write:
    case race::Kind::copy_issued:
    case race::Kind::copy_landed: break;
  }
  return shared ? AccessKind::shared_write : AccessKind::global_write;
}

uint32_t present_lanes(const Executor& x, size_t warp) {
  return static_cast<uint32_t>(std::popcount(x.warps[warp].present));
}

}  // namespace

Counted& counted() {
  static auto& counted = *new Counted;
  return counted;
}

void access(const Executor& x, const race::Access& access, Place place) {
  if (access.kind == race::Kind::copy_landed) {
    return;  // counted when it was issued
  }
  BlockCounter& counter = block_counter();
  const bool shared = in_arena(x, access.address);
  if (!shared && is_no_access(counter, access.address)) {
    return;
  }
  const AccessKind kind = kind_of(access.kind, shared);
  const auto address = reinterpret_cast<uintptr_t>(access.address);
  if (!shared) {
    const bool atomic = access.kind == race::Kind::atomic;
    counted().touched.touch(address, access.bytes, atomic || access.kind == race::Kind::read,
                            access.kind != race::Kind::read);
  }
  const int lane = access.thread % 32;
  const auto warp = static_cast<size_t>(access.thread / 32);
  Last& last = counter.last[static_cast<size_t>(access.thread)];
  if (continues(counter, last, place, kind, address, access.bytes)) {
    executions_of(counter, last.place, kind).requests[warp][last.k].bytes[lane] +=
        static_cast<uint32_t>(access.bytes);
    last.end += access.bytes;
    return;
  }
  Executions& executions = executions_of(counter, place, kind);
  const uint32_t k = executions.count[static_cast<size_t>(access.thread)]++;
  auto& requests = executions.requests[warp];
  if (requests.size() <= k) {
    requests.resize(k + 1);
  }
  requests[k].lanes |= 1u << lane;
  requests[k].bytes[lane] = static_cast<uint32_t>(access.bytes);
  requests[k].address[lane] = address;
  last = {place, kind, k, address, address + access.bytes};
}

void basic_block(const Executor& x, Place place) {
  auto& all = block_counter().executions;
  if (all.size() <= place.number()) {
    all.resize(place.number() + 1);
  }
  auto& slot = all[place.number()];
  if (slot == nullptr) {
    slot = std::make_unique<BlockExecutions>();
    slot->place = place;
  }
  ++slot->count[static_cast<size_t>(x.current)];
}

namespace {

void end_executions(const Executor& x, BlockExecutions& executions, ExecutionRow& row) {
  for (size_t warp = 0; warp < static_cast<size_t>(x.warp_count); ++warp) {
    const auto begin = executions.count.begin() + static_cast<ptrdiff_t>(warp * 32);
    const uint32_t most = *std::max_element(begin, begin + 32);
    row.warps += most;
    row.possible_lanes += uint64_t{most} * present_lanes(x, warp);
    row.lanes += std::accumulate(begin, begin + 32, uint64_t{0});
  }
  std::fill(executions.count.begin(), executions.count.end(), 0);
}

}  // namespace

void end_block(const Executor& x) {
  BlockCounter& counter = block_counter();
  Counted& all = counted();
  LaunchRow& launch = all.launches[x.grid.kernel];
  launch.kernel = x.grid.kernel;
  launch.threads = std::max(launch.threads, static_cast<uint32_t>(x.thread_count));
  launch.shared_bytes = std::max(launch.shared_bytes, x.grid.shared_bytes + x.arrays_bytes);
  ++launch.blocks_run;
  for (const auto& slot : counter.accesses) {
    if (slot == nullptr || !slot->used) {
      continue;
    }
    auto& [place, totals] = all.accesses[{x.grid.kernel, slot->place.number(), slot->kind}];
    place = slot->place;
    for (size_t warp = 0; warp < static_cast<size_t>(x.warp_count); ++warp) {
      for (const Request& request : slot->requests[warp]) {
        totals.add(totals_of(request, slot->kind, present_lanes(x, warp)));
      }
      slot->requests[warp].clear();
    }
    std::fill(slot->count.begin(), slot->count.end(), 0);
    slot->used = false;
  }
  for (const auto& slot : counter.executions) {
    if (slot != nullptr) {
      auto& [place, row] = all.executions[{x.grid.kernel, slot->place.number()}];
      place = slot->place;
      end_executions(x, *slot, row);
    }
  }
  std::fill(counter.last.begin(), counter.last.end(), Last{});
  counter.constant_pages.clear();
}

void together(const Executor& x, const char* what, Site site, int lanes) {
  const std::string file = site.file == nullptr ? "?" : site.file;
  TogetherRow& row = counted().together[{x.grid.kernel, file, site.line, what}];
  row.warps += static_cast<uint64_t>((lanes + 31) / 32);
  row.lanes += static_cast<uint64_t>(lanes);
}

void begin_launch(const Executor& x) {
  LaunchRow& launch = counted().launches[x.grid.kernel];
  ++launch.launches;
  launch.blocks += uint64_t{x.grid.grid.x} * x.grid.grid.y * x.grid.grid.z;
}

}  // namespace count
}  // namespace binade::kernels::host

#endif
