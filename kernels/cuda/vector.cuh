// Accesses to contiguous memory by vectors of up to 16 bytes. Only this file decides which elements
// can be read and written as vectors: vector_span() splits [0, n) into a head up to the first
// aligned element, whole vectors, and a tail. Arrays that are never aligned together are all head.
// for_each_vector() distributes the parts over threads.
//
//   const VectorSpan span = vector_span<8>(n, x, y);                 // on the host or per row
//   for_each_vector<8>(span, thread, threads, [&](auto width, int64_t at) {
//     constexpr int kWidth = decltype(width)::value;                 // 8 or 1
//     float v[kWidth];
//     load_as(x + at, v);
//     ...
//     store_from(y + at, v);
//   });
#pragma once
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/cuda/device.cuh>

#include <bit>
#include <type_traits>

namespace binade::kernels::dev {

// Elements of T in 16 bytes.
template <class T>
inline constexpr int kVectorOf = static_cast<int>(16 / sizeof(T));

// N elements of T, aligned to their size but to no more than 16 bytes.
template <class T, int N = kVectorOf<T>>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Vector {
  T v[N];
  BINADE_HD T& operator[](int i) { return v[i]; }
  BINADE_HD const T& operator[](int i) const { return v[i]; }
};

namespace detail {

template <int kBytes>
struct Words;  // what moves kBytes in one access
template <>
struct Words<1> {
  using type = uint8_t;
};
template <>
struct Words<2> {
  using type = uint16_t;
};
template <>
struct Words<4> {
  using type = uint32_t;
};
template <>
struct Words<8> {
  using type = uint2;
};
template <>
struct Words<16> {
  using type = uint4;
};

}  // namespace detail

template <int N, class T>
BINADE_HD bool is_aligned(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(Vector<T, N>) == 0;
}

// p must be aligned as Vector<T, N> is. More than 16 bytes become several accesses of 16.
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* p) {
  constexpr int kBytes = N * sizeof(T), kAccess = kBytes < 16 ? kBytes : 16;
  using Word = typename detail::Words<kAccess>::type;
  struct Parts {
    Word word[kBytes / kAccess];
  } parts;
#pragma unroll
  for (int i = 0; i < kBytes / kAccess; ++i) {
    parts.word[i] = reinterpret_cast<const Word*>(p)[i];
  }
  return std::bit_cast<Vector<T, N>>(parts);
}
template <class T, int N>
__device__ __forceinline__ void store_vector(T* p, const Vector<T, N>& value) {
  constexpr int kBytes = N * sizeof(T), kAccess = kBytes < 16 ? kBytes : 16;
  using Word = typename detail::Words<kAccess>::type;
  struct Parts {
    Word word[kBytes / kAccess];
  };
  const Parts parts = std::bit_cast<Parts>(value);
#pragma unroll
  for (int i = 0; i < kBytes / kAccess; ++i) {
    reinterpret_cast<Word*>(p)[i] = parts.word[i];
  }
}

// Converts N elements to C (float or double, or T itself), and back with one rounding each.
template <class T, class C, int N>
__device__ __forceinline__ void load_as(const T* p, C (&values)[N]) {
  const Vector<T, N> vector = load_vector<N>(p);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    values[i] = static_cast<C>(vector[i]);
  }
}
template <class T, class C, int N>
__device__ __forceinline__ void store_from(T* p, const C (&values)[N]) {
  Vector<T, N> vector;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    vector[i] = static_cast<T>(values[i]);
  }
  store_vector(p, vector);
}

// Elements [0, n): [head, head + vectors * N) as vectors, the others one by one.
struct VectorSpan {
  int64_t n, head, vectors;
};

namespace detail {

struct Alignment {
  uint64_t address;
  uint32_t size, bytes;                        // of an element; of the alignment
  BINADE_HD constexpr uint32_t head() const {  // elements up to the first aligned one
    return static_cast<uint32_t>(0 - address) % bytes / size;
  }
  BINADE_HD constexpr bool aligned_at(uint32_t i) const {
    return address == 0 || (address + i * size) % bytes == 0;
  }
};

template <int N, class T>
BINADE_HD Alignment alignment_of(const T* p) {
  return {reinterpret_cast<uintptr_t>(p), sizeof(T), static_cast<uint32_t>(alignof(Vector<T, N>))};
}

}  // namespace detail

// The span of n elements of each of these arrays, which may have different types. A null array
// counts as aligned.
template <int N, class... T>
BINADE_HD VectorSpan vector_span(int64_t n, const T*... arrays) {
  const detail::Alignment all[] = {detail::alignment_of<N>(arrays)...};
  uint32_t head = 0;
  for (const detail::Alignment& a : all) {
    head = a.head() > head ? a.head() : head;
  }
  bool aligned = n >= static_cast<int64_t>(head) + N;
  for (const detail::Alignment& a : all) {
    aligned = aligned && a.aligned_at(head);
  }
  return aligned ? VectorSpan{n, head, (n - head) / N} : VectorSpan{n, n, 0};
}

// Called by each of the `threads` threads that share the span: calls f(width, first element), where
// width is std::integral_constant<int, N> or <int, 1>. Neighbouring threads get neighbouring
// vectors. kUnroll is the number of calls in flight, for an f that loads but does not store.
template <int N, int kUnroll = 1, class F>
__device__ __forceinline__ void for_each_vector(const VectorSpan& span, int64_t thread,
                                                int64_t threads, F&& f) {
#pragma unroll kUnroll
  for (int64_t i = thread; i < span.vectors; i += threads) {
    f(std::integral_constant<int, N>(), span.head + i * N);
  }
  if constexpr (N > 1) {
    const int64_t singles = span.n - span.vectors * N;
    for (int64_t i = thread; i < singles; i += threads) {
      f(std::integral_constant<int, 1>(), i < span.head ? i : i + span.vectors * N);
    }
  }
}

// The same for all threads of a one-dimensional grid.
template <int N, class F>
__device__ __forceinline__ void for_each_vector(const VectorSpan& span, F&& f) {
  for_each_vector<N>(span, static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                     static_cast<int64_t>(gridDim.x) * blockDim.x, static_cast<F&&>(f));
}

}  // namespace binade::kernels::dev

namespace binade::kernels {

// Blocks of a one-dimensional grid whose threads stride over `work` items: at least one, and no
// more than give every multiprocessor several rounds of blocks.
inline unsigned grid_blocks(int64_t work, int threads) {
  constexpr int64_t kMostBlocks = 16384;
  const int64_t blocks = ceil_div(work, threads);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < kMostBlocks ? blocks : kMostBlocks);
}

// The same for for_each_vector over a whole grid.
inline unsigned grid_blocks(const dev::VectorSpan& span, int n_per_vector, int threads) {
  const int64_t singles = span.n - span.vectors * n_per_vector;
  return grid_blocks(span.vectors > singles ? span.vectors : singles, threads);
}

}  // namespace binade::kernels
