// Philox in blocks of 256 counters (the same numbers as base/philox.h), uniform and normal values
// from them, and dropout. Contraction to fused operations is off, so that every instruction set
// gives the same bits: initial weights should not depend on the machine.
#pragma GCC optimize("fp-contract=off")
#include <binade/kernels/base/blocks.h>
#include <binade/kernels/random_isa.h>
#include <binade/kernels/random_values.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int kLanes = 16;

// 4 * kLanes numbers of kLanes consecutive counters.
void generate_lanes(uint64_t key, uint64_t counter, uint32_t* y) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes] = {}, c3[kLanes] = {};
  for (int j = 0; j < kLanes; ++j) {
    const uint64_t c = counter + static_cast<uint64_t>(j);
    c0[j] = static_cast<uint32_t>(c);
    c1[j] = static_cast<uint32_t>(c >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int j = 0; j < kLanes; ++j) {
      const uint64_t p0 = uint64_t(0xD2511F53u) * c0[j], p1 = uint64_t(0xCD9E8D57u) * c2[j];
      c0[j] = static_cast<uint32_t>(p1 >> 32) ^ c1[j] ^ k0;
      c2[j] = static_cast<uint32_t>(p0 >> 32) ^ c3[j] ^ k1;
      c1[j] = static_cast<uint32_t>(p1);
      c3[j] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int j = 0; j < kLanes; ++j) {
    y[4 * j] = c0[j];
    y[4 * j + 1] = c1[j];
    y[4 * j + 2] = c2[j];
    y[4 * j + 3] = c3[j];
  }
}

// Numbers of whole counters that cover n positions from `position` on.
struct Numbers {
  uint32_t bits[kRandomBlock + 2 * 4 * kLanes];
  int64_t first;  // where `position` is
  int64_t count;  // numbers generated, even

  Numbers(uint64_t seed, uint64_t position, int64_t n) : first(static_cast<int64_t>(position % 4)) {
    for (count = 0; count < first + n; count += 4 * kLanes) {
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

void random_block(Distribution distribution, double low, double high, uint64_t seed,
                  uint64_t position, DType dtype, void* y, int64_t n) {
  const Numbers numbers(seed, position, n);
  float value[sizeof numbers.bits / sizeof *numbers.bits];
  if (distribution == Distribution::normal) {
    box_muller(numbers.bits, value, numbers.count);
  } else {
    for (int64_t i = 0; i < numbers.count; ++i) {
      value[i] = uniform_value(numbers.bits[i]);
    }
  }
  const double scale = distribution == Distribution::normal ? high : high - low;
  const float* from = value + numbers.first;
  switch (dtype) {
    case DType::f64: return store<double, double>(from, low, scale, y, n);
    case DType::f32: return store<float, float>(from, low, scale, y, n);
    case DType::f16: return store<half, float>(from, low, scale, y, n);
    default: return store<bfloat16, float>(from, low, scale, y, n);
  }
}

void dropout_block(double p, uint64_t seed, uint64_t position, DType dtype, const void* x, void* y,
                   int64_t n) {
  const Numbers numbers(seed, position, n);
  const float limit = static_cast<float>(p);
  const double scale = 1.0 / (1.0 - p);
  switch (dtype) {
    case DType::f64: return drop<double, double>(numbers, limit, scale, x, y, n);
    case DType::f32: return drop<float, float>(numbers, limit, scale, x, y, n);
    case DType::f16: return drop<half, float>(numbers, limit, scale, x, y, n);
    default: return drop<bfloat16, float>(numbers, limit, scale, x, y, n);
  }
}

}  // namespace binade::kernels::BINADE_ISA
