// CUDA draws of integers. A thread takes one Philox counter at a time, that is two integers or four
// coin flips; or one choice by weight.
#include <binade/kernels/base/philox.h>
#include <binade/kernels/random/draw_internal.h>
#include <binade/kernels/random/random_internal.h>
#include <binade/kernels/cuda/fault.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;

struct Sequence {
  uint64_t seed, counter;            // of the first thread's numbers
  const int64_t* advance = nullptr;  // numbers to skip, a multiple of kRandomGroup

  __device__ philox::Block numbers(int64_t i) const {
    const uint64_t skipped = advance ? static_cast<uint64_t>(*advance / 4) : 0;
    return philox::generate(seed, counter + skipped + static_cast<uint64_t>(i));
  }
};

__global__ void __launch_bounds__(kThreads)
    random_integers_kernel(Sequence sequence, int64_t* __restrict__ y, int64_t numel, int64_t low,
                           uint64_t range) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; 2 * i < numel;
       i += threads) {
    const philox::Block bits = sequence.numbers(i);
    y[2 * i] = integer_value(bits[0], bits[1], low, range);
    if (2 * i + 1 < numel) {
      y[2 * i + 1] = integer_value(bits[2], bits[3], low, range);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    bernoulli_kernel(Sequence sequence, const T* __restrict__ p, T* __restrict__ y, int64_t numel,
                     FaultSite site) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; 4 * i < numel;
       i += threads) {
    const philox::Block bits = sequence.numbers(i);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t at = 4 * i + j;
      if (at < numel) {
        const auto value = static_cast<double>(p[at]);
        const bool valid = value >= 0 && value <= 1;
        if (!valid) {
          dev::report_number(site, value, 1);
        }
        const bool success = valid && is_success(bits[static_cast<size_t>(j)], value);
        y[at] = T(success ? 1.0f : 0.0f);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    choose_weighted_kernel(const double* __restrict__ weights,  // [rows, classes]
                           const double* __restrict__ sums,     // [rows, classes]
                           const double* __restrict__ at,       // [rows, draws]
                           int64_t* __restrict__ y,             // [rows, draws]
                           int64_t classes, int64_t draws, int64_t numel) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < numel;
       i += threads) {
    const int64_t row = i / draws * classes;
    y[i] = chosen_class(weights + row, sums + row, classes, at[i]);
  }
}

template <class A>
Sequence sequence_of(const A& a) {
  return {a.seed, a.offset / 4, a.advance.template as<const int64_t>()};
}

}  // namespace

void cuda::random_integers(const RandomIntegers& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    launch({"random_integers_kernel", grid_blocks(ceil_div(a.y.numel, 2), kThreads), kThreads},
           random_integers_kernel, sequence_of(a), a.y.as<int64_t>(), a.y.numel, a.low, a.range);
  }
}

void cuda::bernoulli(const Bernoulli& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    const FaultSite site = fault_site(a.y.device, "bernoulli", "p");
    dispatch_floating("bernoulli", a.y.dtype, [&]<class T>(Type<T>) {
      launch({"bernoulli_kernel", grid_blocks(ceil_div(a.y.numel, 4), kThreads), kThreads},
             bernoulli_kernel<T>, sequence_of(a), a.p.as<const T>(), a.y.as<T>(), a.y.numel, site);
    });
  }
}

void cuda::choose_weighted(const ChooseWeighted& a) {
  check_arguments(a);
  if (a.y.numel > 0) {
    launch({"choose_weighted_kernel", grid_blocks(a.y.numel, kThreads), kThreads},
           choose_weighted_kernel, a.weights.as<const double>(), a.sums.as<const double>(),
           a.at.as<const double>(), a.y.as<int64_t>(), a.weights.size(1), a.at.size(1), a.y.numel);
  }
}

}  // namespace binade::kernels
