// Keys of a block of elements as vectors, then one increment per key.
#include <binade/kernels/exponent_keys.h>
#include <binade/kernels/exponents_isa.h>
#include <binade/kernels/vector_math.h>

namespace binade::kernels::BINADE_ISA {
namespace {

constexpr int64_t kBlock = 2048;

void increment(const uint16_t* keys, int64_t count, ExponentTable* tables) {
  int64_t i = 0;
  for (; i + kExponentTables <= count; i += kExponentTables) {
    uint64_t four[kExponentTables / 4];
    __builtin_memcpy(four, keys + i, sizeof four);
    for (int j = 0; j < kExponentTables; ++j) {
      ++tables[j][four[j / 4] >> 16 * (j % 4) & 0xffff];
    }
  }
  for (; i < count; ++i) {
    ++tables[0][keys[i]];
  }
}

// Magnitudes are compared as signed numbers, which all instruction sets do in one go.
template <class T>
void keys_of(const T* x, int64_t count, uint16_t* keys, ExponentRange& a) {
  constexpr int kInfinity = kInfinityBits;
  Mask<float> largest{};
  Bits<float> least = ~Bits<float>{};  // of magnitudes - 1, where 0 is the largest
  for_vectors<float>(count, [&](auto part, int64_t i, int64_t n) {
    const Bits<float> bits = bits_as<Bits<float>>(load_some<part()>(x + i, n)) & 0x7fffffffu;
    const auto fraction = bits_as<Mask<float>>(bits & 0x7fffffu);
    // True is -1.
    const Mask<float> kind = (fraction > 0) + ((fraction & 0xffff) > 0) +
                             (fraction > int(kNearSubnormalUnit) - 1) +
                             (fraction > int(kNearHalfUnit) - 1);
    const Bits<float> key = (bits >> 20 & 0x7f8u) - bits_as<Bits<float>>(kind);
    const HalfBits narrow = __builtin_convertvector(key, HalfBits);
    __builtin_memcpy(keys + i, &narrow, sizeof narrow);
    const auto magnitude = bits_as<Mask<float>>(bits);
    const Mask<float> finite = magnitude & (magnitude < kInfinity);
    largest = finite > largest ? finite : largest;
    const Bits<float> before = bits - 1;
    least = before < least ? before : least;
  });
  for (int lane = 0; lane < kLanes<float>; ++lane) {
    const auto most = static_cast<uint32_t>(largest[lane]);
    a.largest = most > a.largest ? most : a.largest;
    const uint32_t smallest = least[lane] < kLargestBits ? ~(least[lane] + 1) : 0;
    a.smallest = smallest > a.smallest ? smallest : a.smallest;
  }
}

void keys_of(const double* x, int64_t count, uint16_t* keys, ExponentRange& a) {
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = static_cast<uint16_t>(exponent_key(x[i]));
    const uint32_t bits = magnitude_bits(x[i]);
    if (bits < kInfinityBits && bits != 0) {
      a.largest = bits > a.largest ? bits : a.largest;
      a.smallest = ~bits > a.smallest ? ~bits : a.smallest;
    }
  }
}

}  // namespace

void count_exponents_range(ExponentRange& a) {
  uint16_t keys[kBlock + kLanes<float>];
  dispatch_floating("count_exponents", a.dtype, [&]<class T>(Type<T>) {
    const T* x = static_cast<const T*>(a.x);
    for (int64_t first = 0; first < a.count; first += kBlock) {
      const int64_t count = a.count - first < kBlock ? a.count - first : kBlock;
      keys_of(x + first, count, keys, a);
      increment(keys, count, a.tables);
    }
  });
}

}  // namespace binade::kernels::BINADE_ISA
