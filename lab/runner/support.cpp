// Functions that translated kernels call (lab/device/launch.h), implemented on the executor.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/findings.h>
#include <binade/kernels/host/race.h>
#include <binade/lab/device/warp.h>
#include <binade/lab/runner/events_internal.h>

#include <map>

namespace binade::lab {
namespace host = kernels::host;

namespace {

constexpr size_t kStaticLimit = size_t{48} << 10;

std::vector<KernelShape>& shapes() {
  static auto& shapes = *new std::vector<KernelShape>;
  return shapes;
}
std::map<std::tuple<NumberEvent, const void*, const void*, int>, NumberNote>& notes() {
  static auto& notes =
      *new std::map<std::tuple<NumberEvent, const void*, const void*, int>, NumberNote>;
  return notes;
}
int64_t& shared_limit() {
  static int64_t limit = kStaticLimit;
  return limit;
}

NumberNote& note_at(NumberEvent event, float value, const void* instruction, host::Site site) {
  NumberNote& note = notes()[{event, instruction, site.file, site.line}];
  if (note.count++ == 0) {
    const host::Executor* x = host::current_executor;
    note.event = event;
    note.value = value;
    note.instruction = instruction;
    note.site = site;
    if (x != nullptr && x->current >= 0) {
      note.block = host::block_index(*x, x->block);
      note.thread = threadIdx;
    }
  }
  return note;
}

}  // namespace

namespace {

// The reason why CUDA rejects a launch; empty if it is valid.
std::string refusal_of(dim3 grid, dim3 block, size_t shared_bytes) {
  constexpr uint64_t kMostThreads = 1024, kMostDeep = 64, kMostBlocks = 65535;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMostThreads || block.z > kMostDeep) {
    return text("a block of ", block.x, " x ", block.y, " x ", block.z,
                " threads; expected 1 to 1024, at most 64 of them in z");
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > kMostBlocks ||
      grid.z > kMostBlocks) {
    return text("a grid of ", grid.x, " x ", grid.y, " x ", grid.z,
                " blocks; expected at least 1, and at most 65535 in y and z");
  }
  if (shared_bytes > static_cast<size_t>(shared_limit())) {
    return text(shared_bytes, " bytes of dynamic shared memory; more than ", shared_limit(),
                " need cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, "
                "bytes)");
  }
  return {};
}

}  // namespace

void Launch::start(const host::KernelThread& thread) const {
  const std::string refusal = refusal_of(grid_, block_, shared_bytes_);
  if (!refusal.empty()) {
    host::Finding finding;
    finding.kind = host::FindingKind::bad_argument;
    finding.severity = severity_of(finding.kind);
    finding.first.act = host::Act::run;
    finding.first.line = {file_, line_, "", 0};
    finding.message = text("CUDA refuses this launch of ", kernel_, ": ", refusal);
    host::add_finding(finding);
    set_last_error(cudaErrorInvalidConfiguration);
    return;
  }
  note_launch({kernel_, line_, grid_, block_, shared_bytes_});
  thread.run({kernel_, grid_, block_, shared_bytes_});
}

void note_launch(const KernelShape& shape) { shapes().push_back(shape); }
std::vector<KernelShape> take_launches() { return std::move(shapes()); }
void allow_shared(int64_t bytes) { shared_limit() = std::max(shared_limit(), bytes); }

void note_number(NumberEvent event, float value, host::Site site) {
  note_at(event, value, nullptr, site);
}
void note_number(NumberEvent event, float value) {
  note_at(event, value, static_cast<const char*>(__builtin_return_address(0)) - 1, {nullptr, 0});
}
std::vector<NumberNote> take_notes() {
  std::vector<NumberNote> list;
  for (const auto& [key, note] : notes()) {
    list.push_back(note);
  }
  notes().clear();
  return list;
}

void fail_assertion(const char* condition, const char* file, int line) {
  host::fail_thread({host::FindingKind::exception, {file, line}}, "assertion failed: ", condition);
}
void trap(host::Site site) { host::fail_thread({host::FindingKind::exception, site}, "__trap()"); }

namespace {

template <class Bits>
uint64_t apply(Bits* target, const AtomicOperands& operands) {
  Bits old = __atomic_load_n(target, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(target, &old,
                                      static_cast<Bits>(operands.step(old, operands.a, operands.b)),
                                      true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace

uint64_t atomic_apply(void* address, size_t bytes, const AtomicOperands& operands,
                      host::Site site) {
  host::Executor& x = host::executor();
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
    host::fail_thread({host::FindingKind::misaligned, site}, "atomic at ", site,
                      ": the address is not a multiple of ", bytes);
  }
  host::note_poll(x, site);
  host::check_address(address, bytes, "atomic", site);
  host::race::access(x, {address, bytes, host::race::Kind::atomic, x.current}, site);
  host::race::atomic_order(x, address);
  switch (bytes) {
    case 2: return apply(static_cast<uint16_t*>(address), operands);
    case 4: return apply(static_cast<uint32_t*>(address), operands);
    default: return apply(static_cast<uint64_t*>(address), operands);
  }
}

int count_block_votes(int vote, host::Site site) {
  // All threads of a block run on one OS thread. One may vote again before others read the count.
  static thread_local int counts[2] = {0, 0}, turn = 0, arrived = 0;
  const host::Executor& x = host::executor();
  if (arrived == 0) {
    counts[turn] = 0;
  }
  ++arrived;
  counts[turn] += vote != 0 ? 1 : 0;
  const int mine = turn;
  if (arrived == x.thread_count) {
    arrived = 0;
    turn = 1 - turn;
  }
  host::barrier(0, 0, site);
  return counts[mine];
}

uint32_t active_lanes() {
  const host::Executor& x = host::executor();
  const host::Warp& warp = x.warps[static_cast<size_t>(x.current / 32)];
  return warp.present & ~warp.exited;
}

}  // namespace binade::lab
