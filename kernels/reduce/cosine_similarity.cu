// Cosine similarity on CUDA. A line is the sequence along the dimension, at one position of the
// other dimensions. If the dimension is innermost, a warp or a block takes a line; otherwise the 32
// lanes of a warp take adjacent lines, so that accesses are coalesced, and the 8 warps of a block
// split their elements. The backward writes both gradients in one pass.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/reduce/cosine_similarity.h>
#include <binade/kernels/cuda/block_reduce.cuh>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>
#include <binade/kernels/reduce/reducers.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256, kLines = 32, kParts = kThreads / kLines;
constexpr int64_t kLongLine = 2048;  // a block per line from here on

template <class T, class C = Compute<T>>
struct Problem {
  StridedIndex<4> index;  // of lines: x1, x2, dx1, dx2
  int64_t stride[4];      // bytes along the line
  int64_t lines, length;
  int32_t lanes;  // threads of a line: 32 or kThreads along it; kParts, kLines lines side by side
  double eps;
  C* y;
  C* inverse[2];
  const C* dy;     // null in the forward
  bool wanted[2];  // dx1, dx2

  __device__ bool side_by_side() const { return lanes == kParts; }
  __device__ int lane() const {
    return side_by_side() ? threadIdx.x / kLines : static_cast<int>(threadIdx.x) % lanes;
  }
  __device__ int line_of_block() const {
    return side_by_side() ? threadIdx.x % kLines : static_cast<int>(threadIdx.x) / lanes;
  }
  __device__ int lines_per_block() const { return kThreads / lanes; }
};

// In double, where the square of every float is in range.
struct Sums {
  double product, square1, square2;
  __device__ Sums merge(const Sums& other) const {
    return {product + other.product, square1 + other.square1, square2 + other.square2};
  }
};

struct Smem {
  union {
    dev::BlockReduceMemory<Sums, kThreads> block;
    Sums part[kParts][kLines];
  };
};

// The sums of the threads of a line; on every thread, or side by side on those of lane 0.
template <class T>
__device__ __forceinline__ Sums reduce_line(const Problem<T>& p, Sums sums, Smem& memory) {
  if (!p.side_by_side()) {
    return p.lanes == 32 ? dev::warp_reduce<dev::Merge>(sums)
                         : dev::block_reduce<dev::Merge>(sums, memory.block);
  }
  memory.part[threadIdx.x / kLines][threadIdx.x % kLines] = sums;
  __syncthreads();
  for (int i = 1; i < kParts && p.lane() == 0; ++i) {
    sums = sums.merge(memory.part[i][threadIdx.x % kLines]);
  }
  __syncthreads();  // before the memory is used again
  return sums;
}

