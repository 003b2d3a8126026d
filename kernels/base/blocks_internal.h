// Blocks: how *_isa.cpp files read and write operands of any dtype and stride. A block is up to
// kBlockSize elements in the compute type, on the stack or, where no conversion or gathering is
// needed, the operand's own memory. Include only from *_isa.cpp files.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/strided.h>

#include <immintrin.h>

namespace binade::kernels {
namespace {

inline constexpr int64_t kBlockSize = 1024;

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

// The functions that move a block are not inlined: otherwise every loop over blocks would hold a
// copy of them for each dtype.
#define BINADE_OUTLINE [[gnu::noinline]] inline

// Contiguous conversions between a storage type and its compute type. The full masks below keep g++
// 12 from warning about the undefined operand of the unmasked forms.
template <class T>
inline void to_compute(const T* x, T* y, int64_t n) {
  __builtin_memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
}
template <class T>
inline void from_compute(const T* x, T* y, int64_t n) {
  __builtin_memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
}

// Sums of integers have 64 bits and wrap.
BINADE_OUTLINE void to_compute(const int32_t* x, uint64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<uint64_t>(int64_t{x[i]});
  }
}
BINADE_OUTLINE void to_compute(const uint8_t* x, uint64_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = x[i];
  }
}

BINADE_OUTLINE void to_compute(const bfloat16* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = __builtin_bit_cast(float, static_cast<uint32_t>(x[i].bits) << 16);
  }
}
BINADE_OUTLINE void from_compute(const float* x, bfloat16* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x[i]);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40u;
    y[i].bits = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}

BINADE_OUTLINE void to_compute(const half* x, float* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm512_storeu_ps(y + i, _mm512_maskz_cvtph_ps(0xffff, bits));
  }
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(bits));
  }
#endif
  for (; i < n; ++i) {
    y[i] = static_cast<float>(x[i]);
  }
}
BINADE_OUTLINE void from_compute(const float* x, half* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m512 values = _mm512_loadu_ps(x + i);
    const __m256i bits = _mm512_maskz_cvtps_ph(0xffff, values, _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), bits);
  }
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), bits);
  }
#endif
  for (; i < n; ++i) {
    y[i] = half(x[i]);
  }
}

// Copies n strided elements (stride in bytes) to contiguous memory, and back.
template <class T>
BINADE_OUTLINE void gather(const std::byte* x, int64_t stride, int64_t n, T* y) {
  if (stride == 0) {
    const T value = *reinterpret_cast<const T*>(x);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = value;
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    y[i] = *reinterpret_cast<const T*>(x + i * stride);
  }
}
template <class T>
BINADE_OUTLINE void scatter(const T* x, std::byte* y, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<T*>(y + i * stride) = x[i];
  }
}

// n <= kBlockSize elements at x in the compute type: returns x itself if it has that type and is
// contiguous, else fills `block`.
template <class T, class C>
inline const C* load_block(const std::byte* x, int64_t stride, int64_t n, C* block) {
  const bool dense = stride == static_cast<int64_t>(sizeof(T));
  if constexpr (kSame<T, C>) {
    if (dense) {
      return reinterpret_cast<const C*>(x);
    }
    gather<T>(x, stride, n, block);
  } else if (dense) {
    to_compute(reinterpret_cast<const T*>(x), block, n);
  } else {
    T narrow[kBlockSize];
    gather<T>(x, stride, n, narrow);
    to_compute(narrow, block, n);
  }
  return block;
}

// The memory in which a block of results can be computed: the output's own memory, or `block`.
template <class T, class C>
inline C* result_block(std::byte* y, int64_t stride, C* block) {
  if constexpr (kSame<T, C>) {
    if (stride == static_cast<int64_t>(sizeof(T))) {
      return reinterpret_cast<C*>(y);
    }
  }
  return block;
}

// Stores a block of results that was computed in the memory of result_block().
template <class T, class C>
inline void store_block(const C* block, std::byte* y, int64_t stride, int64_t n) {
  const bool dense = stride == static_cast<int64_t>(sizeof(T));
  if constexpr (kSame<T, C>) {
    if (!dense) {
      scatter<T>(block, y, stride, n);
    }
  } else if (dense) {
    from_compute(block, reinterpret_cast<T*>(y), n);
  } else {
    T narrow[kBlockSize];
    from_compute(block, narrow, n);
    scatter<T>(narrow, y, stride, n);
  }
}

// Copies to memory past the caches. The stores become visible to other threads with
// nontemporal_fence().
BINADE_OUTLINE void store_nontemporal(const std::byte* x, std::byte* y, int64_t bytes) {
#if defined(__AVX512F__)
  using Line = __m512i;
#elif defined(__AVX2__)
  using Line = __m256i;
#else
  using Line = __m128i;
#endif
  constexpr int64_t kWidth = sizeof(Line);
  int64_t i = -reinterpret_cast<intptr_t>(y) & (kWidth - 1);
  if (i + kWidth > bytes) {
    __builtin_memcpy(y, x, static_cast<size_t>(bytes));
    return;
  }
  __builtin_memcpy(y, x, static_cast<size_t>(i));
  for (; i + kWidth <= bytes; i += kWidth) {
    Line line;
    __builtin_memcpy(&line, x + i, sizeof line);
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<Line*>(y + i), line);
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<Line*>(y + i), line);
#else
    _mm_stream_si128(reinterpret_cast<Line*>(y + i), line);
