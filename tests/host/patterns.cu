#include <tests/host/host_launch.h>
#include <tests/host/patterns.h>

namespace binade::kernels::host {
namespace {

struct PatternMemory {
  alignas(16) float square[32][32];
  float padded[32][33];
  alignas(16) double doubles[32];
  unsigned counters[4];
};

__global__ void access_pattern_kernel(AccessPattern pattern, float* x, float* out) {
  auto& shared = dev::shared_mem<PatternMemory>();
  const int thread = threadIdx.x, lane = thread % 32;
  float value = 0;
  switch (pattern) {
    case AccessPattern::coalesced: value = x[lane]; break;
    case AccessPattern::stride_two: value = x[2 * lane]; break;
    case AccessPattern::stride_row: value = x[32 * lane]; break;
    case AccessPattern::broadcast: value = x[0]; break;
    case AccessPattern::shifted: value = x[lane + 1]; break;
    case AccessPattern::vectors: {
      const float4 four = reinterpret_cast<const float4*>(x)[lane];
      value = four.x + four.y + four.z + four.w;
      break;
    }
    case AccessPattern::reversed: value = x[31 - lane]; break;
    case AccessPattern::halves: value = reinterpret_cast<const uint16_t*>(x)[lane]; break;
    case AccessPattern::bytes: value = reinterpret_cast<const unsigned char*>(x)[lane]; break;
    case AccessPattern::half_of_the_lanes:
      if (lane < 16) {
        value = x[lane];
      }
      break;
    case AccessPattern::doubles_of_rows:
      value = static_cast<float>(reinterpret_cast<const double*>(x)[8 * lane]);
      break;
    case AccessPattern::two_warps: value = x[thread]; break;
    case AccessPattern::shared_column: shared.square[lane][5] = 1; break;
    case AccessPattern::shared_padded_column: shared.padded[lane][5] = 1; break;
    case AccessPattern::shared_stride_two: (&shared.square[0][0])[2 * lane] = 1; break;
    case AccessPattern::shared_broadcast:
      if (lane == 0) {
        shared.square[0][0] = 1;
      }
      __syncwarp();
      value = shared.square[0][0];
      break;
    case AccessPattern::shared_vectors:
      reinterpret_cast<float4*>(&shared.square[0][0])[lane] = make_float4(1, 1, 1, 1);
      break;
    case AccessPattern::shared_doubles: shared.doubles[lane] = 1; break;
    case AccessPattern::atomics_on_one: atomicAdd(x, 1.0f); break;
    case AccessPattern::atomics_on_each: atomicAdd(x + lane, 1.0f); break;
    case AccessPattern::atomics_on_four: atomicAdd(x + lane % 4, 1.0f); break;
    case AccessPattern::shared_atomics_on_two:
      if (lane < 4) {
        shared.counters[lane] = 0;
      }
      __syncwarp();
      atomicAdd(&shared.counters[lane % 2], 1u);
      break;
  }
  out[thread] = value;
}

constexpr int kTable[] = {3, 1, 2, 0};
struct CopyArguments {
  const float* x;
  float* y;
  int extra[20];
};
__global__ void copy_with_arguments_kernel(CopyArguments arguments) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  int local[4];
  for (int k = 0; k < 4; ++k) {
    local[k] = arguments.extra[k + threadIdx.x % 16] + kTable[(k + threadIdx.x) % 4];
  }
  const int all = __shfl_sync(~0u, local[threadIdx.x % 4], 0);
  arguments.y[i] = arguments.x[i] + static_cast<float>(all);
}

constexpr int kDivergent = __LINE__;
__global__ void divergent_kernel(float* y) {
  if (threadIdx.x < 8) {
    y[threadIdx.x] = 1;
  }
}

constexpr int kTogether = __LINE__;
__global__ void together_kernel(int* y) {
  __syncthreads();
  if (threadIdx.x < 16) {
    int value = 0;
    for (int i = 0; i < 3; ++i) {
      value += __shfl_xor_sync(0xffff, static_cast<int>(threadIdx.x), 1);
    }
    y[blockIdx.x * 16 + threadIdx.x] = value;
  }
}

}  // namespace

void run_access_pattern(AccessPattern pattern, void* memory, float* out) {
  const unsigned threads = pattern == AccessPattern::two_warps ? 64 : 32;
  run({"access_pattern_kernel", 1, threads, sizeof(PatternMemory)}, access_pattern_kernel, pattern,
      static_cast<float*>(memory), out);
}
void run_with_arguments(const float* x, float* y, int blocks) {
  run({"copy_with_arguments_kernel", static_cast<unsigned>(blocks), 32, 0},
      copy_with_arguments_kernel, CopyArguments{x, y, {}});
}
int run_divergent(float* y) {
  run({"divergent_kernel", 1, 32, 0}, divergent_kernel, y);
  return kDivergent + 3;
}

int run_together(int* y) {
  run({"together_kernel", 2, 48, 0}, together_kernel, y);
  return kTogether + 2;
}

}  // namespace binade::kernels::host
