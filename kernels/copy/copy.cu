// CUDA copies, fills and accumulation.
//
// If both operands share their innermost dimension (or the input repeats along it), the copy is a
// map (cuda/map.cuh): 16 bytes per thread where both are contiguous and aligned, one kernel per
// pair of dtypes, or per width if the bits are copied unchanged.
//
// If x is contiguous along another dimension j than y (a matrix transpose, NCHW to NHWC), a block
// moves tiles of 32 x 32 elements through shared memory: its warps read rows along j and write rows
// along y's innermost dimension i, so both sides are coalesced. One column of padding keeps the
// column reads of the tile free of bank conflicts for every width. Narrow matrices use the map
// instead: there neighbouring threads share cache lines.
#include <binade/kernels/base/convert_internal.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/cuda/map.cuh>

namespace binade::kernels {
namespace {

constexpr int kSide = 32;        // of a tile
constexpr int kTileWarps = 8;    // each moves kSide / kTileWarps rows
constexpr int64_t kNarrow = 12;  // no tiles below this size

int64_t width(DType dtype) { return static_cast<int64_t>(size_of(dtype)); }

// bool is stored as 0 or 1, so its bits can be copied to u8.
bool moves(DType from, DType to) {
  return from == to || (from == DType::boolean && to == DType::u8);
}

struct Identity {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

// f16 and bf16 are converted by way of float, which holds them exactly.
template <class D, class T>
struct Convert {
  __device__ D operator()(T x) const {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
      return converted<D>(static_cast<float>(x));
    } else {
      return converted<D>(x);
    }
  }
};

template <class T>
struct Constant {
  T value;
  __device__ T operator()(T) const { return value; }
};

template <class T>
struct Add {
  __device__ T operator()(T y, T x) const {
    return static_cast<T>(static_cast<Compute<T>>(y) + static_cast<Compute<T>>(x));
  }
};

// Calls f(Type<T>{}) with the type as which elements of a dtype are read.
template <class F>
void dispatch_source(DType dtype, const F& f) {
  dtype == DType::boolean ? f(Type<uint8_t>{}) : dispatch("copy", dtype, f);
}

template <class T>
inline constexpr bool kTrained =
    std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class To, class From>
void copy_converted(const StridedLoop& loop) {
  constexpr int kNarrowest = sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From);
  constexpr int kVector = 16 / kNarrowest < 8 ? 16 / kNarrowest : 8;
  // Unrolls for the dtypes of models, so that strided reads keep memory busy too.
  constexpr int kUnroll = kTrained<To> && kTrained<From> ? 4 : 1;
  map<To, From, 1, kVector, kUnroll>("copy_convert_kernel", loop, Convert<To, From>{});
}

void copy_mapped(const StridedLoop& loop, const Copy& a) {
  if (moves(a.x.dtype, a.y.dtype)) {
    return dispatch_width(a.y.dtype, [&]<class W>(Type<W>) {
      map<W, W, 1, dev::kVectorOf<W>>("copy_move_kernel", loop, Identity{});
    });
  }
  dispatch("copy", a.y.dtype, [&]<class To>(Type<To>) {
    dispatch_source(a.x.dtype, [&]<class From>(Type<From>) {
      if constexpr (!std::is_same_v<To, From> && !std::is_same_v<From, bool>) {
        copy_converted<To, From>(loop);
      }
    });
  });
}

// Transposed copies -------------------------------------------------------------------------------

struct TransposePlan {
  const std::byte* x;
  std::byte* y;
  int64_t n_i, n_j;                // y is contiguous along i, x along j
  int64_t x_stride_i, y_stride_j;  // bytes
  int64_t tiles_i, tiles_j, tiles;
  int32_t dims;  // the other dimensions
  int64_t size[kMaxDims], x_stride[kMaxDims], y_stride[kMaxDims];
  DType from, to;
};

// The dimension along which x is contiguous if that is not y's innermost one, else 0.
int transposed_dim(const StridedLoop& loop, const Copy& a) {
  if (loop.stride(0, 0) != width(a.y.dtype) || loop.stride(1, 0) == width(a.x.dtype) ||
      loop.stride(1, 0) == 0 || loop.size(0) < kNarrow) {
    return 0;
  }
  for (int d = 1; d < loop.dims(); ++d) {
    if (loop.stride(1, d) == width(a.x.dtype) && loop.size(d) >= kNarrow) {
      return d;
    }
  }
  return 0;
}

TransposePlan transpose_plan(const StridedLoop& loop, int j, const Copy& a) {
  TransposePlan p = {.x = loop.data(1),
                     .y = loop.data(0),
                     .n_i = loop.size(0),
                     .n_j = loop.size(j),
                     .x_stride_i = loop.stride(1, 0),
                     .y_stride_j = loop.stride(0, j),
                     .tiles_i = ceil_div(loop.size(0), kSide),
                     .tiles_j = ceil_div(loop.size(j), kSide),
                     .tiles = 0,
                     .dims = 0,
                     .size = {},
                     .x_stride = {},
                     .y_stride = {},
                     .from = a.x.dtype,
                     .to = a.y.dtype};
  p.tiles = loop.numel() / (p.n_i * p.n_j) * p.tiles_i * p.tiles_j;
  for (int d = 1; d < loop.dims(); ++d) {
    if (d != j) {
      p.size[p.dims] = loop.size(d);
      p.x_stride[p.dims] = loop.stride(1, d);
      p.y_stride[p.dims] = loop.stride(0, d);
      ++p.dims;
    }
  }
  return p;
}

// The element at p converted to dtype `to`, as bits. W is as wide as `to`.
template <class W>
__device__ W converted_bits(DType from, DType to, const std::byte* p) {
  const auto finish = [&](auto value) {
    if constexpr (sizeof(W) == 8) {
      return to == DType::f64 ? std::bit_cast<W>(converted<double>(value))
                              : std::bit_cast<W>(converted<int64_t>(value));
    } else if constexpr (sizeof(W) == 4) {
      return to == DType::f32 ? std::bit_cast<W>(converted<float>(value))
                              : std::bit_cast<W>(converted<int32_t>(value));
    } else if constexpr (sizeof(W) == 2) {
      return to == DType::f16 ? converted<half>(value).bits : converted<bfloat16>(value).bits;
    } else {
      return to == DType::u8 ? converted<uint8_t>(value) : static_cast<W>(converted<bool>(value));
    }
  };
  switch (from) {
    case DType::f64: return finish(*reinterpret_cast<const double*>(p));
    case DType::f32: return finish(*reinterpret_cast<const float*>(p));
    case DType::f16: return finish(static_cast<float>(*reinterpret_cast<const half*>(p)));
    case DType::bf16: return finish(static_cast<float>(*reinterpret_cast<const bfloat16*>(p)));
    case DType::i64: return finish(*reinterpret_cast<const int64_t*>(p));
    case DType::i32: return finish(*reinterpret_cast<const int32_t*>(p));
    default: return finish(*reinterpret_cast<const uint8_t*>(p));
  }
}

template <class W>
struct TransposeMemory {
  W tile[kSide][kSide + 1];  // [i][j]
};

template <class W, bool kMoves>
__global__ void __launch_bounds__(kTileWarps * 32)
    copy_transposed_tile_kernel(const __grid_constant__ TransposePlan p) {
  auto& memory = dev::shared_mem<TransposeMemory<W>>();
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int64_t from_width = static_cast<int64_t>(kMoves ? sizeof(W) : size_of(p.from));
  for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    int64_t rest = tile / p.tiles_j;
    const int64_t j0 = (tile - rest * p.tiles_j) * kSide;
    const int64_t above = rest / p.tiles_i;
    const int64_t i0 = (rest - above * p.tiles_i) * kSide;
    rest = above;
    const std::byte* x = p.x + i0 * p.x_stride_i + (j0 + lane) * from_width;
    std::byte* y = p.y + j0 * p.y_stride_j + (i0 + lane) * static_cast<int64_t>(sizeof(W));
    for (int d = 0; d < p.dims; ++d) {
      const int64_t next = rest / p.size[d], index = rest - next * p.size[d];
      x += index * p.x_stride[d];
      y += index * p.y_stride[d];
      rest = next;
    }
#pragma unroll
    for (int row = 0; row < kSide; row += kTileWarps) {
      const int i = row + warp;
      if (i0 + i < p.n_i && j0 + lane < p.n_j) {
        const std::byte* element = x + i * p.x_stride_i;
        if constexpr (kMoves) {
          memory.tile[i][lane] = *reinterpret_cast<const W*>(element);
        } else {
          memory.tile[i][lane] = converted_bits<W>(p.from, p.to, element);
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (int row = 0; row < kSide; row += kTileWarps) {
      const int j = row + warp;
      if (j0 + j < p.n_j && i0 + lane < p.n_i) {
        *reinterpret_cast<W*>(y + j * p.y_stride_j) = memory.tile[lane][j];
      }
    }
    __syncthreads();  // before the next tile
  }
}

void copy_transposed(const TransposePlan& plan) {
  dispatch_width(plan.to, [&]<class W>(Type<W>) {
    const Launch config = {"copy_transposed_tile_kernel", grid_blocks(plan.tiles, 1),
                           kTileWarps * 32, sizeof(TransposeMemory<W>)};
    moves(plan.from, plan.to) ? launch(config, copy_transposed_tile_kernel<W, true>, plan)
                              : launch(config, copy_transposed_tile_kernel<W, false>, plan);
  });
}

}  // namespace

namespace cuda {

void copy(const Copy& a) {
  if (a.x.data == a.y.data && a.x.dtype == a.y.dtype && a.x.sizes == a.y.sizes &&
      a.x.strides == a.y.strides) {
    return;
  }
  const StridedLoop loop("copy", {&a.y, &a.x});
  if (loop.numel() == 0) {
    return;
  }
  if (const int j = transposed_dim(loop, a)) {
    return copy_transposed(transpose_plan(loop, j, a));
  }
  copy_mapped(loop, a);
}

void fill(const Fill& a) {
  const StridedLoop loop("fill", {&a.y, &a.y});
  dispatch("fill", a.y.dtype, [&]<class T>(Type<T>) {
    using S = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    const Constant<S> constant = {static_cast<S>(converted<T>(a.value))};
    map<S, S, 1, dev::kVectorOf<S>>("fill_kernel", loop, constant);
  });
}

void add_into(const AddInto& a) {
  check_arguments(a);
  const StridedLoop loop("add_into", {&a.y, &a.y, &a.x});
  dispatch_floating("add_into", a.y.dtype, [&]<class T>(Type<T>) {
    map<T, T, 2, dev::kVectorOf<T>>("add_into_kernel", loop, Add<T>{});
  });
}

}  // namespace cuda
}  // namespace binade::kernels
