// CUDA cumulative sums. If there are too few lines along the dimension to fill the device, they are
// split into chunks.
//
// cumsum_rows_kernel: a block walks over a chunk in tiles of kTile elements. Each thread sums its
// kItems adjacent elements, the sums are scanned over lanes, then warps, and the total is carried
// to the next tile. For lines whose elements are adjacent in memory. cumsum_columns_kernel: a
// thread walks over a chunk; adjacent threads have adjacent lines.
//
// With several chunks a first launch writes their totals, the same kernels scan these, and the last
// launch starts each chunk from the total before it. The splits depend on the shape only, and the
// order of additions does not depend on the schedule.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/sort/cumsum_internal.h>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256, kItems = 4, kTile = kThreads * kItems;

template <class T>
using Total = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;

struct ScanPlan {
  StridedIndex<2> lines;              // x, y at the first element of each line
  int64_t n, x_step, y_step;          // along the dimension; steps in bytes
  int64_t chunks = 1, chunk = 0;      // parts of a line, and the elements in each but the last
  std::byte* totals = nullptr;        // if set, the sums of the chunks go here instead of y
  const std::byte* before = nullptr;  // the sum up to each chunk's end, per line and chunk
};

// The initial sum of a chunk.
template <class C>
__device__ __forceinline__ C start_of(const ScanPlan& p, int64_t line, int64_t chunk) {
  return p.before && chunk > 0 ? reinterpret_cast<const C*>(p.before)[line * p.chunks + chunk - 1]
                               : C(0);
}

template <class C>
struct ScanMemory {
  C warp[kThreads / 32];
};

// The sum of `value` over lower threads of the block; `all` becomes the sum over the block.
template <class C>
__device__ __forceinline__ C sum_before(C value, C& all, ScanMemory<C>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  C inclusive = value;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const C lower = __shfl_up_sync(~0u, inclusive, offset);
    inclusive = lane >= offset ? lower + inclusive : inclusive;
  }
  const C lower = __shfl_up_sync(~0u, inclusive, 1);
  if (lane == 31) {
    memory.warp[warp] = inclusive;
  }
  __syncthreads();
  C before = C(0);
  all = C(0);
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) {
    before = i == warp ? all : before;
    all = all + memory.warp[i];
  }
  __syncthreads();  // before the memory is used again
  return lane > 0 ? before + lower : before;
}

