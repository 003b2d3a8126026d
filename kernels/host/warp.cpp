// Warp collectives: each lane waits with a pointer to its own arguments, and the last to arrive
// computes for all of them.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>

#include <cstring>

namespace binade::kernels::host {
namespace {

// The lanes to wait for: the existing lanes of the mask.
uint32_t lanes_of(const Executor& x, const Warp& warp, const Collective& call, Site site) {
  constexpr uint32_t kAll = ~0u;
  const uint32_t lanes = call.mask & warp.present;
  if ((call.mask >> x.current % 32 & 1) == 0) {
    fail_thread({FindingKind::warp_divergence, site}, call.what, " at ", site,
                ": the calling lane ", x.current % 32, " is not in its own mask ", Mask{call.mask});
  }
  if (lanes != call.mask && call.mask != kAll) {
    fail_thread({FindingKind::warp_divergence, site}, call.what, " at ", site, ": mask ",
                Mask{call.mask}, " names lanes beyond the block's ", x.thread_count, " threads");
  }
  if ((lanes & warp.exited) != 0) {
    fail_thread({FindingKind::warp_divergence, site}, call.what, " at ", site, ": mask ",
                Mask{call.mask}, " names lanes that ended, ", Mask{lanes & warp.exited});
  }
  return lanes;
}

// The rendezvous that this call joins, a new one if no lane has arrived yet.
Rendezvous& meet(Executor& x, Warp& warp, const Collective& call, Site site) {
  const int lane = x.current % 32;
  for (int i = 0; i < warp.rendezvous_count; ++i) {
    Rendezvous& other = warp.rendezvous[static_cast<size_t>(i)];
    if (other.mask == call.mask && other.exchange == call.exchange && same_call(other.site, site)) {
      return other;
    }
    // A lane that this one waits for is waiting for this one in another collective.
    const uint32_t both = other.arrived & call.mask;
    if (both != 0 && (other.mask >> lane & 1) != 0) {
      const int thread = (x.current & ~31) + std::countr_zero(both);
      fail_thread({FindingKind::warp_divergence, site, thread},
                  "warp collective mismatch: this lane is at ", call.what, " at ", site, " mask ",
                  Mask{call.mask}, "; ", Waiting{x, thread}, " mask ", Mask{other.mask},
                  other_path(other.site, site));
    }
  }
  Rendezvous& fresh = warp.rendezvous[static_cast<size_t>(warp.rendezvous_count++)];
  fresh = {call.mask, 0, call.exchange, site};
  return fresh;
}

}  // namespace

void collective(const Collective& call, void* io, Site site) {
  Executor& x = executor();
  const int first = x.current & ~31;
  Warp& warp = x.warps[static_cast<size_t>(first / 32)];
  Thread& self = current_thread(x);
  self.what = call.what;
  site.path = call_path(x, __builtin_frame_address(0));
  self.site = site;
  self.mask = call.mask;
  self.io = io;
  const uint32_t lanes = lanes_of(x, warp, call, site);
  Rendezvous& rendezvous = meet(x, warp, call, site);
  rendezvous.arrived |= 1u << x.current % 32;
  if (rendezvous.arrived != lanes) {
    self.state = ThreadState::at_collective;
    wait_until_ready(x);
    return;
  }
  rendezvous = warp.rendezvous[static_cast<size_t>(--warp.rendezvous_count)];
  void* ios[32];
  for_lanes(lanes, [&](int i) { ios[i] = x.threads[static_cast<size_t>(first + i)].io; });
  call.exchange(ios, lanes);
  race::count_together(x, call.what, site, std::popcount(lanes));
  x.stalled_steps = 0;
  if (call.orders_memory) {
    race::join_warp(x, lanes);
  }
  for_lanes(lanes,
            [&](int i) { x.threads[static_cast<size_t>(first + i)].state = ThreadState::ready; });
  warp.ready |= lanes;
  x.warps_ready |= 1u << first / 32;
}

void no_exchange(void* const*, uint32_t) {}

// The lane that `lane` reads from, as in PTX's shfl with segments of `width` lanes.
static int source_lane(const ShuffleLane& s, int lane) {
  const int begin = lane & ~(s.width - 1), end = begin + s.width;
  switch (s.mode) {
    case Shuffle::index: return begin + (s.argument & (s.width - 1));
    case Shuffle::up: return lane - s.argument < begin ? lane : lane - s.argument;
    case Shuffle::down: return lane + s.argument >= end ? lane : lane + s.argument;
    case Shuffle::exclusive_or: break;
  }
  return (lane ^ s.argument) >= end ? lane : lane ^ s.argument;
}

void shuffle_lanes(void* const* lanes, uint32_t mask) {
  for_lanes(mask, [&](int lane) {
    const auto& s = *static_cast<const ShuffleLane*>(lanes[lane]);
    if (s.width < 1 || s.width > 32 || (s.width & (s.width - 1)) != 0) {
      fail_thread({FindingKind::bad_argument, current_thread(executor()).site}, "shuffle of width ",
                  s.width, "; expected a power of two up to 32");
    }
    const int source = source_lane(s, lane);
    if (source < 0 || source > 31 || (mask >> source & 1) == 0) {
      const Site site = current_thread(executor()).site;
      fail_thread({FindingKind::warp_divergence, site}, "shuffle at ", site, ": lane ", lane,
                  " reads lane ", source, ", which does not take part (mask ", Mask{mask}, ")");
    }
    const void* value = static_cast<const ShuffleLane*>(lanes[source])->value;
    std::memcpy(s.result, value, static_cast<size_t>(s.size));
  });
}

void ballot_lanes(void* const* lanes, uint32_t mask) {
  uint32_t ballot = 0;
  for_lanes(mask, [&](int i) { ballot |= static_cast<VoteLane*>(lanes[i])->value << i; });
  for_lanes(mask, [&](int i) { static_cast<VoteLane*>(lanes[i])->result = ballot; });
}

}  // namespace binade::kernels::host
