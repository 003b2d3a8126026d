// Conversion between every pair of dtypes, in blocks: load (f16 and bf16 widen to f32), convert,
// store. 8 loads, 40 conversions and 4 stores make the 64 pairs.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/base/convert_internal.h>
#include <binade/kernels/base/register_transpose_internal.h>
#include <binade/kernels/copy/copy_isa_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

using Load = const void* (*)(const std::byte* x, int64_t stride, int64_t n, void* block);
using Convert = void (*)(const void* x, void* y, int64_t n);

template <class T, class C>
const void* load(const std::byte* x, int64_t stride, int64_t n, void* block) {
  return load_block<T>(x, stride, n, static_cast<C*>(block));
}

template <class C, class D>
void convert(const void* from, void* to, int64_t n) {
  const C* x = static_cast<const C*>(from);
  D* y = static_cast<D*>(to);
  if constexpr (kSame<C, float> && (kSame<D, half> || kSame<D, bfloat16>)) {
    from_compute(x, y, n);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      y[i] = converted<D>(x[i]);
    }
  }
}

struct Source {
  Load load;
  Convert convert[kDTypeCount];  // by target; null if the loaded block is the result
};

template <class T, class C>
constexpr Source source() {
  Source s = {load<T, C>,
              {convert<C, double>, convert<C, float>, convert<C, half>, convert<C, bfloat16>,
               convert<C, int64_t>, convert<C, int32_t>, convert<C, uint8_t>, convert<C, bool>}};
  if (!kSame<C, bool>) {
    s.convert[static_cast<int>(dtype_of<C>)] = nullptr;
  }
  return s;
}

constexpr Source kSource[kDTypeCount] = {
    source<double, double>(),   source<float, float>(),     source<half, float>(),
    source<bfloat16, float>(),  source<int64_t, int64_t>(), source<int32_t, int32_t>(),
    source<uint8_t, uint8_t>(), source<uint8_t, uint8_t>(),
};

template <class T>
void move_row(const std::byte* x, int64_t x_stride, std::byte* y, int64_t y_stride, int64_t n) {
  constexpr int64_t kWidth = sizeof(T);
  if (y_stride == kWidth && x_stride == kWidth) {
    if (x != y && n > 0) {
      __builtin_memcpy(y, x, static_cast<size_t>(n * kWidth));
    }
  } else if (y_stride == kWidth) {
    gather<T>(x, x_stride, n, reinterpret_cast<T*>(y));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(y + i * y_stride) = *reinterpret_cast<const T*>(x + i * x_stride);
    }
  }
}

template <class T>
void move_tile(const StridedTile& tile) {
  if (tile.nontemporal && tile.inner[1] == int64_t{sizeof(T)}) {
    store_nontemporal(tile.data[1], tile.data[0], tile.n * int64_t{sizeof(T)});
    return nontemporal_fence();
  }
  for (int64_t row = 0; row < tile.rows; ++row) {
    move_row<T>(tile.data[1] + row * tile.outer[1], tile.inner[1],
                tile.data[0] + row * tile.outer[0], tile.inner[0], tile.n);
  }
}

// bool is stored as 0 or 1, so its bits can be copied to u8.
bool moves(DType from, DType to) {
  return from == to || (from == DType::boolean && to == DType::u8);
}

void scatter_row(DType dtype, const void* x, std::byte* y, int64_t stride, int64_t n) {
  dispatch_width(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    scatter(static_cast<const T*>(x), y, stride, n);
  });
}

// Converts n <= kBlockSize strided elements to contiguous memory at `to`.
void convert_block(const Source& from, DType dtype, const std::byte* x, int64_t stride, int64_t n,
                   void* to) {
  const Convert convert = from.convert[static_cast<int>(dtype)];
  if (!convert) {
    from.load(x, stride, n, to);  // load widens here, so it always writes
    return;
  }
  alignas(64) std::byte block[kBlockSize * 8];
  convert(from.load(x, stride, n, block), to, n);
}

// The vectors that transpose squares of elements of kWidth bytes. Narrow elements have as many
// lanes as there are registers.
template <int kWidth>
struct SquareOf;
template <>
struct SquareOf<1> {
  static constexpr int kLanes = 16;
  typedef uint8_t Lane;
};
template <>
struct SquareOf<2> {
#if defined(__AVX2__)
  static constexpr int kLanes = 16;
#else
  static constexpr int kLanes = 8;
#endif
  typedef uint16_t Lane;
};
#if defined(__AVX512F__)
constexpr int kSquareBytes = 64;
#elif defined(__AVX2__)
constexpr int kSquareBytes = 32;
#else
constexpr int kSquareBytes = 16;
#endif
template <>
struct SquareOf<4> {
  static constexpr int kLanes = kSquareBytes / 4;
  typedef float Lane;  // only moved
};
template <>
struct SquareOf<8> {
  static constexpr int kLanes = kSquareBytes / 8;
  typedef double Lane;
};

// Stores a vector past the caches; y is aligned to it.
template <class V>
inline void stream(V v, std::byte* y) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(y), reinterpret_cast<__m512i>(v));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(y), reinterpret_cast<__m256i>(v));
#else
  _mm_stream_si128(reinterpret_cast<__m128i*>(y), reinterpret_cast<__m128i>(v));
