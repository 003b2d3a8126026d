#include <tests/host/host_launch.h>
#include <tests/host/wrong_kernels.h>

namespace binade::kernels::host {
namespace {

#define SHARED_FLOATS(name, count) \
  static char name##_key;          \
  auto& name = shared_variable<float[count]>(&name##_key, #name)

constexpr int kNeighbour = __LINE__;
__global__ void neighbour_kernel(const float* x, float* y, bool barrier, bool warp_only) {
  const int t = threadIdx.x;
  SHARED_FLOATS(tile, 64);
  tile[t] = x[t];
  if (barrier) {
    __syncthreads();
  }
  const int from = warp_only ? t ^ 1 : (t + 32) % 64;
  y[t] = tile[from];
}

constexpr int kReused = __LINE__;
__global__ void reused_kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  SHARED_FLOATS(tile, 64);
  tile[t] = x[t];
  __syncthreads();
  const float other = tile[63 - t];
  tile[t] = other + 1;
  __syncthreads();
  y[t] = tile[t];
}

constexpr int kHistogram = __LINE__;
__global__ void histogram_kernel(const float*, float* y) {
  if (threadIdx.x < 8) {
    y[threadIdx.x] = 0;
  }
  __syncthreads();
  y[threadIdx.x % 8] += 1;
}

constexpr int kStencil = __LINE__;
__global__ void stencil_kernel(float* y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  const float left = y[(i + 63) % 64];
  __syncthreads();
  y[i] = left;
}

constexpr int kStore = __LINE__;
__global__ void store_kernel(float* y, bool same) {
  y[3] = same ? 7.0f : static_cast<float>(threadIdx.x);
}

constexpr int kPastEnd = __LINE__;
__global__ void past_end_kernel(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = x[i + 2];
  y[i] = value;
}

constexpr int kPastShared = __LINE__;
__global__ void past_shared_kernel(float* y) {
  SHARED_FLOATS(before, 8);
  SHARED_FLOATS(tile, 33);
  before[threadIdx.x % 8] = 0;
  float* const elements = tile;
  elements[threadIdx.x] = 1;
  y[threadIdx.x] = 0;
}

constexpr int kPadding = __LINE__;
__global__ void padding_kernel(const float* matrix, float* y) {
  y[threadIdx.x] = threadIdx.x < 48 ? matrix[threadIdx.x] : 0;
}

constexpr int kIntoInput = __LINE__;
__global__ void into_input_kernel(float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = 0;
}

constexpr int kAccumulates = __LINE__;
__global__ void accumulates_kernel(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }

constexpr int kNeverWritten = __LINE__;
__global__ void never_written_kernel(float* y, bool stores_later) {
  SHARED_FLOATS(tile, 64);
  const int t = threadIdx.x;
  y[t] = tile[t];
  if (stores_later) {
    tile[t] = 1;
  }
}

constexpr int kPolls = __LINE__;
__global__ void polls_kernel(volatile float* y) {
  y[0] = 0;
  while (y[0] == 0) {
  }
}

constexpr int kEndless = __LINE__;
__global__ void endless_kernel(float* y, int step) {
  unsigned i = 1;
  do {
    i += 2 * static_cast<unsigned>(step);
  } while (i != 0);
  y[0] = static_cast<float>(i);
}

constexpr int kMisaligned = __LINE__;
__global__ void misaligned_kernel(const float* x, float* y) {
  const float4 four = *reinterpret_cast<const float4*>(x + 1);
  y[threadIdx.x] = four.x + four.w;
}

constexpr int kWild = __LINE__;
__global__ void wild_kernel(const float* x, float* y, size_t far) { y[threadIdx.x] = x[far]; }

struct Pair {
  float a[4];
  float b[4];
};
constexpr int kMember = __LINE__;
__global__ void member_kernel(float* y, int index) {
  static char pair_key;
  auto& pair = shared_variable<Pair>(&pair_key, "pair");
  pair.a[index] = 1;
  y[threadIdx.x] = 0;
}

constexpr int kOverflow = __LINE__;
__global__ void overflow_kernel(float* y, int rows, int cols) {
  const int n = rows * cols;
  y[threadIdx.x] = static_cast<float>(n);
}

constexpr int kEnded = __LINE__;
__global__ void ended_kernel(float* y, int n) {
  if (static_cast<int>(threadIdx.x) >= n) {
    return;
  }
  y[threadIdx.x] = 1;
  __syncthreads();
}

constexpr int kFloatAtomics = __LINE__;
__global__ void float_atomics_kernel(const float* x, float* y) {
  atomicAdd(&y[0], x[threadIdx.x] * (blockIdx.x == 0 ? 1e7f : 1.0f));
}

constexpr int kWaits = __LINE__;
__global__ void waits_kernel(float* y) {
  static char flag_key;
  auto& flag = shared_variable<unsigned>(&flag_key, "flag");
  if (threadIdx.x == 0) {
    flag = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    while (atomicAdd(&flag, 0u) == 0) {
    }
  } else if (threadIdx.x == 63) {
    atomicAdd(&flag, 1u);
  }
  y[threadIdx.x] = 1;
}

GuardedBuffer input(const char* name, size_t floats, int64_t row = 0, int64_t pitch = 0) {
  return GuardedBuffer({.name = name,
                        .bytes = floats * sizeof(float),
                        .read_only = true,
                        .row_elements = row,
                        .row_pitch = pitch});
}

}  // namespace

WrongBuffers::WrongBuffers()
    : x(input("x", 64)),
      y({.name = "y", .bytes = 64 * sizeof(float)}),
      matrix(input("matrix", 64, 6, 8)) {
  reset();
}

void WrongBuffers::reset() {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i + 1);
  }
  for (GuardedBuffer* buffer : {&x, &y, &matrix}) {
    buffer->reset();
  }
  x.write(values.data(), x.bytes());
  matrix.write(values.data(), matrix.bytes());
}

