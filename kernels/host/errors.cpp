// Error messages of the executor for kernels that break a rule.
#include <binade/kernels/host/findings_internal.h>
#include <binade/kernels/host/source_line.h>

#include <cstdio>
#if BINADE_HOST_ASAN
#include <sanitizer/asan_interface.h>
extern "C" void __asan_describe_address(void* address);
#endif

namespace binade::kernels::host {
namespace {

constexpr ptrdiff_t kMostStack = ptrdiff_t{1} << 20;  // more than a fiber has

}  // namespace

std::string to_string(Index index) {
  return text("(", index.value.x, ",", index.value.y, ",", index.value.z, ")");
}
std::string to_string(Site site) {
  return text(site.file != nullptr ? site.file : "?", ":", site.line);
}
std::string to_string(const Waiting& waiting) {
  const Thread& thread = waiting.x.threads[static_cast<size_t>(waiting.thread)];
  std::string where = text("thread ", Index{thread.index}, " (warp ", waiting.thread / 32, " lane ",
                           waiting.thread % 32, ") at ", thread.what, " at ", thread.site);
  if (thread.state == ThreadState::at_barrier && thread.barrier != 0) {
    where += text(" (barrier ", thread.barrier, ")");
  }
  return where;
}
std::string to_string(Mask mask) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "0x%08x", mask.value);
  return digits;
}

uint64_t call_path(const Executor& x, const void* frame) {
  uint64_t path = 0;
#if defined(__x86_64__) || defined(__aarch64__)
  // A frame begins with the caller's frame and the return address. A function without a frame
  // pointer is skipped; a value that is no frame further up the stack ends the walk.
  const auto* base = static_cast<const char*>(x.threads[static_cast<size_t>(x.current)].base);
  const auto* at = static_cast<const char*>(frame);
  while (at < base && base - at < kMostStack && reinterpret_cast<uintptr_t>(at) % 16 == 0) {
    const auto* words = reinterpret_cast<const uintptr_t*>(at);
    path = (path ^ words[1]) * 0x9e3779b97f4a7c15u;
    const auto* caller = reinterpret_cast<const char*>(words[0]);  // NOLINT
    if (caller <= at) {
      break;
    }
    at = caller;
  }
#else
  static_cast<void>(x);
  static_cast<void>(frame);
#endif
  return path;
}

const char* other_path(const Site& a, const Site& b) {
  return a.line == b.line && a.file == b.file ? ", reached by another call" : "";
}

uint3 block_index(const Executor& x, uint64_t block) {
  const dim3 grid = x.grid.grid;
  return {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
          static_cast<unsigned>(block / grid.x / grid.y)};
}

// Parts of findings -----------------------------------------------------------------------------

FindingLine line_of(Site site) {
  return site.file == nullptr ? FindingLine{} : FindingLine{site.file, site.line, "", 0};
}
FindingLine line_of_instruction(const void* instruction) {
  return instruction == nullptr ? FindingLine{} : source_line(instruction);
}

std::string where_of(const Executor& x) {
  return text("kernel ", x.grid.kernel, ", block ", Index{block_index(x, x.block)}, ", thread ",
              Index{x.threads[static_cast<size_t>(x.current)].index}, ": ");
}

FindingSide side_of(const Executor& x, int thread, uint64_t block, Act act) {
  const Thread& t = x.threads[static_cast<size_t>(thread)];
  const uint3 b = block_index(x, block);
  FindingSide side;
  side.act = act;
  side.block = {b.x, b.y, b.z};
  side.thread = {t.index.x, t.index.y, t.index.z};
  side.warp = thread / 32;
  side.lane = thread % 32;
  side.barriers = block == x.block ? t.barriers : 0;
  return side;
}

Finding finding_here(const Executor& x, FindingKind kind, Site site, Act act) {
  Finding finding;
  finding.kind = kind;
  finding.severity = severity_of(kind);
  finding.kernel = x.grid.kernel;
  finding.first = side_of(x, x.current, x.block, act);
  finding.first.line = line_of(site);
  return finding;
}

