// The format lab on a device. A thread takes one element, one block of a block format, or one
// output of a matrix product at a time: these kernels study numbers and are not made for speed.
#include <binade/kernels/formats/format_values.h>
#include <binade/kernels/formats/formats.h>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kFormatThreads = 256;

struct FormatElements {
  FormatGrid grid;
  Rounding rounding;
  FormatRandom random;
  const float* scale;
  int64_t count;
};

template <class T>
__global__ void __launch_bounds__(kFormatThreads)
    round_to_format_kernel(const __grid_constant__ FormatElements a, const T* x, T* y) {
  const double scale = scale_or_one(a.scale);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kFormatThreads + threadIdx.x; i < a.count;
       i += static_cast<int64_t>(gridDim.x) * kFormatThreads) {
    y[i] = static_cast<T>(round_scaled(static_cast<double>(x[i]), scale, a.grid, a.rounding,
                                       a.random.at(a.rounding, static_cast<uint64_t>(i))));
  }
}

struct FormatBlocks {
  FormatBlock rule;
  const float* scale;
  int64_t items, per_outer, length, inner, block;
};

template <class T>
__global__ void __launch_bounds__(kFormatThreads)
    round_blocks_kernel(const __grid_constant__ FormatBlocks a, const T* x, T* y) {
  const double second = scale_or_one(a.scale);
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kFormatThreads + threadIdx.x;
       item < a.items; item += static_cast<int64_t>(gridDim.x) * kFormatThreads) {
    const int64_t outer = item / a.per_outer, start = item % a.per_outer / a.inner * a.block;
    const int64_t left = a.length - start;
    a.rule.run(x, y, (outer * a.length + start) * a.inner + item % a.inner,
               left < a.block ? left : a.block, a.inner, second);
  }
}

struct FormatMatmul {
  FormatSum rule;
  int64_t k, n, outputs;
};

template <class T>
__global__ void __launch_bounds__(kFormatThreads)
    accumulate_matmul_kernel(const __grid_constant__ FormatMatmul p, const T* a, const T* b, T* y) {
  for (int64_t element = static_cast<int64_t>(blockIdx.x) * kFormatThreads + threadIdx.x;
       element < p.outputs; element += static_cast<int64_t>(gridDim.x) * kFormatThreads) {
    const int64_t row = element / p.n * p.k, column = element % p.n;
    y[element] = static_cast<T>(p.rule.run(element, p.k, [&](int64_t i) {
      return static_cast<double>(a[row + i]) * static_cast<double>(b[i * p.n + column]);
    }));
  }
}

}  // namespace

void cuda::round_to_format(const RoundToFormat& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  dispatch_floating("round_to_format", a.x.dtype, [&]<class T>(Type<T>) {
    const FormatElements elements{a.grid,
                                  a.rounding,
                                  {a.seed, a.offset, a.advance.as<int64_t>()},
                                  a.scale.as<float>(),
                                  a.x.numel};
    launch({"round_to_format_kernel", grid_blocks(a.x.numel, kFormatThreads), kFormatThreads},
           round_to_format_kernel<T>, elements, a.x.as<T>(), a.y.as<T>());
  });
}

void cuda::round_blocks(const RoundBlocks& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const int64_t per_outer = ceil_div(a.length, a.block) * a.inner;
  const FormatBlocks blocks{
      {a.grid, a.scales, a.rule, a.rounding, {a.seed, a.offset, a.advance.as<int64_t>()}},
      a.scale.as<float>(),
      a.x.numel / (a.length * a.inner) * per_outer,
      per_outer,
      a.length,
      a.inner,
      a.block};
  dispatch_floating("round_blocks", a.x.dtype, [&]<class T>(Type<T>) {
    launch({"round_blocks_kernel", grid_blocks(blocks.items, kFormatThreads), kFormatThreads},
           round_blocks_kernel<T>, blocks, a.x.as<T>(), a.y.as<T>());
  });
}

void cuda::accumulate_matmul(const AccumulateMatmul& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const FormatMatmul plan{
      {a.grid, a.rounding, a.order, a.chunk, {a.seed, a.offset, a.advance.as<int64_t>()}},
      a.a.size(1),
      a.b.size(1),
      a.y.numel};
  dispatch_floating("accumulate_matmul", a.a.dtype, [&]<class T>(Type<T>) {
    launch({"accumulate_matmul_kernel", grid_blocks(a.y.numel, kFormatThreads), kFormatThreads},
           accumulate_matmul_kernel<T>, plan, a.a.as<T>(), a.b.as<T>(), a.y.as<T>());
  });
}

}  // namespace binade::kernels
