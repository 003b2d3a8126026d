// A vector holds one row per 128 bits, so that one shuffle serves all of them.
#include <binade/kernels/image/resample_bytes_isa_internal.h>

#include <immintrin.h>

namespace binade::kernels::BINADE_ISA {
namespace {

#define BINADE_INLINE [[gnu::always_inline]] inline

#if defined(__AVX512BW__)
using Wide = __m512i;
constexpr int kRowsPerVector = 4;
BINADE_INLINE Wide zero() { return _mm512_setzero_si512(); }
BINADE_INLINE Wide load(const uint8_t* p) { return _mm512_loadu_si512(p); }
BINADE_INLINE void store(uint8_t* p, Wide v) { _mm512_storeu_si512(p, v); }
BINADE_INLINE Wide spread(int32_t v) { return _mm512_set1_epi32(v); }
BINADE_INLINE Wide add(Wide a, Wide b) { return _mm512_add_epi32(a, b); }
BINADE_INLINE Wide madd(Wide a, Wide b) { return _mm512_madd_epi16(a, b); }
BINADE_INLINE Wide shuffle(Wide a, Wide m) { return _mm512_shuffle_epi8(a, m); }
BINADE_INLINE Wide pack32(Wide a, Wide b) { return _mm512_packs_epi32(a, b); }
BINADE_INLINE Wide pack16(Wide a, Wide b) { return _mm512_packus_epi16(a, b); }
BINADE_INLINE Wide low_bytes(Wide a, Wide b) { return _mm512_unpacklo_epi8(a, b); }
BINADE_INLINE Wide high_bytes(Wide a, Wide b) { return _mm512_unpackhi_epi8(a, b); }
BINADE_INLINE Wide join(const __m128i* r) {
  const __m256i front = __builtin_shufflevector(r[0], r[1], 0, 1, 2, 3),
                back = __builtin_shufflevector(r[2], r[3], 0, 1, 2, 3);
  return __builtin_shufflevector(front, back, 0, 1, 2, 3, 4, 5, 6, 7);
}
#elif defined(__AVX2__)
using Wide = __m256i;
constexpr int kRowsPerVector = 2;
BINADE_INLINE Wide zero() { return _mm256_setzero_si256(); }
BINADE_INLINE Wide load(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
BINADE_INLINE void store(uint8_t* p, Wide v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}
BINADE_INLINE Wide spread(int32_t v) { return _mm256_set1_epi32(v); }
BINADE_INLINE Wide add(Wide a, Wide b) { return _mm256_add_epi32(a, b); }
BINADE_INLINE Wide madd(Wide a, Wide b) { return _mm256_madd_epi16(a, b); }
BINADE_INLINE Wide shuffle(Wide a, Wide m) { return _mm256_shuffle_epi8(a, m); }
BINADE_INLINE Wide pack32(Wide a, Wide b) { return _mm256_packs_epi32(a, b); }
BINADE_INLINE Wide pack16(Wide a, Wide b) { return _mm256_packus_epi16(a, b); }
BINADE_INLINE Wide low_bytes(Wide a, Wide b) { return _mm256_unpacklo_epi8(a, b); }
BINADE_INLINE Wide high_bytes(Wide a, Wide b) { return _mm256_unpackhi_epi8(a, b); }
BINADE_INLINE Wide join(const __m128i* r) {
  return __builtin_shufflevector(r[0], r[1], 0, 1, 2, 3);
}
#else
using Wide = __m128i;
constexpr int kRowsPerVector = 1;
BINADE_INLINE Wide zero() { return _mm_setzero_si128(); }
BINADE_INLINE Wide load(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
BINADE_INLINE void store(uint8_t* p, Wide v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
BINADE_INLINE Wide spread(int32_t v) { return _mm_set1_epi32(v); }
BINADE_INLINE Wide add(Wide a, Wide b) { return _mm_add_epi32(a, b); }
BINADE_INLINE Wide madd(Wide a, Wide b) { return _mm_madd_epi16(a, b); }
BINADE_INLINE Wide shuffle(Wide a, Wide m) { return _mm_shuffle_epi8(a, m); }
BINADE_INLINE Wide pack32(Wide a, Wide b) { return _mm_packs_epi32(a, b); }
BINADE_INLINE Wide pack16(Wide a, Wide b) { return _mm_packus_epi16(a, b); }
BINADE_INLINE Wide low_bytes(Wide a, Wide b) { return _mm_unpacklo_epi8(a, b); }
BINADE_INLINE Wide high_bytes(Wide a, Wide b) { return _mm_unpackhi_epi8(a, b); }
BINADE_INLINE Wide join(const __m128i* r) { return r[0]; }
#endif

constexpr int kBytes = static_cast<int>(sizeof(Wide));
typedef int32_t Lanes __attribute__((vector_size(sizeof(Wide))));
constexpr int kVectors = kRowsPerVector == 4 ? 2 : 4 / kRowsPerVector;  // in flight
constexpr int kRows = kVectors * kRowsPerVector;
constexpr int kParts = 2 * kResampleGroup;  // 16-bit parts of the weights of a group

BINADE_INLINE int32_t pair_at(const int16_t* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return pair;
}

BINADE_INLINE __m128i load_pixels(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// high * 2^11 + low, rounded.
BINADE_INLINE Wide total(Wide high, Wide low) {
  const Wide scaled = reinterpret_cast<Wide>(reinterpret_cast<Lanes>(high) << kResampleLowBits);
  const Wide sum = add(scaled, add(low, spread(1 << (kResampleBits - 1))));
  return reinterpret_cast<Wide>(reinterpret_cast<Lanes>(sum) >> kResampleBits);
}

// One value. Sums wrap, but their total is less than 2^31.
BINADE_INLINE uint8_t rounded(uint32_t sum) {
  const int32_t value = static_cast<int32_t>(sum + (1u << (kResampleBits - 1))) >> kResampleBits;
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

BINADE_INLINE uint32_t weight_at(const int16_t* group, int tap) {
  return (static_cast<uint32_t>(int32_t{group[tap]}) << kResampleLowBits) +
         static_cast<uint32_t>(int32_t{group[tap + kResampleGroup]});
}

// Shuffles that put channel c of pixels 0 and 1 (2 and 3) side by side, as 16-bit numbers.
template <int C>
BINADE_INLINE Wide pair_mask(int pixel) {
  alignas(kBytes) uint8_t mask[kBytes];
  constexpr uint8_t kZero = 0x80;
  for (int i = 0; i < kBytes; ++i) {
    const int c = i / 4 % 4;
    mask[i] = i % 2 == 1 || c >= C ? kZero : static_cast<uint8_t>((pixel + i / 2 % 2) * C + c);
  }
  return load(mask);
}

struct RowBlock {
  const uint8_t* x[kRows];
  uint8_t* y[kRows];
};

BINADE_INLINE RowBlock rows_from(const ResampleColumns& a, int64_t first) {
  RowBlock block;
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = first + r < a.rows ? first + r : a.rows - 1;  // the last one repeatedly
    block.x[r] = a.x + row * a.x_stride;
    block.y[r] = a.y + row * a.y_stride;
  }
  return block;
}

BINADE_INLINE Wide load_rows(const uint8_t* const* x, int64_t at) {
  __m128i rows[kRowsPerVector];
  for (int r = 0; r < kRowsPerVector; ++r) {
    rows[r] = load_pixels(x[r] + at);
  }
  return join(rows);
}

BINADE_INLINE void store_rows(uint8_t* const* y, int64_t at, Wide sums) {
  const Lanes bytes = reinterpret_cast<Lanes>(pack16(pack32(sums, sums), zero()));
  for (int r = 0; r < kRowsPerVector; ++r) {
    const int32_t pixel = bytes[4 * r];
    __builtin_memcpy(y[r] + at, &pixel, sizeof(pixel));
  }
}

// 3 or 4 channels: a 32-bit lane per channel.
template <int C>
void colour_columns(const ResampleColumns& a) {
  const Wide first_pair = pair_mask<C>(0), second_pair = pair_mask<C>(2);
  for (int64_t row = 0; row < a.rows; row += kRows) {
    const RowBlock block = rows_from(a, row);
    for (int64_t j = 0; j < a.count; ++j) {
      Wide high[kVectors], low[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        high[v] = low[v] = zero();
      }
      int64_t at = int64_t{a.first[j]} * C;
      for (int32_t g = a.groups[j]; g < a.groups[j + 1]; ++g, at += kResampleGroup * C) {
        const int16_t* weight = a.weight + int64_t{g} * kParts;
        const Wide high_01 = spread(pair_at(weight)), high_23 = spread(pair_at(weight + 2));
        const Wide low_01 = spread(pair_at(weight + 4)), low_23 = spread(pair_at(weight + 6));
        for (int v = 0; v < kVectors; ++v) {
          const Wide pixels = load_rows(block.x + v * kRowsPerVector, at);
          const Wide x01 = shuffle(pixels, first_pair), x23 = shuffle(pixels, second_pair);
          high[v] = add(high[v], add(madd(x01, high_01), madd(x23, high_23)));
          low[v] = add(low[v], add(madd(x01, low_01), madd(x23, low_23)));
        }
      }
      for (int v = 0; v < kVectors; ++v) {
        store_rows(block.y + v * kRowsPerVector, j * C, total(high[v], low[v]));
      }
    }
  }
}

// 1 channel: lanes 0 and 1 multiply the four pixels with the high parts, lanes 2 and 3 with the
// low ones.
void grey_columns(const ResampleColumns& a) {
  const __m128i twice = _mm_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 0, -1, 1, -1, 2, -1, 3, -1);
  for (int64_t row = 0; row < a.rows; ++row) {
    const uint8_t* x = a.x + row * a.x_stride;
    uint8_t* y = a.y + row * a.y_stride;
    for (int64_t j = 0; j < a.count; ++j) {
      __m128i sums = _mm_setzero_si128();
      int64_t at = a.first[j];
      for (int32_t g = a.groups[j]; g < a.groups[j + 1]; ++g, at += kResampleGroup) {
        int32_t four;
        __builtin_memcpy(&four, x + at, sizeof(four));
        const __m128i pixels = _mm_shuffle_epi8(_mm_cvtsi32_si128(four), twice);
        const __m128i weight =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(a.weight + int64_t{g} * kParts));
        sums = _mm_add_epi32(sums, _mm_madd_epi16(pixels, weight));
      }
      sums = _mm_hadd_epi32(sums, sums);
      y[j] = rounded((static_cast<uint32_t>(_mm_cvtsi128_si32(sums)) << kResampleLowBits) +
                     static_cast<uint32_t>(_mm_extract_epi32(sums, 1)));
    }
  }
}

// Any number of channels.
void other_columns(const ResampleColumns& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const uint8_t* x = a.x + row * a.x_stride;
    uint8_t* y = a.y + row * a.y_stride;
    for (int64_t j = 0; j < a.count; ++j) {
      for (int c = 0; c < a.channels; ++c) {
        uint32_t sum = 0;
        const uint8_t* from = x + int64_t{a.first[j]} * a.channels + c;
        for (int32_t g = a.groups[j]; g < a.groups[j + 1]; ++g) {
          const int16_t* group = a.weight + int64_t{g} * kParts;
          for (int t = 0; t < kResampleGroup; ++t, from += a.channels) {
            const uint32_t weight = weight_at(group, t);
            sum += weight == 0 ? 0 : weight * *from;  // there may be no pixel
          }
        }
        *y++ = rounded(sum);
      }
    }
  }
}

// kBytes values from `at` on. unpack and pack work within 128 bits, so the order is kept.
BINADE_INLINE void row_block(const ResampleRow& a, int64_t at) {
  Wide high[4], low[4];
  for (int i = 0; i < 4; ++i) {
    high[i] = low[i] = zero();
  }
  for (int64_t pair = 0; pair < 2 * a.groups; ++pair) {
    const int16_t* weight = a.weight + pair / 2 * kParts + pair % 2 * 2;
    const int32_t high_pair = pair_at(weight), low_pair = pair_at(weight + kResampleGroup);
    if (high_pair == 0 && low_pair == 0) {
      continue;
    }
    const Wide upper = load(a.row[2 * pair] + at), lower = load(a.row[2 * pair + 1] + at);
    const Wide first = low_bytes(upper, lower), second = high_bytes(upper, lower);
    const Wide x[4] = {low_bytes(first, zero()), high_bytes(first, zero()),
                       low_bytes(second, zero()), high_bytes(second, zero())};
    const Wide high_weight = spread(high_pair), low_weight = spread(low_pair);
    for (int i = 0; i < 4; ++i) {
      high[i] = add(high[i], madd(x[i], high_weight));
      low[i] = add(low[i], madd(x[i], low_weight));
    }
  }
  const Wide front = pack32(total(high[0], low[0]), total(high[1], low[1]));
  const Wide back = pack32(total(high[2], low[2]), total(high[3], low[3]));
  store(a.y + at, pack16(front, back));
}

// Reverses the pixels of the 16 / channels * channels bytes from `offset` on.
BINADE_INLINE __m128i reverse_mask(int channels, int offset) {
  alignas(16) int8_t mask[16];
  const int pixels = 16 / channels;
  for (int i = 0; i < 16; ++i) {
    const int pixel = i / channels;
    mask[i] = static_cast<int8_t>(
        pixel < pixels ? offset + (pixels - 1 - pixel) * channels + i % channels : -1);
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(mask));
}

// Stores the first `bytes` of v: 15 or 16.
BINADE_INLINE void store_front(uint8_t* p, __m128i v, int64_t bytes) {
  uint8_t buffer[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(buffer), v);
  __builtin_memcpy(p, buffer, 8);
  __builtin_memcpy(p + bytes - 8, buffer + bytes - 8, 8);
}

}  // namespace

void resample_columns(const ResampleColumns& a) {
  switch (a.channels) {
    case 1: return grey_columns(a);
    case 3: return colour_columns<3>(a);
    case 4: return colour_columns<4>(a);
    default: return other_columns(a);
  }
}

void resample_row(const ResampleRow& a) {
  int64_t at = 0;
  for (; at + kBytes <= a.bytes; at += kBytes) {
    row_block(a, at);
  }
  if (at < a.bytes && a.bytes >= kBytes) {
    row_block(a, a.bytes - kBytes);
    return;
  }
  for (; at < a.bytes; ++at) {
    uint32_t sum = 0;
    for (int64_t t = 0; t < kResampleGroup * a.groups; ++t) {
      sum +=
          weight_at(a.weight + t / kResampleGroup * kParts, static_cast<int>(t % 4)) * a.row[t][at];
    }
    a.y[at] = rounded(sum);
  }
}

void flip_rows(const FlipRows& a) {
  const int step = 16 / a.channels;  // pixels at a time
  const int64_t bytes = int64_t{step} * a.channels, row_bytes = a.width * a.channels;
  const int offset = 16 - static_cast<int>(bytes);
  const __m128i of_front = reverse_mask(a.channels, 0), of_back = reverse_mask(a.channels, offset);
  for (int64_t row = 0; row < a.rows; ++row) {
    uint8_t* front = a.x + row * row_bytes;
    uint8_t* back = front + row_bytes;
    while (back - front >= 2 * 16) {
      const __m128i left_end = load_pixels(front), right_end = load_pixels(back - 16);
      back -= bytes;
      store_front(front, _mm_shuffle_epi8(right_end, of_back), bytes);
      store_front(back, _mm_shuffle_epi8(left_end, of_front), bytes);
      front += bytes;
    }
    for (back -= a.channels; front < back; front += a.channels, back -= a.channels) {
      for (int c = 0; c < a.channels; ++c) {
        const uint8_t value = front[c];
        front[c] = back[c];
        back[c] = value;
      }
    }
  }
}

}  // namespace binade::kernels::BINADE_ISA