namespace {

// The elements from x to memory that belongs to the program and is in no range. Any fixed distance
// may end in the stack of a thread.
size_t to_unnamed_memory(const float* x) {
  static const std::vector<float> unnamed(64);
  return (reinterpret_cast<uintptr_t>(unnamed.data()) - reinterpret_cast<uintptr_t>(x)) /
         sizeof(float);
}

}  // namespace

void run_wrong(Wrong wrong, WrongBuffers& buffers) {
  auto* x = static_cast<float*>(buffers.x.data());
  auto* y = static_cast<float*>(buffers.y.data());
  auto* matrix = static_cast<float*>(buffers.matrix.data());
  const auto grid = [](const char* name, unsigned blocks = 1, unsigned threads = 64) {
    return Grid{name, blocks, threads, 0};
  };
  switch (wrong) {
    case Wrong::none:
    case Wrong::neighbour_without_barrier:
    case Wrong::neighbour_without_syncwarp:
      run(grid("neighbour_kernel"), neighbour_kernel, x, y, wrong == Wrong::none,
          wrong == Wrong::neighbour_without_syncwarp);
      break;
    case Wrong::reused_without_barrier: run(grid("reused_kernel"), reused_kernel, x, y); break;
    case Wrong::histogram_without_atomic:
      run(grid("histogram_kernel"), histogram_kernel, x, y);
      break;
    case Wrong::stencil_in_place:
      mark_written(y, buffers.y.bytes());
      run(grid("stencil_kernel", 2, 32), stencil_kernel, y);
      break;
    case Wrong::same_value:
    case Wrong::last_value:
      run(grid("store_kernel", 1, 32), store_kernel, y, wrong == Wrong::same_value);
      break;
    case Wrong::past_end: run(grid("past_end_kernel"), past_end_kernel, x, y); break;
    case Wrong::past_shared_end: run(grid("past_shared_kernel"), past_shared_kernel, y); break;
    case Wrong::padding: run(grid("padding_kernel"), padding_kernel, matrix, y); break;
    case Wrong::into_input: run(grid("into_input_kernel"), into_input_kernel, x, y); break;
    case Wrong::accumulates_into_output:
      run(grid("accumulates_kernel"), accumulates_kernel, x, y);
      break;
    case Wrong::never_written:
    case Wrong::read_before_store:
      run(grid("never_written_kernel"), never_written_kernel, y, wrong == Wrong::read_before_store);
      break;
    case Wrong::polls_flag: run(grid("polls_kernel", 1, 1), polls_kernel, y); break;
    case Wrong::endless: run(grid("endless_kernel", 1, 1), endless_kernel, y, 1); break;
    case Wrong::misaligned: run(grid("misaligned_kernel"), misaligned_kernel, x, y); break;
    case Wrong::wild_pointer:
      run(grid("wild_kernel"), wild_kernel, x, y,
          has_race_detector() ? to_unnamed_memory(x) : 1000);
      break;
    case Wrong::member_index: run(grid("member_kernel", 1, 1), member_kernel, y, 4); break;
    case Wrong::overflow:
      run(grid("overflow_kernel", 1, 1), overflow_kernel, y, 70000, 40000);
      break;
    case Wrong::ended_before_barrier: run(grid("ended_kernel"), ended_kernel, y, 50); break;
    case Wrong::float_atomics: {
      const float zero = 0;
      buffers.y.write(&zero, sizeof zero);
      run(grid("float_atomics_kernel", 3), float_atomics_kernel, x, y);
      break;
    }
    case Wrong::waits_for_another_warp: run(grid("waits_kernel"), waits_kernel, y); break;
  }
}

int line_before(Wrong wrong) {
  switch (wrong) {
    case Wrong::none:
    case Wrong::neighbour_without_barrier:
    case Wrong::neighbour_without_syncwarp: return kNeighbour;
    case Wrong::reused_without_barrier: return kReused;
    case Wrong::histogram_without_atomic: return kHistogram;
    case Wrong::stencil_in_place: return kStencil;
    case Wrong::same_value:
    case Wrong::last_value: return kStore;
    case Wrong::past_end: return kPastEnd;
    case Wrong::past_shared_end: return kPastShared;
    case Wrong::padding: return kPadding;
    case Wrong::into_input: return kIntoInput;
    case Wrong::accumulates_into_output: return kAccumulates;
    case Wrong::never_written:
    case Wrong::read_before_store: return kNeverWritten;
    case Wrong::polls_flag: return kPolls;
    case Wrong::endless: return kEndless;
    case Wrong::misaligned: return kMisaligned;
    case Wrong::wild_pointer: return kWild;
    case Wrong::member_index: return kMember;
    case Wrong::overflow: return kOverflow;
    case Wrong::ended_before_barrier: return kEnded;
    case Wrong::float_atomics: return kFloatAtomics;
    case Wrong::waits_for_another_warp: return kWaits;
  }
  return 0;
}

}  // namespace binade::kernels::host
