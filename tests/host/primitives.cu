#include <tests/host/host_launch.h>
#include <tests/host/primitives.h>

namespace binade::kernels::host {
namespace {

__global__ void shuffles_kernel(Shuffle mode, int argument, int width, int* y) {
  const int value = 100 + static_cast<int>(threadIdx.x);
  int got = 0;
  switch (mode) {
    case Shuffle::index: got = __shfl_sync(~0u, value, argument, width); break;
    case Shuffle::up: got = __shfl_up_sync(~0u, value, argument, width); break;
    case Shuffle::down: got = __shfl_down_sync(~0u, value, argument, width); break;
    case Shuffle::exclusive_or: got = __shfl_xor_sync(~0u, value, argument, width); break;
  }
  y[threadIdx.x] = got;
}

__global__ void votes_kernel(unsigned mask, unsigned predicates, unsigned* ballot, int* any,
                             int* all) {
  const unsigned lane = threadIdx.x;
  const int predicate = static_cast<int>(predicates >> lane & 1) * 7;
  if ((mask >> lane & 1) != 0) {
    ballot[lane] = __ballot_sync(mask, predicate);
    any[lane] = __any_sync(mask, predicate);
    all[lane] = __all_sync(mask, predicate);
  }
}

struct TileShared {
  alignas(16) uint16_t tile[32][8];
};
__global__ void load_matrix_kernel(const uint16_t* tile, bool transposed, uint32_t* fragment) {
  auto& shared = dev::shared_mem<TileShared>();
  const int lane = threadIdx.x;
  for (int i = 0; i < 8; ++i) {
    shared.tile[lane][i] = tile[lane * 8 + i];
  }
  __syncthreads();
  uint32_t r[4];
  if (transposed) {
    dev::ldmatrix_x4_trans(r, shared.tile[lane]);
  } else {
    dev::ldmatrix_x4(r, shared.tile[lane]);
  }
  for (int i = 0; i < 4; ++i) {
    fragment[lane * 4 + i] = r[i];
  }
}

template <class T>
__global__ void product_kernel(const uint32_t* a, const uint32_t* b, float* d) {
  const int lane = threadIdx.x;
  uint32_t x[4], y[2];
  float sum[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = a[lane * 4 + i];
    sum[i] = d[lane * 4 + i];
  }
  y[0] = b[lane * 2];
  y[1] = b[lane * 2 + 1];
  dev::mma_m16n8k16<T>(sum, x, y);
  for (int i = 0; i < 4; ++i) {
    d[lane * 4 + i] = sum[i];
  }
}

struct CopyShared {
  alignas(16) unsigned char bytes[16];
};
__global__ void copy_kernel(const unsigned char* source, int source_bytes, unsigned char* before,
                            unsigned char* after, bool look) {
  auto& shared = dev::shared_mem<CopyShared>();
  dev::cp_async16(shared.bytes, source, source_bytes);
  dev::cp_async_commit();
  if (look) {  // a race, and said so in the race build
    for (int i = 0; i < 16; ++i) {
      before[i] = shared.bytes[i];
    }
  }
  dev::cp_async_wait<0>();
  for (int i = 0; i < 16; ++i) {
    after[i] = shared.bytes[i];
  }
}

__global__ void atomics_kernel(AtomicResults* r) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&r->f, 0.5f);
  atomicAdd(&r->d, 0.25);
  atomicAdd(&r->i, -1);
  atomicAdd(&r->u, 3u);
  atomicAdd(&r->l, 1ull << 33);
  atomicMax(&r->highest, thread);
  atomicOr(&r->bits, 1u << thread % 32);
  unsigned old = atomicAdd(&r->swaps, 0u);
  for (unsigned seen = old + 1; seen != old;) {
    seen = old;
    old = atomicCAS(&r->swaps, seen, seen + 1);
  }
}

__global__ void indices_kernel(unsigned* y) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  __syncthreads();
  const int above = __shfl_down_sync(~0u, static_cast<int>(thread), 0);
  y[block * blockDim.x * blockDim.y * blockDim.z + thread] = static_cast<unsigned>(above);
}

