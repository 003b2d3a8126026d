// Conversion between every pair of dtypes, in blocks: load (f16 and bf16 widen to f32), convert,
// store. 8 loads, 40 conversions and 4 stores make the 64 pairs.
#include <binade/kernels/base/blocks_internal.h>
#include <binade/kernels/base/convert_internal.h>
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

// Goes by tiles of one cache line squared, so that every line of x and y is loaded once: lines
// whose distance is a power of two evict each other.
template <class T>
void transpose(const std::byte* x, int64_t x_stride, const TransposeBlock& b) {
  constexpr int64_t kSide = 64 / sizeof(T);
  T tile[kSide][kSide];
  for (int64_t i0 = 0; i0 < b.n_i; i0 += kSide) {
    const int64_t n_i = b.n_i - i0 < kSide ? b.n_i - i0 : kSide;
    for (int64_t j0 = 0; j0 < b.n_j; j0 += kSide) {
      const int64_t n_j = b.n_j - j0 < kSide ? b.n_j - j0 : kSide;
      for (int64_t i = 0; i < n_i; ++i) {
        const T* from = reinterpret_cast<const T*>(x + (i0 + i) * x_stride) + j0;
        for (int64_t j = 0; j < n_j; ++j) {
          tile[j][i] = from[j];
        }
      }
      for (int64_t j = 0; j < n_j; ++j) {
        T* to = reinterpret_cast<T*>(b.y + (j0 + j) * b.y_stride_j) + i0;
        __builtin_memcpy(to, tile[j], static_cast<size_t>(n_i) * sizeof(T));
      }
    }
  }
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
