// cooperative_groups.h for kernels in the lab: thread_block, tiles of a warp and coalesced groups.
// Groups larger than a block are missing.
#pragma once
#include <binade/lab/device/prelude.h>

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
namespace cooperative_groups {

inline unsigned rank_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

class thread_block {
 public:
  void sync(BINADE_SITE) const { __syncthreads(site); }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return rank_in_block(); }
  dim3 group_index() const { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  dim3 thread_index() const { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  dim3 group_dim() const { return blockDim; }
  dim3 dim_threads() const { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }
inline void sync(const thread_block& group, BINADE_SITE) { group.sync(site); }

// A subset of the lanes of a warp. `rank` is the index of the calling lane in the subset.
class lane_group {
 public:
  explicit lane_group(unsigned mask) : mask_(mask) {}

  void sync(BINADE_SITE) const { __syncwarp(mask_, site); }
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << lane()) - 1u)));
  }
  template <class T>
  T shfl(T value, int rank, BINADE_SITE) const {
    return __shfl_sync(mask_, value, lane_of(static_cast<unsigned>(rank) % size()), 32, site);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, BINADE_SITE) const {
    const unsigned to = thread_rank() + delta;
    return __shfl_sync(mask_, value, lane_of(to < size() ? to : thread_rank()), 32, site);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, BINADE_SITE) const {
    const unsigned rank = thread_rank();
    return __shfl_sync(mask_, value, lane_of(rank >= delta ? rank - delta : rank), 32, site);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits, BINADE_SITE) const {
    const unsigned to = thread_rank() ^ bits;
    return __shfl_sync(mask_, value, lane_of(to < size() ? to : thread_rank()), 32, site);
  }
  int any(int predicate, BINADE_SITE) const { return __any_sync(mask_, predicate, site); }
  int all(int predicate, BINADE_SITE) const { return __all_sync(mask_, predicate, site); }
  // Bit r is the vote of the lane with rank r.
  unsigned ballot(int predicate, BINADE_SITE) const {
    return by_rank(__ballot_sync(mask_, predicate, site));
  }
  template <class T>
  unsigned match_any(T value, BINADE_SITE) const {
    return by_rank(__match_any_sync(mask_, value, site));
  }
  unsigned lanes() const { return mask_; }

 private:
  static unsigned lane() { return rank_in_block() % 32; }
  int lane_of(unsigned rank) const {
    unsigned left = mask_;
    for (; rank > 0; --rank) {
      left &= left - 1;
    }
    return __builtin_ctz(left);
  }
  unsigned by_rank(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned left = mask_; left != 0; left &= left - 1, ++rank) {
      result |= (lanes >> __builtin_ctz(left) & 1u) << rank;
    }
    return result;
  }

  unsigned mask_;
};

template <unsigned kSize, class Parent = thread_block>
class thread_block_tile : public lane_group {
 public:
  static_assert(kSize >= 1 && kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "the lab has tiles of 1 to 32 threads");
  thread_block_tile() : lane_group(mask_of_tile()) {}
  unsigned meta_group_rank() const { return rank_in_block() / kSize; }
  unsigned meta_group_size() const {
    return (blockDim.x * blockDim.y * blockDim.z + kSize - 1) / kSize;
  }

 private:
  static unsigned mask_of_tile() {
    const unsigned first = rank_in_block() % 32 / kSize * kSize;
    return (kSize == 32 ? ~0u : (1u << kSize % 32) - 1u) << first & present();
  }
  // The lanes of the calling warp that exist in this block.
  static unsigned present() {
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    const unsigned lanes = threads - rank_in_block() / 32 * 32;
    return lanes >= 32 ? ~0u : (1u << lanes) - 1u;
  }
};
template <unsigned kSize, class Parent>
inline thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}

class coalesced_group : public lane_group {
 public:
  using lane_group::lane_group;
};
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }
template <class Group>
inline void sync(const Group& group, BINADE_SITE) {
  group.sync(site);
}

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};
// Combines the values of all lanes of the group in the order of their ranks.
template <class T, class Operator>
inline T reduce(const lane_group& group, T value, Operator, BINADE_SITE) {
  return binade::lab::gather<T>(
      group.lanes(), {value, [](T a, T b) { return static_cast<T>(Operator()(a, b)); }, T()},
      "reduce", site);
}

}  // namespace cooperative_groups
// NOLINTEND(readability-identifier-naming)
