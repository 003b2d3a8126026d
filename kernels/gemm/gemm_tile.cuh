// The tensor-core block tile: a block computes a kM x kN tile of y = a b in f16 or bf16 with f32
// accumulators, for gemm and for implicit-GEMM convolution alike.
//
// The k dimension is walked in steps of 32. Each step's pieces of a and b are copied to shared
// memory by cp.async in a ring of kStages buffers: while the tensor cores work on one buffer,
// kStages - 1 others are being copied. One barrier per step makes the arrived buffer visible and
// protects the buffer that is refilled next. Every warp owns a kWarpM x kWarpN part of the tile and
// keeps it in registers as 16x8 accumulators; per 16 of k it loads its operands with ldmatrix and
// multiplies them with mma.sync. The larger the warp's part, the less shared memory it reads per
// product: 64x64 reads 8 matrices of 16x16 for 32 products.
//
// Shared memory keeps the operand's own order, rows of k or rows of outer, as 16-byte chunks;
// ldmatrix transposes the second kind while loading (.trans). The chunks of a row are permuted (xor
// with the row number) so that the 8 rows that ldmatrix reads at once are in 8 different groups of
// banks. At the end each warp passes its accumulators through shared memory, so that a thread holds
// 8 neighbours of a row, and calls epilogue(row, column, float (&)[8]).
#pragma once
#include <binade/kernels/gemm/gemm_loader.cuh>

namespace binade::kernels {

// One operand's tile of kOuter x 32 elements in shared memory.
template <class T, int kOuter, int kThreads, bool kContiguousK>
struct TensorOperand {
  static constexpr int kK = 32;
  static constexpr int kRowChunks = (kContiguousK ? kK : kOuter) / 8;
  static constexpr int kChunks = kOuter * kK / 8;
  static constexpr int kCopies = kChunks / kThreads;  // chunks a thread copies per step
  static_assert(kChunks % kThreads == 0 && (kRowChunks == 4 || kRowChunks % 8 == 0));
  using Stage = uint4[kChunks];

  // Rows of 64 bytes: two of them fill the banks once, so the permutation changes every second row.
  static __device__ __forceinline__ int position(int row, int chunk) {
    return row * kRowChunks + (chunk ^ (kRowChunks == 4 ? row / 2 % 4 : row % 8));
  }
  static __device__ __forceinline__ int row_of(int copy) {
    return (static_cast<int>(threadIdx.x) + copy * kThreads) / kRowChunks;
  }
  static __device__ __forceinline__ int chunk_of(int copy) {
    return (static_cast<int>(threadIdx.x) + copy * kThreads) % kRowChunks;
  }

  // Where this thread's chunks are along outer, which the steps do not change.
  static constexpr int kPlaces = kContiguousK || kThreads % kRowChunks != 0 ? kCopies : 1;
  template <class Loader>
  static __device__ __forceinline__ void places(const Loader& loader, int64_t outer,
                                                typename Loader::Place (&places)[kPlaces]) {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      places[i] = loader.place(outer + (kContiguousK ? row_of(i) : chunk_of(i) * 8));
    }
  }

  template <class Loader>
  static __device__ __forceinline__ void copy(const Loader& loader,
                                              const typename Loader::Place (&places)[kPlaces],
                                              int64_t k, Stage& stage) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int row = row_of(i), chunk = chunk_of(i);
      const int64_t at = k + (kContiguousK ? chunk * 8 : row);
      const typename Loader::Place& place = places[kPlaces == 1 ? 0 : i];
      uint4* target = &stage[position(row, chunk)];
      if (loader.vector) {
        int valid;
        const T* source = loader.chunk(place, at, valid);
        dev::cp_async16(target, source, valid * static_cast<int>(sizeof(T)));
      } else {
#pragma unroll 1
        for (int e = 0; e < 8; ++e) {
          reinterpret_cast<T*>(target)[e] = loader.element(place, at, e);
        }
      }
    }
  }

  // The 16x16 matrix at (outer, k), both multiples of 16, in the order of mma.sync. For a the
  // quarters are ordered by outer first (one 16x16 operand), for b by k first (two operands of 16 k
  // by 8 columns).
  template <bool kAsA>
  static __device__ __forceinline__ void fragment(Stage& stage, int outer, int k,
                                                  uint32_t (&registers)[4]) {
    const int lane = static_cast<int>(threadIdx.x) % 32, in_row = lane % 8, quarter = lane / 8;
    const int outer_half = kAsA ? quarter % 2 : quarter / 2;
    const int k_half = kAsA ? quarter / 2 : quarter % 2;
    const int swizzle = kRowChunks == 4 ? in_row / 2 : in_row;
    if constexpr (kContiguousK) {
      const int row = outer + outer_half * 8 + in_row;
      dev::ldmatrix_x4(registers, &stage[row * kRowChunks + ((k / 8 + k_half) ^ swizzle)]);
    } else {
      const int row = k + k_half * 8 + in_row;
      dev::ldmatrix_x4_trans(registers,
                             &stage[row * kRowChunks + ((outer / 8 + outer_half) ^ swizzle)]);
    }
  }
};