template <class T>
__global__ void __launch_bounds__(kThreads) cumsum_rows_kernel(const __grid_constant__ ScanPlan p) {
  using C = Total<T>;
  auto& memory = dev::shared_mem<ScanMemory<C>>();
  for (int64_t task = blockIdx.x; task < p.lines.numel * p.chunks; task += gridDim.x) {
    const int64_t line = task / p.chunks, chunk = task - line * p.chunks;
    const int64_t begin = chunk * p.chunk;
    const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
    std::byte* at[2];
    p.lines.locate(line, at);
    C carry = start_of<C>(p, line, chunk);
    for (int64_t tile = begin; tile < end; tile += kTile) {
      const int64_t first = tile + static_cast<int64_t>(threadIdx.x) * kItems;
      C sums[kItems], all;
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int64_t i = first + j;
        const C value =
            i < end ? static_cast<C>(*reinterpret_cast<const T*>(at[0] + i * p.x_step)) : C(0);
        sums[j] = j > 0 ? sums[j - 1] + value : value;
      }
      const C before = carry + sum_before(sums[kItems - 1], all, memory);
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        const int64_t i = first + j;
        if (i < end && !p.totals) {
          *reinterpret_cast<T*>(at[1] + i * p.y_step) = static_cast<T>(before + sums[j]);
        }
      }
      carry = carry + all;
    }
    if (p.totals && threadIdx.x == 0) {
      reinterpret_cast<C*>(p.totals)[task] = carry;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    cumsum_columns_kernel(const __grid_constant__ ScanPlan p) {
  using C = Total<T>;
  for (int64_t task = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       task < p.lines.numel * p.chunks; task += static_cast<int64_t>(gridDim.x) * kThreads) {
    const int64_t chunk = task / p.lines.numel, line = task - chunk * p.lines.numel;
    const int64_t begin = chunk * p.chunk;
    const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
    std::byte* at[2];
    p.lines.locate(line, at);
    C total = start_of<C>(p, line, chunk);
#pragma unroll 4
    for (int64_t i = begin; i < end; ++i) {
      total = total + static_cast<C>(*reinterpret_cast<const T*>(at[0] + i * p.x_step));
      if (!p.totals) {
        *reinterpret_cast<T*>(at[1] + i * p.y_step) = static_cast<T>(total);
      }
    }
    if (p.totals) {
      reinterpret_cast<C*>(p.totals)[line * p.chunks + chunk] = total;
    }
  }
}

// Launchers ---------------------------------------------------------------------------------------

template <class T>
void start(const ScanPlan& p, bool rows) {
  const int64_t tasks = p.lines.numel * p.chunks;
  if (rows) {
    launch({"cumsum_rows_kernel", grid_blocks(tasks, 1), kThreads, sizeof(ScanMemory<Total<T>>)},
           cumsum_rows_kernel<T>, p);
  } else {
    launch({"cumsum_columns_kernel", grid_blocks(tasks, kThreads), kThreads},
           cumsum_columns_kernel<T>, p);
  }
}

// Splits lines into chunks of a multiple of `least` elements, for about `wanted` tasks.
void cut(ScanPlan& p, int64_t wanted, int64_t least) {
  const int64_t useful = ceil_div(p.n, least), more = ceil_div(wanted, p.lines.numel);
  const int64_t chunks = useful < more ? useful : more;
  p.chunk = ceil_div(ceil_div(p.n, chunks), least) * least;
  p.chunks = ceil_div(p.n, p.chunk);
}

ScanPlan plan_of(const CumulativeSum& a) {
  View x = a.x, y = a.y;  // with size 1 along the dimension
  x.sizes[a.dim] = y.sizes[a.dim] = 1;
  x.numel = y.numel = a.x.numel / a.x.size(a.dim);
  const auto width = static_cast<int64_t>(size_of(a.x.dtype));
  ScanPlan p = {.lines = StridedIndex<2>(StridedLoop("cumsum", {&x, &y})),
                .n = a.x.size(a.dim),
                .x_step = a.x.strides[a.dim] * width,
                .y_step = a.y.strides[a.dim] * width};
  if (a.reverse) {
    p.lines.data[0] += (p.n - 1) * p.x_step;
    p.lines.data[1] += (p.n - 1) * p.y_step;
    p.x_step = -p.x_step;
    p.y_step = -p.y_step;
  }
  return p;
}

template <class T>
void run(ScanPlan p, bool rows, Device device) {
  using C = Total<T>;
  constexpr int64_t kEnoughRows = 512, kEnoughColumns = 16384, kLeastColumn = 64;
  rows ? cut(p, kEnoughRows, 4 * kTile) : cut(p, kEnoughColumns, kLeastColumn);
  if (p.chunks == 1) {
    return start<T>(p, rows);
  }
  const int64_t lines = p.lines.numel;
  const Workspace totals(static_cast<size_t>(lines * p.chunks) * sizeof(C), device);
  p.totals = totals.as<std::byte>();
  start<T>(p, rows);
  // Scans their sums in place: [lines, chunks] of C.
  ScanPlan scan = {.lines = {}, .n = p.chunks, .x_step = sizeof(C), .y_step = sizeof(C)};
  scan.chunk = p.chunks;
  scan.lines.numel = lines;
  scan.lines.wide = lines >= int64_t(1) << 31;
  scan.lines.set_size(0, lines);
  for (int k = 0; k < 2; ++k) {
    scan.lines.data[k] = p.totals;
    scan.lines.stride[k][0] = p.chunks * static_cast<int64_t>(sizeof(C));
  }
  start<C>(scan, p.chunks >= 32);
  p.before = p.totals;
  p.totals = nullptr;
  start<T>(p, rows);
}

}  // namespace

void cuda::cumsum(const CumulativeSum& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const ScanPlan p = plan_of(a);
  constexpr int64_t kShort = 256;
  const bool rows = p.n >= kShort && (a.x.strides[a.dim] == 1 || p.lines.numel < 32);
  dispatch_sums(a.x.dtype, [&]<class T>(Type<T>) { run<T>(p, rows, a.y.device); });
}

}  // namespace binade::kernels
