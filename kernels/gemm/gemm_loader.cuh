// Loaders give the block tiles of gemm_tile.cuh and gemm_simt.cuh their operands. Both operands of
// y = a b have the same form: a matrix [outer, k], where outer is a row of a or a column of b. A
// loader gives chunks: 16 bytes of neighbours in k (k_contiguous) or in outer. It has
//
//   bool k_contiguous;                    constant per kernel or per launch
//   bool vector;                          chunks are aligned 16 bytes of memory
//   Place place(int64_t outer) const;     the part that k does not change, kept in registers
//   const T* chunk(const Place&, int64_t k, int& valid);
//                                         the first `valid` elements are memory, the others 0;
//                                         used where `vector`
//   T element(const Place&, int64_t k, int i) const;
//                                         element i of a chunk, 0 outside of the matrix; slow
//
// Any outer and any k are allowed: outside the matrix the elements are zeros.
#pragma once
#include <binade/kernels/cuda/vector.cuh>

#include <algorithm>

namespace binade::kernels {

// The part of y that a block computes: the tile whose first element is (row, column), summed over
// [k, k_end).
struct TileRange {
  int64_t row, column, k, k_end;
};

template <class T>
inline constexpr int kChunk = dev::kVectorOf<T>;

template <class T>
using Chunk = dev::Vector<T>;

// min(max(count, 0), limit) of a 64-bit count as an int.
__device__ __forceinline__ int clamp_count(int64_t count, int limit) {
  return count >= limit ? limit : count < 0 ? 0 : static_cast<int>(count);
}

// A matrix with any strides. `vector` needs stride 1 along the chunk, and an aligned base and a
// multiple of kChunk as the other stride.
template <class T>
struct DenseLoader {
  const T* base = nullptr;
  int64_t outer_stride = 0, k_stride = 0;
  int64_t outer_end = 0, k_end = 0;
  bool k_contiguous = true, vector = false;

  struct Place {
    const T* row;
    int valid;  // k_contiguous: 0 or kChunk; else elements inside the matrix
  };
  __device__ __forceinline__ Place place(int64_t outer) const {
    const int valid = clamp_count(outer_end - outer, kChunk<T>);
    return {base + (valid ? outer * outer_stride : 0), k_contiguous && valid ? kChunk<T> : valid};
  }
  __device__ __forceinline__ const T* chunk(const Place& place, int64_t k, int& valid) const {
    if (k_contiguous) {
      valid = std::min(place.valid, clamp_count(k_end - k, kChunk<T>));
      return valid ? place.row + k : base;
    }
    valid = k < k_end ? place.valid : 0;
    return valid ? place.row + k * k_stride : base;
  }
  __device__ __forceinline__ T element(const Place& place, int64_t k, int i) const {
    k += k_contiguous ? i : 0;
    if (i >= place.valid || k >= k_end) {
      return T(0.0f);
    }
    return place.row[k * k_stride + (k_contiguous ? 0 : i * outer_stride)];
  }
};

// A chunk as a value, for tiles that go through registers; loader.vector must be set.
template <class T, class Loader>
__device__ __forceinline__ Chunk<T> load_chunk(const Loader& loader,
                                               const typename Loader::Place& place, int64_t k) {
  int valid;
  const T* source = loader.chunk(place, k, valid);
  if (valid == kChunk<T>) {
    return dev::load_vector<kChunk<T>>(source);
  }
  Chunk<T> values;
#pragma unroll
  for (int i = 0; i < kChunk<T>; ++i) {
    values[i] = i < valid ? source[i] : T(0.0f);
  }
  return values;
}

}  // namespace binade::kernels
