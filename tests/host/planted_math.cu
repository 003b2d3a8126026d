// Pointwise, norm and GEMM kernels with planted mistakes. The mistake is a template argument, so
// that a correct kernel contains no trace of it.
#include <tests/host/host_launch.h>
#include <tests/host/planted_bugs.h>

#include <cmath>
#include <vector>

namespace binade::kernels::host {
namespace {

// Pointwise: 16 bytes per thread with a tail -----------------------------------------------------

template <Planted bug>
__global__ void scale_kernel(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= n) {
    return;
  }
  if (bug == Planted::vector_past_end || i + 4 <= n) {
    const float* source = bug == Planted::misaligned_vector ? x + i + 1 : x + i;
    const float4 v = *reinterpret_cast<const float4*>(source);
    *reinterpret_cast<float4*>(y + i) = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    return;
  }
  for (int k = i; k < n; ++k) {
    y[k] = 2 * x[k];
  }
  if (bug == Planted::atomic_past_end) {
    atomicAdd(&y[n], 1.0f);
  }
}

template <Planted bug>
bool run_pointwise() {
  const int n = 1023;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i);
  }
  run({"scale_kernel", 4, 64, 0}, scale_kernel<bug>, x.data(), y.data(), n);
  for (int i = 0; i < n; ++i) {
    if (y[i] != 2 * x[i]) {
      return false;
    }
  }
  return true;
}

// Norm: two block sums in one array --------------------------------------------------------------

struct NormShared {
  float part[4];
  float after[4];
};

__device__ __forceinline__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset >>= 1) {
    v += __shfl_xor_sync(~0u, v, offset);
  }
  return v;
}

template <Planted bug>
__device__ __forceinline__ float block_sum(float v, NormShared& shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = warp_sum(v);
  if (bug != Planted::no_barrier_before_reuse) {
    __syncthreads();
  }
  if (lane == 0) {
    shared.part[warp] = v;
  }
  if (bug != Planted::no_barrier_before_read) {
    __syncthreads();
  }
  return warp_sum(lane < 4 ? shared.part[lane] : 0.0f);
}

template <Planted bug>
__global__ void norm_kernel(const float* x, float* y, int cols) {
  auto& shared = dev::shared_mem<NormShared>();
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    sum += row[i];
  }
  const float mean = block_sum<bug>(sum, shared) / cols;
  if (bug == Planted::shared_past_struct) {
    float* part = shared.part;
    part[8 + threadIdx.x] = mean;
  }
  if (bug == Planted::shared_past_member && threadIdx.x == 0) {
    shared.part[cols / 75] = mean;  // 4
  }
  float squares = bug == Planted::uninitialised_shared ? shared.after[1] : 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    squares += (row[i] - mean) * (row[i] - mean);
  }
  const float total = block_sum<bug>(squares, shared);
  for (int i = threadIdx.x; i < cols; i += blockDim.x) {
    y[static_cast<size_t>(blockIdx.x) * cols + i] = (row[i] - mean) * rsqrtf(total / cols);
  }
}

template <Planted bug>
bool run_norm() {
  const int rows = 3, cols = 300;
  std::vector<float> x(rows * cols), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 37 % 101);
  }
  const size_t shared_bytes =
      bug == Planted::small_shared_memory ? sizeof(NormShared) - 4 : sizeof(NormShared);
  run({"norm_kernel", rows, 128, shared_bytes}, norm_kernel<bug>, x.data(), y.data(), cols);
  for (int r = 0; r < rows; ++r) {
    double mean = 0, squares = 0;
    for (int i = 0; i < cols; ++i) {
      mean += x[r * cols + i] / double{cols};
    }
    for (int i = 0; i < cols; ++i) {
      squares += (x[r * cols + i] - mean) * (x[r * cols + i] - mean);
    }
    for (int i = 0; i < cols; ++i) {
      const double want = (x[r * cols + i] - mean) / std::sqrt(squares / cols);
      if (!(std::abs(want - y[r * cols + i]) < 1e-4)) {
        return false;
      }
    }
  }
  return true;
}

// GEMM: C [32, n] = A [32, 64] B [64, n], two warps, two stages of 16 ----------------------------

constexpr int kRows = 32, kDepth = 64, kStage = 16, kPitch = 24;

struct GemmShared {
  alignas(16) half a[2][kRows][kPitch];
  alignas(16) half b[2][kStage][kPitch];
};