namespace {

// A thread that has ended, or waits where it is.
FindingSide other_side(const Executor& x, int thread) {
  const Thread& t = x.threads[static_cast<size_t>(thread)];
  const bool ended = t.state == ThreadState::done;
  FindingSide side = side_of(x, thread, x.block,
                             ended                                   ? Act::end
                             : t.state == ThreadState::at_barrier    ? Act::barrier
                             : t.state == ThreadState::at_collective ? Act::collective
                                                                     : Act::run);
  side.line = ended ? line_of_instruction(t.last) : line_of(t.site);
  return side;
}

Act act_of(FindingKind kind, bool at_site) {
  switch (kind) {
    case FindingKind::barrier_divergence: return at_site ? Act::barrier : Act::end;
    case FindingKind::warp_divergence: return at_site ? Act::collective : Act::end;
    default: return Act::run;
  }
}

}  // namespace

// Ending a launch -------------------------------------------------------------------------------

void die_with(Executor& x, Fiber& self, const FindingKey& key, Finding finding) {
  {
    Finding own = std::move(finding);
    own.ended = true;
    std::string error = own.message;
    add_finding(key, x, nullptr, std::move(own));
    x.error.swap(error);
  }
  x.failed = true;
  switch_fiber(self, x.main, true);
  __builtin_unreachable();
}

void die(Executor& x, Fiber& self, const Fault& fault, std::string message) {
  Finding finding =
      finding_here(x, fault.kind, fault.site, act_of(fault.kind, fault.site.line > 0));
  if (fault.site.line == 0) {
    finding.first.line = line_of_instruction(current_thread(x).last);
  }
  if (fault.other >= 0) {
    finding.second = other_side(x, fault.other);
  }
  finding.message = where_of(x);
  finding.message += message;
  std::string().swap(message);
  FindingKey key{fault.kind, reinterpret_cast<uint64_t>(fault.site.file) +
                                 static_cast<uint64_t>(fault.site.line)};
  key.second = x.launch;  // such a group is found by its text
  die_with(x, self, key, std::move(finding));
}

void fail_kernel(const Fault& fault, std::string message) {
  Executor& x = executor();
  die(x, *current_thread(x).fiber, fault, std::move(message));
}

void deadlock(Executor& x, Fiber& self) {
  x.quiet = true;
  constexpr int kShown = 6;
  std::string message = "deadlock: no thread of the block can run";
  int shown = 0;
  const Thread* last = nullptr;  // the last one listed
  int other = -1;
  for (int i = 0; i < x.thread_count && shown < kShown; ++i) {
    const Thread& thread = x.threads[static_cast<size_t>(i)];
    const bool same = last != nullptr && thread.site.file == last->site.file &&
                      thread.site.line == last->site.line && thread.barrier == last->barrier;
    if (thread.state != ThreadState::done && !same) {
      message += text("\n    waits: ", Waiting{x, i});
      last = &thread;
      ++shown;
      other = i != x.current && other < 0 ? i : other;
    }
  }
  if (x.exited > 0) {
    message += text("\n    ended: ", x.exited, " threads");
  }
  die(x, self, {FindingKind::deadlock, current_thread(x).site, other}, std::move(message));
}

void check_address([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes,
                   [[maybe_unused]] const char* what, [[maybe_unused]] Site site) {
#if BINADE_HOST_ASAN
  void* bad = __asan_region_is_poisoned(const_cast<void*>(p), bytes);
  if (bad != nullptr) {
    __asan_describe_address(bad);  // prints which allocation it is near
    const auto offset = static_cast<const char*>(bad) - static_cast<const char*>(p);
    fail_thread({FindingKind::out_of_bounds, site}, what, " at ", site, ": byte ", offset, " of ",
                bytes, " is not valid memory");
  }
#endif
}

}  // namespace binade::kernels::host
