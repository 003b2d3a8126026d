// Voting barriers and warp functions that the executor's primitives do not have, built from its
// collectives.
#pragma once
#include <binade/lab/device/launch.h>

#include <cstring>

namespace binade::lab {

// Counts the threads of the block whose vote is not zero. It is one barrier of the block; the
// counter belongs to the lab.
int count_block_votes(int vote, kernels::host::Site site);

template <class T>
struct GatherLane {
  T value;
  T (*combine)(T, T);
  T result;
};
// Combines the values of the lanes in the mask in lane order.
template <class T>
BINADE_LAB_QUIET void gather_lanes(void* const* lanes, uint32_t mask) {
  T total{};
  bool first = true;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const auto& lane = *static_cast<const GatherLane<T>*>(lanes[__builtin_ctz(left)]);
    total = first ? lane.value : lane.combine(total, lane.value);
    first = false;
  }
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    static_cast<GatherLane<T>*>(lanes[__builtin_ctz(left)])->result = total;
  }
}
template <class T>
BINADE_LAB_QUIET T gather(uint32_t mask, GatherLane<T> lane, const char* what,
                          kernels::host::Site site) {
  kernels::host::collective({mask, gather_lanes<T>, what, false}, &lane, site);
  return lane.result;
}

struct MatchLane {
  uint64_t value;
  uint32_t same;
};
inline void match_lanes(void* const* lanes, uint32_t mask) {
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    auto& lane = *static_cast<MatchLane*>(lanes[__builtin_ctz(left)]);
    lane.same = 0;
    for (uint32_t others = mask; others != 0; others &= others - 1) {
      const int other = __builtin_ctz(others);
      lane.same |= (static_cast<MatchLane*>(lanes[other])->value == lane.value ? 1u : 0u) << other;
    }
  }
}
template <class T>
BINADE_LAB_QUIET uint32_t match(uint32_t mask, T value, const char* what,
                                kernels::host::Site site) {
  MatchLane lane{0, 0};
  std::memcpy(&lane.value, &value, sizeof(T));
  kernels::host::collective({mask, match_lanes, what, false}, &lane, site);
  return lane.same;
}
// The lanes of the calling warp that have not ended.
uint32_t active_lanes();

}  // namespace binade::lab

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
inline int __syncthreads_count(int predicate, BINADE_SITE) {
  return binade::lab::count_block_votes(predicate, site);
}
inline int __syncthreads_or(int predicate, BINADE_SITE) {
  return binade::lab::count_block_votes(predicate, site) > 0;
}
inline int __syncthreads_and(int predicate, BINADE_SITE) {
  return binade::lab::count_block_votes(predicate == 0, site) == 0;
}
inline unsigned __activemask() { return binade::lab::active_lanes(); }
#define BINADE_LAB_REDUCE(name, T, expression)                                                    \
  inline T name(unsigned mask, T value, BINADE_SITE) {                                            \
    return binade::lab::gather<T>(mask, {value, [](T a, T b) { return expression; }, T()}, #name, \
                                  site);                                                          \
  }
BINADE_LAB_REDUCE(__reduce_add_sync, unsigned, a + b)
BINADE_LAB_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
BINADE_LAB_REDUCE(__reduce_max_sync, unsigned, a < b ? b : a)
BINADE_LAB_REDUCE(__reduce_add_sync, int, static_cast<int>(unsigned(a) + unsigned(b)))
BINADE_LAB_REDUCE(__reduce_min_sync, int, a < b ? a : b)
BINADE_LAB_REDUCE(__reduce_max_sync, int, a < b ? b : a)
BINADE_LAB_REDUCE(__reduce_and_sync, unsigned, a& b)
BINADE_LAB_REDUCE(__reduce_or_sync, unsigned, a | b)
BINADE_LAB_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef BINADE_LAB_REDUCE
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, BINADE_SITE) {
  return binade::lab::match(mask, value, "__match_any_sync", site);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, BINADE_SITE) {
  const unsigned same = binade::lab::match(mask, value, "__match_all_sync", site);
  *all = same == (mask & same) && same == (binade::lab::active_lanes() & mask);
  return *all ? same : 0;
}
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) {}
// NOLINTEND(readability-identifier-naming)
