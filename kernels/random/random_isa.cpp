// Philox in blocks of 256 counters (the same numbers as base/philox.h), uniform and normal values
// from them, and dropout. Contraction to fused multiply-add is off, so that every instruction set
// gives the same bits: initial weights should not depend on the machine.
#pragma GCC optimize("fp-contract=off")
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/base/vector_math_internal.h>
#include <binade/kernels/random/philox_lanes_internal.h>
#include <binade/kernels/random/random_isa_internal.h>
#include <binade/kernels/random/random_values.h>

namespace binade::kernels::BINADE_ISA {
namespace {

using Wide = Bits<double>;
constexpr int kCounters = kLanes<double>;  // one in each 64-bit lane
constexpr int kPairs = 2;                  // vectors of counters at a time, independent

// Generates 4 numbers of each of kPairs * kCounters consecutive counters.
BINADE_INLINE void generate_lanes(uint64_t key, uint64_t counter, uint32_t* y) {
  constexpr uint64_t kLower = 0xffffffffu;
  constexpr uint64_t kLane[] = {0, 1, 2, 3, 4, 5, 6, 7};
  Wide lane, c0[kPairs] = {}, c1[kPairs] = {}, c2[kPairs] = {}, c3[kPairs] = {};
  __builtin_memcpy(&lane, kLane, sizeof lane);
  for (int v = 0; v < kPairs; ++v) {
    c0[v] = lane + (counter + static_cast<uint64_t>(v * kCounters));
    c1[v] = c0[v] >> 32;
  }
  philox_rounds(key, c0, c1, c2, c3);
  for (int v = 0; v < kPairs; ++v) {
    const Wide first = (c0[v] & kLower) | c1[v] << 32, second = (c2[v] & kLower) | c3[v] << 32;
    // The numbers of a counter are one lane of `first` and one of `second`.
#if defined(__AVX512F__)
    const Wide low = __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
    const Wide high = __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
#elif defined(__AVX2__)
    const Wide low = __builtin_shufflevector(first, second, 0, 4, 1, 5);
    const Wide high = __builtin_shufflevector(first, second, 2, 6, 3, 7);
#else
    const Wide low = __builtin_shufflevector(first, second, 0, 2);
    const Wide high = __builtin_shufflevector(first, second, 1, 3);
#endif
    __builtin_memcpy(y + 4 * v * kCounters, &low, sizeof low);
    __builtin_memcpy(y + 4 * v * kCounters + 2 * kCounters, &high, sizeof high);
  }
}

constexpr int kBatch = 4 * kPairs * kCounters;  // numbers of one call

// The numbers of whole counters that cover n positions from `position` on.
struct Numbers {
  uint32_t bits[kRandomBlock + 4 + kBatch];
  int64_t first;  // index of the number at `position`
  int64_t count;  // numbers generated, even

  Numbers(uint64_t seed, uint64_t position, int64_t n) : first(static_cast<int64_t>(position % 4)) {
    for (count = 0; count < first + n; count += kBatch) {
      generate_lanes(seed, position / 4 + static_cast<uint64_t>(count / 4), bits + count);
    }
  }
};

// z[i], z[i + 1] from each pair of numbers.
void box_muller(const uint32_t* bits, float* z, int64_t count) {
  for (int64_t i = 0; i < count; i += 2) {
    const NormalPair pair = normal_pair(bits[i], bits[i + 1]);
    z[i] = pair.first;
    z[i + 1] = pair.second;
  }
}

template <class T, class C>
void store(const float* value, double low, double scale, void* y, int64_t n) {
  C block[kRandomBlock];
  C* result = result_block<T>(static_cast<std::byte*>(y), sizeof(T), block);
  for (int64_t i = 0; i < n; ++i) {
    result[i] = static_cast<C>(low + scale * static_cast<double>(value[i]));
  }
  store_block<T>(result, static_cast<std::byte*>(y), sizeof(T), n);
}

template <class T, class C>
void drop(const Numbers& numbers, float p, double scale, const void* x, void* y, int64_t n) {
  C x_block[kRandomBlock], y_block[kRandomBlock];
  const C* from = load_block<T>(static_cast<const std::byte*>(x), sizeof(T), n, x_block);
  C* to = result_block<T>(static_cast<std::byte*>(y), sizeof(T), y_block);
  const uint32_t* bits = numbers.bits + numbers.first;
  const C factor = static_cast<C>(scale);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C kept = from[i] * factor;
    to[i] = uniform_value(bits[i]) >= p ? kept : C(0);
  }
  store_block<T>(to, static_cast<std::byte*>(y), sizeof(T), n);
}

}  // namespace

void random_block(const RandomBlock& a) {
  const Numbers numbers(a.seed, a.position, a.n);
  float value[sizeof numbers.bits / sizeof *numbers.bits];
  if (a.distribution == Distribution::normal) {
    box_muller(numbers.bits, value, numbers.count);
  } else {
    for (int64_t i = 0; i < numbers.count; ++i) {
      value[i] = uniform_value(numbers.bits[i]);
    }
  }
  const double scale = a.distribution == Distribution::normal ? a.high : a.high - a.low;
  const float* from = value + numbers.first;
  switch (a.dtype) {
    case DType::f64: return store<double, double>(from, a.low, scale, a.y, a.n);
    case DType::f32: return store<float, float>(from, a.low, scale, a.y, a.n);
    case DType::f16: return store<half, float>(from, a.low, scale, a.y, a.n);
    default: return store<bfloat16, float>(from, a.low, scale, a.y, a.n);
  }
}

void dropout_block(const DropoutBlock& a) {
  const Numbers numbers(a.seed, a.position, a.n);
  const float limit = static_cast<float>(a.p);
  const double scale = 1.0 / (1.0 - a.p);
  switch (a.dtype) {
    case DType::f64: return drop<double, double>(numbers, limit, scale, a.x, a.y, a.n);
    case DType::f32: return drop<float, float>(numbers, limit, scale, a.x, a.y, a.n);
    case DType::f16: return drop<half, float>(numbers, limit, scale, a.x, a.y, a.n);
    default: return drop<bfloat16, float>(numbers, limit, scale, a.x, a.y, a.n);
  }
}

}  // namespace binade::kernels::BINADE_ISA