#endif
}

// y[j][i] = x[i][j] for a square of kLanes elements.
template <int kWidth, bool kNontemporal>
inline void transpose_square(const std::byte* x, int64_t x_stride, std::byte* y, int64_t y_stride) {
  using Square = SquareOf<kWidth>;
  constexpr int kCount = Square::kLanes;
  typedef typename Square::Lane V __attribute__((vector_size(kCount * kWidth)));
  V r[kCount];
  for (int q = 0; q < kCount; ++q) {
    __builtin_memcpy(&r[q], x + q * x_stride, sizeof(V));
  }
  transpose_registers(r);
  for (int q = 0; q < kCount; ++q) {
    if constexpr (kNontemporal) {
      stream(r[q], y + q * y_stride);
    } else {
      __builtin_memcpy(y + q * y_stride, &r[q], sizeof(V));
    }
  }
}

template <class T>
void transpose_part(const std::byte* x, int64_t x_stride, std::byte* y, int64_t y_stride,
                    int64_t n_i, int64_t n_j) {
  for (int64_t j = 0; j < n_j; ++j) {
    T* to = reinterpret_cast<T*>(y + j * y_stride);
    for (int64_t i = 0; i < n_i; ++i) {
      to[i] = reinterpret_cast<const T*>(x + i * x_stride)[j];
    }
  }
}

// Goes by tiles of one cache line squared, so that every line of x and y is loaded once: lines
// whose distance is a power of two evict each other.
template <class T, bool kNontemporal>
void transpose(const std::byte* x, int64_t x_stride, const TransposeBlock& b) {
  constexpr int64_t kWidth = sizeof(T), kSide = 64 / kWidth, kStep = SquareOf<kWidth>::kLanes;
  for (int64_t j0 = 0; j0 < b.n_j; j0 += kSide) {
    const int64_t j1 = b.n_j - j0 < kSide ? b.n_j : j0 + kSide;
    for (int64_t i0 = 0; i0 < b.n_i; i0 += kSide) {
      const int64_t i1 = b.n_i - i0 < kSide ? b.n_i : i0 + kSide;
      for (int64_t j = j0; j < j1; j += kStep) {
        for (int64_t i = i0; i < i1; i += kStep) {
          const std::byte* from = x + i * x_stride + j * kWidth;
          std::byte* to = b.y + j * b.y_stride_j + i * kWidth;
          const int64_t n_i = i1 - i < kStep ? i1 - i : kStep;
          const int64_t n_j = j1 - j < kStep ? j1 - j : kStep;
          if (n_i == kStep && n_j == kStep) {
            transpose_square<kWidth, kNontemporal>(from, x_stride, to, b.y_stride_j);
          } else {
            transpose_part<T>(from, x_stride, to, b.y_stride_j, n_i, n_j);
          }
        }
      }
    }
  }
}

template <class T>
void transpose(const std::byte* x, int64_t x_stride, const TransposeBlock& b) {
  if constexpr (sizeof(T) >= 4) {  // stores past the caches write whole vectors
    if (b.nontemporal &&
        (reinterpret_cast<uintptr_t>(b.y) | static_cast<uintptr_t>(b.y_stride_j)) % kSquareBytes ==
            0) {
      transpose<T, true>(x, x_stride, b);
      return nontemporal_fence();
    }
  }
  transpose<T, false>(x, x_stride, b);
}

}  // namespace

void convert_tile(DType from, DType to, const StridedTile& tile) {
  if (moves(from, to)) {
    return dispatch_width(to, [&](auto type) { move_tile<typename decltype(type)::type>(tile); });
  }
  const Source& source = kSource[static_cast<int>(from)];
  const auto width = static_cast<int64_t>(size_of(to));
  alignas(64) std::byte block[kBlockSize * 8];
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int64_t i = 0; i < tile.n; i += kBlockSize) {
      const int64_t n = tile.n - i < kBlockSize ? tile.n - i : kBlockSize;
      std::byte* y = tile.data[0] + row * tile.outer[0] + i * tile.inner[0];
      const std::byte* x = tile.data[1] + row * tile.outer[1] + i * tile.inner[1];
      if (tile.inner[0] == width) {
        convert_block(source, to, x, tile.inner[1], n, y);
      } else {
        convert_block(source, to, x, tile.inner[1], n, block);
        scatter_row(to, block, y, tile.inner[0], n);
      }
    }
  }
}

void transpose_block(DType from, DType to, const TransposeBlock& b) {
  const auto width = static_cast<int64_t>(size_of(to));
  alignas(64) std::byte block[TransposeBlock::kSide * TransposeBlock::kSide * 8];
  const std::byte* x = b.x;
  int64_t x_stride = b.x_stride_i;
  if (!moves(from, to)) {
    x = block;
    x_stride = TransposeBlock::kSide * width;
    const auto from_width = static_cast<int64_t>(size_of(from));
    for (int64_t i = 0; i < b.n_i; ++i) {
      convert_block(kSource[static_cast<int>(from)], to, b.x + i * b.x_stride_i, from_width, b.n_j,
                    block + i * x_stride);
    }
  }
  dispatch_width(to, [&](auto type) { transpose<typename decltype(type)::type>(x, x_stride, b); });
}

}  // namespace binade::kernels::BINADE_ISA
