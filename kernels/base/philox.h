// Philox4x32-10: counter-based random numbers (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). Stateless: the numbers at (key, counter) are the same on every device, at any
// thread count and in any order.
#pragma once
#include <array>
#include <cstdint>

namespace binade::philox {

using Block = std::array<uint32_t, 4>;

constexpr Block generate(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// Uniform in [0, 1), 24 bits: exact in f32.
constexpr float uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Uniform in (0, 1]: safe for a logarithm.
constexpr float uniform_positive(uint32_t bits) {
  return static_cast<float>((bits >> 8) + 1) * 0x1p-24f;
}

// The sequence of numbers of one (seed, stream), for a loader worker or a shuffle.
class Stream {
 public:
  constexpr Stream(uint64_t seed, uint64_t stream, uint64_t offset = 0)
      : seed_(seed), stream_(stream), index_(offset) {}

  constexpr uint32_t next() {
    if (index_ / 4 != block_index_) {
      block_index_ = index_ / 4;
      block_ = generate(seed_, block_index_, stream_);
    }
    return block_[index_++ % 4];
  }
  // A new sequence for part i of the work. Its key is drawn from this sequence at its present
  // position; this sequence does not advance.
  constexpr Stream part(uint64_t i) const {
    constexpr uint64_t kPartKey = 0x5041'5254'5354'524D;
    const Block key = generate(seed_ ^ (kPartKey + i), index_, stream_);
    return {uint64_t(key[1]) << 32 | key[0], uint64_t(key[3]) << 32 | key[2]};
  }
  constexpr float next_uniform() { return uniform(next()); }
  // Uniform in [0, bound), bound >= 1, without bias (multiply and reject; Lemire 2019).
  constexpr uint32_t next_below(uint32_t bound) {
    uint64_t product = uint64_t(next()) * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = (0u - bound) % bound;
      while (static_cast<uint32_t>(product) < threshold) {
        product = uint64_t(next()) * bound;
      }
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint64_t seed_, stream_, index_;
  uint64_t block_index_ = ~uint64_t(0);
  Block block_{};
};

}  // namespace binade::philox