#endif
  }
  __builtin_memcpy(y + i, x + i, static_cast<size_t>(bytes - i));
}
inline void nontemporal_fence() { _mm_sfence(); }

// store_block past the caches. y must be contiguous.
template <class T, class C>
inline void store_block_nontemporal(const C* block, std::byte* y, int64_t n) {
  if constexpr (kSame<T, C>) {
    store_nontemporal(reinterpret_cast<const std::byte*>(block), y, n * int64_t{sizeof(T)});
  } else {
    T narrow[kBlockSize];
    from_compute(block, narrow, n);
    store_nontemporal(reinterpret_cast<const std::byte*>(narrow), y, n * int64_t{sizeof(T)});
  }
}

// The block size for stores past the caches. It is small, so that the stores to the block and then
// to memory all wait in the processor's store buffer while the next block is computed.
inline constexpr int64_t kNontemporalBlock = 256;

// Prefetches the n elements of the next block while this one is computed. x may be past the end.
template <class T>
inline void prefetch_block(const std::byte* x, int64_t stride, int64_t n) {
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; stride == int64_t{sizeof(T)} && i < n * stride; i += kLine) {
    __builtin_prefetch(x + i);
  }
}

// The scalar arguments of an operation.
template <class C>
struct MapScalars {
  C alpha, beta;
};

// A loop over contiguous arrays: y[i] = f(x1[i], x2[i], x3[i]). y may be one of the inputs. Each
// argument fits registers: through a struct in memory, rows of a few elements took 6 times as long.
template <class C>
using MapLoop = void (*)(C* y, const C* x1, const C* x2, const C* x3, int64_t n,
                         MapScalars<C> scalars);

// The loop for each compute type.
struct MapLoops {
  MapLoop<float> single;
  MapLoop<double> wide;
};

// Runs `loop` over blocks of a tile: they are converted, gathered or stored past the caches.
template <class T, class C>
BINADE_OUTLINE void map_blocks(MapLoop<C> loop, int inputs, const StridedTile& tile,
                               MapScalars<C> scalars) {
  C y_block[kBlockSize], x_block[3][kBlockSize];
  std::byte* at[kTileOperands];
  const C* x[3] = {nullptr, nullptr, nullptr};
  const int64_t block = tile.nontemporal ? kNontemporalBlock : kBlockSize;
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int k = 0; k <= inputs; ++k) {
      at[k] = tile.data[k] + row * tile.outer[k];
    }
    for (int64_t i = 0; i < tile.n; i += block) {
      const int64_t n = tile.n - i < block ? tile.n - i : block;
      for (int k = 0; k < inputs; ++k) {
        const int64_t stride = tile.inner[k + 1];
        if (tile.nontemporal) {
          prefetch_block<T>(at[k + 1] + (i + block) * stride, stride, block);
        }
        x[k] = load_block<T>(at[k + 1] + i * stride, stride, n, x_block[k]);
      }
      std::byte* y = at[0] + i * tile.inner[0];
      C* result = tile.nontemporal ? y_block : result_block<T>(y, tile.inner[0], y_block);
      loop(result, x[0], x[1], x[2], n, scalars);
      if (tile.nontemporal) {
        store_block_nontemporal<T>(result, y, n);
      } else {
        store_block<T>(result, y, tile.inner[0], n);
      }
    }
  }
  if (tile.nontemporal) {
    nontemporal_fence();
  }
}

// Runs `loop` over a tile of operands y, x1 .. x<inputs>, all of storage type T: over the operands'
// own memory if it is dense and needs no conversion.
template <class T, class C>
void map_tile(MapLoop<C> loop, int inputs, const StridedTile& tile, MapScalars<C> scalars) {
  bool direct = kSame<T, C> && !tile.nontemporal;
  for (int k = 0; k <= inputs; ++k) {
    direct = direct && tile.inner[k] == static_cast<int64_t>(sizeof(T));
  }
  if (!direct) {
    return map_blocks<T>(loop, inputs, tile, scalars);
  }
  for (int64_t row = 0; row < tile.rows; ++row) {
    const auto at = [&](int k) {
      return k <= inputs ? reinterpret_cast<C*>(tile.data[k] + row * tile.outer[k]) : nullptr;
    };
    loop(at(0), at(1), at(2), at(3), tile.n, scalars);
  }
}

// map_tile for a floating dtype, with the loop of its compute type.
inline void map_floating_tile(DType dtype, const MapLoops& loops, int inputs,
                              const StridedTile& tile, MapScalars<double> scalars = {0, 0}) {
  const MapScalars<float> rounded{static_cast<float>(scalars.alpha),
                                  static_cast<float>(scalars.beta)};
  switch (dtype) {
    case DType::f64: return map_tile<double, double>(loops.wide, inputs, tile, scalars);
    case DType::f32: return map_tile<float, float>(loops.single, inputs, tile, rounded);
    case DType::f16: return map_tile<half, float>(loops.single, inputs, tile, rounded);
    default: return map_tile<bfloat16, float>(loops.single, inputs, tile, rounded);
  }
}

}  // namespace
}  // namespace binade::kernels
