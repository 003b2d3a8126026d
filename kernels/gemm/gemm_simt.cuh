// The register tile without tensor cores: a block of 256 threads computes a kTile x kTile tile of y
// = a b, every thread kTile / 16 squared elements of it, in float (f64: double). For f32, which is
// never rounded to TF32, for f64, and for f16 and bf16 where tensor cores do not support them.
//
// Steps of 16 along k: the next step's chunks are loaded into registers (16 bytes per load) while
// the current one is multiplied, then converted and stored to the other of two shared buffers; one
// barrier per step. Both operands are stored in shared memory as rows of outer, so that a thread
// reads its part of a row of a and of b as 16-byte vectors and multiplies all pairs: 2 x 8 values
// read for 64 multiply-adds. A thread's elements are groups of one vector, half a tile apart:
// neighbouring threads then read neighbouring vectors, without bank conflicts. A warp covers 4 x 8
// vectors.
#pragma once
#include <binade/kernels/gemm/gemm_loader.cuh>

namespace binade::kernels {

template <class T, int kTile>
struct SimtTile {
  using C = Compute<T>;
  static constexpr int kM = kTile, kN = kTile, kK = 16, kThreads = 256;
  static constexpr int kVector = 16 / static_cast<int>(sizeof(C));
  static constexpr int kPerThread = kTile / 16, kGroups = kPerThread / kVector;
  static constexpr int kGroupStep = kTile / kGroups;
  static constexpr int kChunks = kTile * kK / kChunk<T>;
  static constexpr int kCopies = (kChunks + kThreads - 1) / kThreads;
  static_assert(kGroups >= 1 && kPerThread % kVector == 0 && kK % (2 * kChunk<T>) == 0);

  using Buffer = C[kK][kTile + kVector];  // the pad spreads a chunk's k neighbours over the banks
  struct alignas(16) Shared {
    Buffer a[2], b[2];
  };

  // One operand's chunks of this thread between global memory and shared memory.
  template <class Loader>
  class Copier {
   public:
    __device__ __forceinline__ Copier(const Loader& loader, int64_t outer)
        : loader_(loader), place_(loader.place(outer + this->outer())) {}
    // Chunks that are not vectors are read element by element when they are stored to shared
    // memory: the reads do not overlap with arithmetic, but need no registers.
    __device__ __forceinline__ void load(int64_t k) {
      if (loader_.vector) {
#pragma unroll
        for (int i = 0; i < kCopies; ++i) {
          if (has(i)) {
            values_[i] = load_chunk<T>(loader_, place_, k + k_of(i));
          }
        }
      }
    }
    __device__ __forceinline__ void store(Buffer& buffer, int64_t k) const {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        if (!has(i)) {
          continue;
        }
        const int outer = this->outer(), row = k_of(i);
        if (loader_.vector) {
#pragma unroll
          for (int e = 0; e < kChunk<T>; ++e) {
            put(buffer, outer, row, e, values_[i][e]);
          }
        } else {
#pragma unroll 1
          for (int e = 0; e < kChunk<T>; ++e) {
            put(buffer, outer, row, e, loader_.element(place_, k + row, e));
          }
        }
      }
    }

   private:
    static __device__ __forceinline__ int index(int i) {
      return static_cast<int>(threadIdx.x) + i * kThreads;
    }
    __device__ __forceinline__ void put(Buffer& buffer, int outer, int k, int e, T value) const {
      if (loader_.k_contiguous) {
        buffer[k + e][outer] = static_cast<C>(value);
      } else {
        buffer[k][outer + e] = static_cast<C>(value);
      }
    }
    static __device__ __forceinline__ bool has(int i) {
      return kChunks % kThreads == 0 || index(i) < kChunks;
    }
    // Chunks along k: a warp takes 16 rows of outer and two chunks (a sector or more) of each. All
    // chunks of a thread are at the same place of outer.
    static_assert(kThreads % (2 * kTile) == 0 && kThreads % (kTile / kChunk<T>) == 0);
    __device__ __forceinline__ int outer() const {
      return loader_.k_contiguous ? index(0) / 2 % kTile : index(0) % (kTile / kChunk<T>)*kChunk<T>;
    }
    __device__ __forceinline__ int k_of(int i) const {
      return loader_.k_contiguous ? (index(i) % 2 + index(i) / (2 * kTile) * 2) * kChunk<T>
                                  : index(i) / (kTile / kChunk<T>);
    }

    const Loader& loader_;
    typename Loader::Place place_;
    Chunk<T> values_[kCopies];
  };

  // Sums in the order of k; epilogue(row, column, C (&)[kVector]) gets neighbours of a row.
  template <class LoaderA, class LoaderB, class Epilogue>
  static __device__ __forceinline__ void run(Shared& shared, const LoaderA& a, const LoaderB& b,
                                             const TileRange& range, const Epilogue& epilogue) {
    const int64_t row = range.row, column = range.column, k_end = range.k_end;
    int64_t k = range.k;
    Copier<LoaderA> copy_a(a, row);
    Copier<LoaderB> copy_b(b, column);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int thread_row = (warp / 2 * 4 + lane / 8) * kVector;
    const int thread_column = (warp % 2 * 8 + lane % 8) * kVector;
    C sums[kPerThread][kPerThread] = {};
    if (k < k_end) {
      copy_a.load(k);
      copy_b.load(k);
      copy_a.store(shared.a[0], k);
      copy_b.store(shared.b[0], k);
    }
    __syncthreads();
    for (int buffer = 0; k < k_end; k += kK, buffer ^= 1) {
      const bool more = k + kK < k_end;
      if (more) {
        copy_a.load(k + kK);
        copy_b.load(k + kK);
      }
      multiply(shared.a[buffer], shared.b[buffer], thread_row, thread_column, sums);
      if (more) {
        copy_a.store(shared.a[buffer ^ 1], k + kK);
        copy_b.store(shared.b[buffer ^ 1], k + kK);
      }
      __syncthreads();
    }
#pragma unroll 1  // one copy of the epilogue: each row of sums moves to the first row
    for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        C values[kVector];
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          values[j] = sums[0][group * kVector + j];
        }
        epilogue(row + i / kVector * kGroupStep + thread_row + i % kVector,
                 column + group * kGroupStep + thread_column, values);
      }
#pragma unroll
      for (int next = 1; next < kPerThread; ++next) {
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) {
          sums[next - 1][j] = sums[next][j];
        }
      }
    }
  }

 private:
  static __device__ __forceinline__ void read(const C (&line)[kTile + kVector], int at,
                                              C (&values)[kPerThread]) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const auto vector = dev::load_vector<kVector>(&line[at + group * kGroupStep]);
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        values[group * kVector + j] = vector[j];
      }
    }
  }
  static __device__ __forceinline__ void multiply(const Buffer& a, const Buffer& b, int row,
                                                  int column, C (&sums)[kPerThread][kPerThread]) {
#pragma unroll
    for (int k = 0; k < kK; ++k) {
      C as[kPerThread], bs[kPerThread];
      read(a[k], row, as);
      read(b[k], column, bs);
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) {
          sums[i][j] += as[i] * bs[j];
        }
      }
    }
  }
};

}  // namespace binade::kernels
