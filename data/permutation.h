// A pseudo-random permutation of [0, size) with random access: no table, no state. It is a Feistel
// network over Philox on the next power of four, iterated until the value is < size.
#pragma once
#include <cstdint>

namespace binade::data {

class Permutation {
 public:
  // REQUIRES: size >= 0.
  Permutation(int64_t size, uint64_t seed, int64_t epoch);
  // The value at position i of [0, size).
  int64_t operator()(int64_t i) const;

 private:
  uint64_t encrypt(uint64_t value) const;

  uint64_t size_, seed_, epoch_;
  int half_bits_ = 1;
};

}  // namespace binade::data