template <Planted bug>
__device__ __forceinline__ void load_stage(GemmShared& shared, const half* a, const half* b, int n,
                                           int stage) {
  const int thread = threadIdx.x, k = stage * kStage;
  const int row = thread / 2, chunk = thread % 2 * 8;
  const int past = bug == Planted::copy_source_past_end && stage == 3 ? kDepth : 0;
  const int off = bug == Planted::misaligned_copy ? 1 : 0;
  dev::cp_async16(&shared.a[stage % 2][row][chunk], a + row * kDepth + k + chunk + past + off);
  if (thread < 32) {
    const bool inside = chunk + 8 <= n;
    dev::cp_async16(&shared.b[stage % 2][row][chunk], b + (k + row) * n + (inside ? chunk : 0),
                    inside ? 16 : 0);
  }
  dev::cp_async_commit();
}

template <Planted bug>
__device__ __forceinline__ void multiply_stage(GemmShared& shared, int stage, float (&sum)[2][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t a[4], b[4];
  dev::ldmatrix_x4(a, &shared.a[stage % 2][warp * 16 + lane % 16][lane / 16 * 8]);
  const half* row = &shared.b[stage % 2][lane % 16][lane / 16 * 8];
  if (bug == Planted::misaligned_load_matrix) {
    row += 1;
  }
  if (bug == Planted::not_transposed) {
    dev::ldmatrix_x4(b, row);
  } else {
    dev::ldmatrix_x4_trans(b, row);
  }
  const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
  dev::mma_m16n8k16<half>(sum[0], a, first);
  dev::mma_m16n8k16<half>(sum[1], a, second);
}

template <Planted bug>
__global__ void gemm_kernel(const half* a, const half* b, float* c, int n) {
  auto& shared = dev::shared_mem<GemmShared>();
  constexpr int kStages = kDepth / kStage;
  float sum[2][4] = {};
  load_stage<bug>(shared, a, b, n, 0);
  for (int stage = 0; stage < kStages; ++stage) {
    if (stage + 1 < kStages) {
      load_stage<bug>(shared, a, b, n, stage + 1);
    }
    if (stage + 1 < kStages || bug == Planted::last_stage_not_waited) {
      dev::cp_async_wait<1>();
    } else {
      dev::cp_async_wait<0>();
    }
    if (bug != Planted::no_barrier_after_wait) {
      __syncthreads();
    }
    multiply_stage<bug>(shared, stage, sum);
    if (bug != Planted::no_barrier_before_stage) {
      __syncthreads();
    }
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int tile = 0; tile < 2; ++tile) {
    for (int r = 0; r < 4; ++r) {
      const int row = warp * 16 + lane / 4 + 8 * (r >> 1);
      const int column = tile * 8 + 2 * (lane % 4) + (r & 1);
      if (column < n || bug == Planted::epilogue_past_row) {
        c[row * n + column] = sum[tile][r];
      }
    }
  }
}

template <Planted bug>
bool run_gemm() {
  const int n = bug == Planted::epilogue_past_row ? 8 : 16;
  std::vector<half> a(kRows * kDepth), b(kDepth * n);
  std::vector<float> c(kRows * n);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = half(static_cast<float>(i * 7 % 11) - 5);
  }
  for (size_t i = 0; i < b.size(); ++i) {
    b[i] = half(static_cast<float>(i * 5 % 13) - 6);
  }
  run({"gemm_kernel", 1, 64, sizeof(GemmShared)}, gemm_kernel<bug>, a.data(), b.data(), c.data(),
      n);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < n; ++j) {
      float want = 0;
      for (int k = 0; k < kDepth; ++k) {
        want += static_cast<float>(a[i * kDepth + k]) * static_cast<float>(b[k * n + j]);
      }
      if (c[i * n + j] != want) {
        return false;
      }
    }
  }
  return true;
}

#define ENTRY(kernel, bug) \
  { PlantedKernel::kernel, Planted::bug, run_##kernel<Planted::bug> }
const PlantedEntry kEntries[] = {
    ENTRY(pointwise, none),
    ENTRY(pointwise, vector_past_end),
    ENTRY(pointwise, misaligned_vector),
    ENTRY(pointwise, atomic_past_end),
    ENTRY(norm, none),
    ENTRY(norm, shared_past_struct),
    ENTRY(norm, shared_past_member),
    ENTRY(norm, no_barrier_before_read),
    ENTRY(norm, no_barrier_before_reuse),
    ENTRY(norm, uninitialised_shared),
    ENTRY(norm, small_shared_memory),
    ENTRY(gemm, none),
    ENTRY(gemm, epilogue_past_row),
    ENTRY(gemm, copy_source_past_end),
    ENTRY(gemm, no_barrier_before_stage),
    ENTRY(gemm, no_barrier_after_wait),
    ENTRY(gemm, last_stage_not_waited),
    ENTRY(gemm, not_transposed),
    ENTRY(gemm, misaligned_load_matrix),
    ENTRY(gemm, misaligned_copy),
};
#undef ENTRY

}  // namespace

std::span<const PlantedEntry> planted_math() { return kEntries; }

}  // namespace binade::kernels::host