// kWarpsM x kWarpsN warps share a tile of kM x kN. kAContiguousK: rows of a are contiguous along k
// (row-major a); kBContiguousK: columns of b are (column-major b).
template <class T, int kM_, int kN_, int kWarpsM, int kWarpsN, int kStages, bool kAContiguousK,
          bool kBContiguousK>
struct TensorTile {
  static constexpr int kM = kM_, kN = kN_, kK = 32;
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;
  static constexpr int kOutPitch = kWarpN + 8;  // floats; conflict-free for pairs in 4 rows
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kStages >= 2);
  using A = TensorOperand<T, kM, kThreads, kAContiguousK>;
  using B = TensorOperand<T, kN, kThreads, kBContiguousK>;

  struct Stages {
    typename A::Stage a[kStages];
    typename B::Stage b[kStages];
  };
  union alignas(128) Shared {
    Stages in;
    float out[kWarpsM * kWarpsN][16 * kOutPitch];
  };

  template <class LoaderA, class LoaderB, class Epilogue>
  static __device__ __forceinline__ void run(Shared& shared, const LoaderA& a, const LoaderB& b,
                                             const TileRange& range, const Epilogue& epilogue) {
    const int64_t row = range.row, column = range.column, k_end = range.k_end;
    int64_t k = range.k;
    typename LoaderA::Place a_places[A::kPlaces];
    typename LoaderB::Place b_places[B::kPlaces];
    A::places(a, row, a_places);
    B::places(b, column, b_places);
    int64_t next = k;
    const auto copy = [&](int stage) {
      if (next < k_end) {
        A::copy(a, a_places, next, shared.in.a[stage]);
        B::copy(b, b_places, next, shared.in.b[stage]);
      }
      next += kK;
      dev::cp_async_commit();
    };
#pragma unroll 1
    for (int stage = 0; stage < kStages - 1; ++stage) {
      copy(stage);
    }
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int warp_row = warp / kWarpsN * kWarpM, warp_column = warp % kWarpsN * kWarpN;
    float sums[kWarpM / 16][kWarpN / 8][4] = {};
    int stage = 0;
#pragma unroll 1
    for (; k < k_end; k += kK) {
      dev::cp_async_wait<kStages - 2>();
      __syncthreads();
      copy(stage == 0 ? kStages - 1 : stage - 1);
      multiply(shared.in.a[stage], shared.in.b[stage], warp_row, warp_column, sums);
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
    dev::cp_async_wait<0>();
    __syncthreads();  // the ring becomes the space of the epilogue
    store(shared.out[warp], row + warp_row, column + warp_column, sums, epilogue);
  }

 private:
  static __device__ __forceinline__ void multiply(typename A::Stage& a, typename B::Stage& b,
                                                  int row, int column,
                                                  float (&sums)[kWarpM / 16][kWarpN / 8][4]) {
#pragma unroll
    for (int k = 0; k < kK; k += 16) {
      uint32_t as[kWarpM / 16][4], bs[kWarpN / 16][4];
#pragma unroll
      for (int i = 0; i < kWarpM / 16; ++i) {
        A::template fragment<true>(a, row + i * 16, k, as[i]);
      }
#pragma unroll
      for (int j = 0; j < kWarpN / 16; ++j) {
        B::template fragment<false>(b, column + j * 16, k, bs[j]);
      }
#pragma unroll
      for (int i = 0; i < kWarpM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < kWarpN / 8; ++j) {
          const uint32_t pair[2] = {bs[j / 2][j % 2 * 2], bs[j / 2][j % 2 * 2 + 1]};
          dev::mma_m16n8k16<T>(sums[i][j], as[i], pair);
        }
      }
    }
  }

  // 16 rows of the warp's part at a time: fragments in, rows of 8 neighbours out.
  template <class Epilogue>
  static __device__ __forceinline__ void store(float (&out)[16 * kOutPitch], int64_t row,
                                               int64_t column,
                                               float (&sums)[kWarpM / 16][kWarpN / 8][4],
                                               const Epilogue& epilogue) {
    constexpr int kLanesPerRow = kWarpN / 8, kRowsPerPass = 32 / kLanesPerRow;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int out_column = lane % kLanesPerRow * 8;
#pragma unroll
    for (int i = 0; i < kWarpM / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kWarpN / 8; ++j) {
        float* pair = &out[lane / 4 * kOutPitch + j * 8 + lane % 4 * 2];
        *reinterpret_cast<float2*>(pair) = make_float2(sums[i][j][0], sums[i][j][1]);
        *reinterpret_cast<float2*>(pair + 8 * kOutPitch) =
            make_float2(sums[i][j][2], sums[i][j][3]);
      }
      __syncwarp();
#pragma unroll 1
      for (int r = lane / kLanesPerRow; r < 16; r += kRowsPerPass) {
        float values[8];
        dev::load_as(&out[r * kOutPitch + out_column], values);
        epilogue(row + i * 16 + r, column + out_column, values);
      }
      __syncwarp();
    }
  }
};

}  // namespace binade::kernels