template <class T, class C>
__device__ __forceinline__ C value_at(const std::byte* line, int64_t offset) {
  return static_cast<C>(*reinterpret_cast<const T*>(line + offset));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    cosine_similarity_forward_kernel(const __grid_constant__ Problem<T> p) {
  using C = Compute<T>;
  auto& memory = dev::shared_mem<Smem>();
  const int64_t step = static_cast<int64_t>(gridDim.x) * p.lines_per_block();
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * p.lines_per_block(); base < p.lines;
       base += step) {
    const int64_t line = base + p.line_of_block();
    const bool active = line < p.lines;
    std::byte* at[4];
    p.index.locate(active ? line : 0, at);
    dev::Accumulator<dev::Scalar<dev::Sum>, double, 3> sum;
#pragma unroll 4
    for (int64_t i = p.lane(); i < (active ? p.length : 0); i += p.lanes) {
      const double u = static_cast<double>(value_at<T, C>(at[0], i * p.stride[0])),
                   v = static_cast<double>(value_at<T, C>(at[1], i * p.stride[1]));
      const double terms[3] = {u * v, u * u, v * v};
      sum.add(terms);
    }
    const Sums all = reduce_line(p, Sums{sum.total(0), sum.total(1), sum.total(2)}, memory);
    if (active && p.lane() == 0) {
      const double norm1 = std::sqrt(all.square1), norm2 = std::sqrt(all.square2);
      const double inverse1 = 1 / (norm1 < p.eps ? p.eps : norm1);
      const double inverse2 = 1 / (norm2 < p.eps ? p.eps : norm2);
      p.y[line] = static_cast<C>(all.product * inverse1 * inverse2);
      p.inverse[0][line] = static_cast<C>(norm1 < p.eps ? -inverse1 : inverse1);
      p.inverse[1][line] = static_cast<C>(norm2 < p.eps ? -inverse2 : inverse2);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    cosine_similarity_backward_kernel(const __grid_constant__ Problem<T> p) {
  using C = Compute<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * p.lines_per_block();
  for (int64_t line = static_cast<int64_t>(blockIdx.x) * p.lines_per_block() + p.line_of_block();
       line < p.lines; line += step) {
    std::byte* at[4];
    p.index.locate(line, at);
    const C signed1 = p.inverse[0][line], signed2 = p.inverse[1][line];
    const C inverse1 = std::fabs(signed1), inverse2 = std::fabs(signed2);
    const C across1 = p.dy[line] * inverse1, across2 = p.dy[line] * inverse2;
    const C along1 = signed1 < C(0) ? C(0) : across1 * p.y[line];
    const C along2 = signed2 < C(0) ? C(0) : across2 * p.y[line];
#pragma unroll 4
    for (int64_t i = p.lane(); i < p.length; i += p.lanes) {
      // Unit vectors first: the square of an inverse may leave the range.
      const C u = value_at<T, C>(at[0], i * p.stride[0]) * inverse1,
              v = value_at<T, C>(at[1], i * p.stride[1]) * inverse2;
      if (p.wanted[0]) {
        *reinterpret_cast<T*>(at[2] + i * p.stride[2]) = static_cast<T>(across1 * v - along1 * u);
      }
      if (p.wanted[1]) {
        *reinterpret_cast<T*>(at[3] + i * p.stride[3]) = static_cast<T>(across2 * u - along2 * v);
      }
    }
  }
}

// launchers ---------------------------------------------------------------------------------------

// The view at position 0 of the dimension, without that dimension.
View without(const View& x, int dim) {
  View line = x;
  line.sizes[dim] = 1;
  line.numel = element_count(line.sizes);
  return line;
}

int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

// True if another dimension has a smaller stride than `dim`.
bool has_inner_dimension(const View& x, int dim) {
  for (int d = 0; d < x.dim(); ++d) {
    if (d != dim && x.size(d) > 1 && x.strides[d] != 0 &&
        magnitude(x.strides[d]) < magnitude(x.strides[dim])) {
      return true;
    }
  }
  return false;
}

template <class T, class Arguments>
Problem<T> problem_of(const Arguments& a, const View& dx1, const View& dx2) {
  Problem<T> p{};
  const View* all[4] = {&a.x1, &a.x2, dx1 ? &dx1 : &a.x1, dx2 ? &dx2 : &a.x1};
  const View lines[4] = {without(*all[0], a.dim), without(*all[1], a.dim), without(*all[2], a.dim),
                         without(*all[3], a.dim)};
  p.index = StridedIndex<4>::row_major({&lines[0], &lines[1], &lines[2], &lines[3]});
  for (int k = 0; k < 4; ++k) {
    p.stride[k] = all[k]->strides[a.dim] * static_cast<int64_t>(sizeof(T));
  }
  p.wanted[0] = static_cast<bool>(dx1);
  p.wanted[1] = static_cast<bool>(dx2);
  p.lines = a.y.numel;
  p.length = a.x1.size(a.dim);
  p.lanes = has_inner_dimension(a.x1, a.dim) ? kParts : p.length >= kLongLine ? kThreads : 32;
  p.y = a.y.template as<Compute<T>>();
  p.inverse[0] = a.inverse1.template as<Compute<T>>();
  p.inverse[1] = a.inverse2.template as<Compute<T>>();
  return p;
}

}  // namespace

void cuda::cosine_similarity_forward(const CosineSimilarityForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  dispatch_floating("cosine_similarity", a.x1.dtype, [&]<class T>(Type<T>) {
    Problem<T> p = problem_of<T>(a, kNoView, kNoView);
    p.eps = a.eps;
    launch({"cosine_similarity_forward_kernel", grid_blocks(p.lines * p.lanes, kThreads), kThreads,
            sizeof(Smem)},
           cosine_similarity_forward_kernel<T>, p);
  });
}

void cuda::cosine_similarity_backward(const CosineSimilarityBackward& a) {
  check_arguments(a);
  if (a.x1.numel == 0) {
    return;
  }
  dispatch_floating("cosine_similarity", a.x1.dtype, [&]<class T>(Type<T>) {
    Problem<T> p = problem_of<T>(a, a.dx1, a.dx2);
    p.dy = a.dy.as<Compute<T>>();
    launch(
        {"cosine_similarity_backward_kernel", grid_blocks(p.lines * p.lanes, kThreads), kThreads},
        cosine_similarity_backward_kernel<T>, p);
  });
}

}  // namespace binade::kernels
