// Tiles of attention for the tensor cores: rows of one head in shared memory, padded with zeros to
// kD columns. Each row is 16-byte chunks in a permuted order (xor with the row number), so that the
// 8 rows that ldmatrix reads at once lie in different banks.
//
// The scores of 16 rows stay in the registers of one warp: the accumulators of mma.sync, rounded
// and paired, are the left operand of the next product. A lane has rows lane / 4 and lane / 4 + 8,
// and in every 8 columns 2 (lane % 4) and the next one.
#pragma once
#include <binade/kernels/attention/attention.cuh>

namespace binade::kernels {

inline constexpr int kTensorThreads = 128;
inline constexpr int kOwnRows = 64;  // per block; 16 per warp

template <class T, int kRows, int kD>
struct HeadTile {
  static constexpr int kRowChunks = kD / 8, kChunks = kRows * kRowChunks;
  static_assert(kRowChunks % 8 == 0 && kChunks % kTensorThreads == 0);
  uint4 chunk[kChunks];

  static __device__ __forceinline__ int position(int row, int column_chunk) {
    return row * kRowChunks + (column_chunk ^ (row % 8));
  }

  // Starts to copy rows [first, first + kRows) of a head; rows and columns beyond its end become
  // zeros.
  __device__ __forceinline__ void load(const HeadArray<const T>& array, const T* data,
                                       int64_t first) {
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kChunks; i += kTensorThreads) {
      const int row = i / kRowChunks, column = i % kRowChunks * 8;
      uint4* target = &chunk[position(row, column / 8)];
      const int valid =
          first + row < array.rows ? clamp_count(int64_t{array.columns} - column, 8) : 0;
      const T* source = valid > 0 ? data + array.offset(first + row, column) : data;
      if (array.vector) {
        dev::cp_async16(target, source, valid * static_cast<int>(sizeof(T)));
      } else {
#pragma unroll 1
        for (int e = 0; e < 8; ++e) {
          reinterpret_cast<T*>(target)[e] =
              e < valid ? source[e * array.column_stride] : T::from_bits(0);
        }
      }
    }
  }

  // Rows [row, row + 16) and columns [k, k + 16) as the left operand.
  __device__ __forceinline__ void left(int row, int k, uint32_t (&registers)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, quarter = lane / 8;
    const int at = row + quarter % 2 * 8 + lane % 8;
    dev::ldmatrix_x4(registers, &chunk[position(at, k / 8 + quarter / 2)]);
  }
  // The transpose of rows [row, row + 16), columns [k, k + 16), as two right operands of 8 rows.
  __device__ __forceinline__ void right_transposed(int row, int k, uint32_t (&registers)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, quarter = lane / 8;
    const int at = row + quarter / 2 * 8 + lane % 8;
    dev::ldmatrix_x4(registers, &chunk[position(at, k / 8 + quarter % 2)]);
  }
  // Rows [row, row + 16), which are k, and columns [column, column + 16), as two right operands.
  __device__ __forceinline__ void right(int row, int column, uint32_t (&registers)[4]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, quarter = lane / 8;
    const int at = row + quarter % 2 * 8 + lane % 8;
    dev::ldmatrix_x4_trans(registers, &chunk[position(at, column / 8 + quarter / 2)]);
  }
};

template <class T>
__device__ __forceinline__ void multiply_pair(float (&first)[4], float (&second)[4],
                                              const uint32_t (&a)[4], const uint32_t (&b)[4]) {
  const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
  dev::mma_m16n8k16<T>(first, a, b0);
  dev::mma_m16n8k16<T>(second, a, b1);
}

// sums = rows [row, row + 16) of a times all kOther rows of b, over `columns` columns.
template <class T, int kRows, int kOther, int kD>
__device__ __forceinline__ void multiply_rows(const HeadTile<T, kRows, kD>& a, int row,
                                              const HeadTile<T, kOther, kD>& b, int columns,
                                              float (&sums)[kOther / 8][4]) {
#pragma unroll
  for (int n = 0; n < kOther / 8; ++n) {
    sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0;
  }
#pragma unroll 2
  for (int k = 0; k < columns; k += 16) {
    uint32_t left[4];
    a.left(row, k, left);
#pragma unroll
    for (int n = 0; n < kOther / 16; ++n) {
      uint32_t right[4];
      b.right_transposed(n * 16, k, right);
      multiply_pair<T>(sums[2 * n], sums[2 * n + 1], left, right);
    }
  }
}

template <class T>
__device__ __forceinline__ uint32_t rounded_pair(float low, float high) {
  return uint32_t{T(low).bits} | uint32_t{T(high).bits} << 16;
}

// totals += weights (16 x kOther, rounded to T) times the rows of b.
template <class T, int kOther, int kD>
__device__ __forceinline__ void add_weighted(const float (&weights)[kOther / 8][4],
                                             const HeadTile<T, kOther, kD>& b,
                                             float (&totals)[kD / 8][4]) {
#pragma unroll
  for (int k = 0; k < kOther / 16; ++k) {
    const float(&low)[4] = weights[2 * k], (&high)[4] = weights[2 * k + 1];
    const uint32_t left[4] = {rounded_pair<T>(low[0], low[1]), rounded_pair<T>(low[2], low[3]),
                              rounded_pair<T>(high[0], high[1]), rounded_pair<T>(high[2], high[3])};
#pragma unroll
    for (int n = 0; n < kD / 16; ++n) {
      uint32_t right[4];
      b.right(k * 16, n * 16, right);
      multiply_pair<T>(totals[2 * n], totals[2 * n + 1], left, right);
    }
  }
}

// Which of a lane's scores dropout keeps: bit 4 n + i for scores[n][i]. Own rows from `own` against
// kOther others from `other`: queries against keys, or with kOwnKeys keys against queries.
template <bool kOwnKeys, int kOther>
__device__ __forceinline__ uint32_t kept_bits(const DropoutMask& kept, int64_t own, int64_t other) {
  static_assert(kOther <= 64);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint32_t bits = 0;
#pragma unroll 1
  for (int j = 0; j < kOther / 2; j += 2) {
    const int64_t row = own + lane / 4 + j % 4 * 4, column = other + j / 4 * 8 + lane % 4 * 2;
    if constexpr (kOwnKeys) {
      bits |= uint32_t{kept(column, row)} << j | uint32_t{kept(column + 1, row)} << (j + 1);
    } else {
      bits |= kept.pair(row, column) << j;
    }
  }
  return bits;
}

template <int kOther>
__device__ __forceinline__ void drop_weights(uint32_t kept, float (&weights)[kOther / 8][4]) {
#pragma unroll
  for (int i = 0; i < kOther / 2; ++i) {
    weights[i / 4][i % 4] = kept >> i & 1 ? weights[i / 4][i % 4] : 0;
  }
}

// Writes the 16 rows from `row` of a warp's totals, times scale[0] and scale[1].
template <class T, int kD>
__device__ __forceinline__ void store_rows(const HeadArray<T>& target, T* data, int64_t row,
                                           const float (&totals)[kD / 8][4],
                                           const float (&scale)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t at = row + lane / 4 + i / 2 * 8;
      const int column = n * 8 + lane % 4 * 2 + i % 2;
      if (at < target.rows && column < target.columns) {
        data[target.offset(at, column)] = T(totals[n][i] * scale[i / 2]);
      }
    }
  }
}

}  // namespace binade::kernels
