#include <binade/data/permutation.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/philox.h>

#include <bit>

namespace binade::data {
namespace {

constexpr int kRounds = 8;
constexpr uint64_t kShuffleKey = 0x5348'5546'464C'4531;  // separates its random numbers

}  // namespace

Permutation::Permutation(int64_t size, uint64_t seed, int64_t epoch)
    : size_(static_cast<uint64_t>(size)),
      seed_(seed ^ kShuffleKey),
      epoch_(static_cast<uint64_t>(epoch)) {
  check(size >= 0, "permutation: got size ", size, ", expected >= 0");
  const int bits = std::bit_width(size_ > 1 ? size_ - 1 : uint64_t(1));
  half_bits_ = (bits + 1) / 2;
}

uint64_t Permutation::encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t(1) << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t counter = right << 8 | static_cast<uint64_t>(round);
    const philox::Block block = philox::generate(seed_, counter, epoch_);
    const uint64_t mixed = (left ^ block[0]) & mask;
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t i) const {
  check(i >= 0 && static_cast<uint64_t>(i) < size_, "permutation: got position ", i,
        ", expected one of ", size_);
  uint64_t value = static_cast<uint64_t>(i);
  do {
    value = encrypt(value);
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

}  // namespace binade::data