struct GroupShared {
  int value[2][64];
};
__global__ void named_barriers_kernel(int rounds, int* y) {
  auto& shared = dev::shared_mem<GroupShared>();
  const int group = threadIdx.x / 64, i = threadIdx.x % 64;
  int value = i;
  for (int round = 0; round < rounds + group; ++round) {
    shared.value[group][i] = value;
    dev::named_barrier(1 + group, 64);
    value = shared.value[group][(i + 33) % 64];
    dev::named_barrier(1 + group, 64);
  }
  y[threadIdx.x] = value;
}

__global__ void maybe_failing_kernel(bool failing, int* y) {
  const int thread = threadIdx.x;
  const int next = __shfl_down_sync(~0u, thread, 1);
  __syncthreads();
  if (failing && thread == 33) {
    __syncwarp(1u);  // of which lane 1 is not part
  }
  __syncthreads();
  y[thread] = 1 + next;
}

__global__ void nothing_kernel() {}

struct PatternShared {
  alignas(16) float square[32][32];
  alignas(16) float padded[32][33];
};
__global__ void pattern_kernel(Pattern pattern, float* memory) {
  auto& shared = dev::shared_mem<PatternShared>();
  const int lane = threadIdx.x;
  switch (pattern) {
    case Pattern::coalesced: memory[lane] = 1.0f; break;
    case Pattern::stride_two: memory[2 * lane] = 1.0f; break;
    case Pattern::vectors: reinterpret_cast<float4*>(memory)[lane] = make_float4(1, 1, 1, 1); break;
    case Pattern::column: shared.square[lane][5] = 1.0f; break;
    case Pattern::padded_column: shared.padded[lane][5] = 1.0f; break;
    case Pattern::load_matrix: {
      for (int i = 0; i < 32; ++i) {
        shared.square[i][lane] = 0.0f;
      }
      __syncwarp();
      uint32_t fragment[4];
      dev::ldmatrix_x4(fragment, &shared.square[lane][0]);  // all rows in the same four banks
      break;
    }
  }
}

}  // namespace

void run_shuffles(Shuffle mode, int argument, int width, int* y) {
  run({"shuffles_kernel", 1, 64, 0}, shuffles_kernel, mode, argument, width, y);
}
void run_votes(unsigned mask, unsigned predicates, unsigned* ballot, int* any, int* all) {
  run({"votes_kernel", 1, 32, 0}, votes_kernel, mask, predicates, ballot, any, all);
}
void run_load_matrix(const uint16_t* tile, bool transposed, uint32_t* fragment) {
  run({"load_matrix_kernel", 1, 32, sizeof(TileShared)}, load_matrix_kernel, tile, transposed,
      fragment);
}
void run_product(bool bf16, const uint32_t* a, const uint32_t* b, float* d) {
  run({"product_kernel", 1, 32, 0}, bf16 ? product_kernel<bfloat16> : product_kernel<half>, a, b,
      d);
}
void run_copy(const unsigned char* source, int source_bytes, unsigned char* before,
              unsigned char* after) {
  run({"copy_kernel", 1, 1, sizeof(CopyShared)}, copy_kernel, source, source_bytes, before, after,
      !has_race_detector());
}
void run_atomics(dim3 grid, int threads, AtomicResults* results) {
  run({"atomics_kernel", grid, threads, 0}, atomics_kernel, results);
}
void run_indices(dim3 grid, dim3 block, unsigned* y) {
  run({"indices_kernel", grid, block, 0}, indices_kernel, y);
}
void run_named_barriers(int rounds, int* y) {
  run({"named_barriers_kernel", 1, 128, sizeof(GroupShared)}, named_barriers_kernel, rounds, y);
}
void run_maybe_failing(bool failing, int* y) {
  run({"maybe_failing_kernel", 1, 64, 0}, maybe_failing_kernel, failing, y);
}
void run_nothing(const Grid& grid) { run(grid, nothing_kernel); }
void run_pattern(Pattern pattern, float* memory) {
  run({"pattern_kernel", 1, 32, sizeof(PatternShared)}, pattern_kernel, pattern, memory);
}

}  // namespace binade::kernels::host
