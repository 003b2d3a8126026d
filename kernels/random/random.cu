// CUDA random fills and dropout. A thread takes two consecutive Philox counters, that is eight
// numbers. Counters belong to positions of the sequence, so the numbers are those of the CPU at any
// offset. If the eight elements are contiguous and aligned they are read and written as vectors;
// else one by one, at their places in row-major order.
#include <binade/kernels/base/philox.h>
#include <binade/kernels/random/random_internal.h>
#include <binade/kernels/random/random_values.h>
#include <binade/kernels/cuda/strided.cuh>
#include <binade/kernels/cuda/vector.cuh>

namespace binade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kNumbers = kRandomGroup;  // of a thread at a time

enum class Source : uint8_t { uniform, normal, dropout };

struct RandomPlan {
  StridedIndex<2> index = {};        // y, x
  uint64_t seed = 0, counter = 0;    // of the first thread's numbers
  const int64_t* advance = nullptr;  // numbers to skip, a multiple of kNumbers
  int64_t groups = 0;                // of kNumbers numbers
  int64_t skipped = 0;               // numbers of the first group before the first element
  bool vectors = false;              // whole groups are aligned in y and x
  double low = 0, scale = 0;         // y = low + scale * value
  float p = 0;                       // dropout: y = scale * x if the number is at least p
};

// Rounds twice, as the CPU does: not a fused multiply-add.
__device__ double scaled(double low, double scale, double value) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(low, __dmul_rn(scale, value));
#else
  return low + scale * value;
#endif
}

__device__ __forceinline__ void generate(const RandomPlan& p, int64_t group,
                                         uint32_t (&bits)[kNumbers]) {
  const uint64_t counter = p.counter + (p.advance ? static_cast<uint64_t>(*p.advance / 4) : 0);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const philox::Block block =
        philox::generate(p.seed, counter + static_cast<uint64_t>(2 * group + half));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      bits[4 * half + i] = block[static_cast<size_t>(i)];
    }
  }
}

// Computes y[j] from the numbers of a group, and for dropout from x.
template <Source kSource, class T>
__device__ __forceinline__ void values_of(const RandomPlan& p, const uint32_t (&bits)[kNumbers],
                                          const T (&x)[kNumbers], T (&y)[kNumbers]) {
  using C = Compute<T>;
#pragma unroll
  for (int j = 0; j < kNumbers; j += 2) {
    if constexpr (kSource == Source::dropout) {
      const C factor = static_cast<C>(p.scale);
#pragma unroll
      for (int k = j; k < j + 2; ++k) {
        const C kept = static_cast<C>(x[k]) * factor;
        y[k] = static_cast<T>(uniform_value(bits[k]) >= p.p ? kept : C(0));
      }
    } else {
      NormalPair pair = {uniform_value(bits[j]), uniform_value(bits[j + 1])};
      if constexpr (kSource == Source::normal) {
        pair = normal_pair(bits[j], bits[j + 1]);
      }
      y[j] = static_cast<T>(static_cast<C>(scaled(p.low, p.scale, pair.first)));
      y[j + 1] = static_cast<T>(static_cast<C>(scaled(p.low, p.scale, pair.second)));
    }
  }
}

template <Source kSource, class T>
__global__ void __launch_bounds__(kThreads) random_kernel(const __grid_constant__ RandomPlan p) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t g = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; g < p.groups;
       g += threads) {
    uint32_t bits[kNumbers];
    generate(p, g, bits);
    const int64_t first = g * kNumbers - p.skipped;
    const int64_t from = first > 0 ? first : 0;
    const int64_t rest = p.index.numel - first;
    const int64_t end = first + (rest < kNumbers ? rest : kNumbers);
    T x[kNumbers] = {}, y[kNumbers];
    if (p.vectors && end - from == kNumbers) {
      if constexpr (kSource == Source::dropout) {
        dev::load_as(reinterpret_cast<const T*>(p.index.data[1]) + first, x);
      }
      values_of<kSource>(p, bits, x, y);
      dev::store_from(reinterpret_cast<T*>(p.index.data[0]) + first, y);
      continue;
    }
    T* target[kNumbers];
#pragma unroll
    for (int j = 0; j < kNumbers; ++j) {
      const int64_t i = first + j;
      target[j] = nullptr;
      if (i >= from && i < end) {
        std::byte* at[2];
        p.index.locate(i, at);
        target[j] = reinterpret_cast<T*>(at[0]);
        if constexpr (kSource == Source::dropout) {
          x[j] = *reinterpret_cast<const T*>(at[1]);
        }
      }
    }
    values_of<kSource>(p, bits, x, y);
#pragma unroll
    for (int j = 0; j < kNumbers; ++j) {
      if (target[j]) {
        *target[j] = y[j];
      }
    }
  }
}

// Draws numbers from position `offset` on, one for each element of y.
template <Source kSource>
void run(const char* name, const View& x, const View& y, uint64_t offset, RandomPlan p) {
  if (y.numel == 0) {
    return;
  }
  p.index = StridedIndex<2>::row_major({&y, &x});
  p.counter = offset / kNumbers * 2;
  p.skipped = static_cast<int64_t>(offset % kNumbers);
  p.groups = ceil_div(p.skipped + y.numel, kNumbers);
  dispatch_floating(name, y.dtype, [&]<class T>(Type<T>) {
    const auto first = (kNumbers - p.skipped) % kNumbers;  // element of the first whole group
    p.vectors = y.contiguous && x.contiguous && dev::is_aligned<kNumbers>(y.as<T>() + first) &&
                dev::is_aligned<kNumbers>(x.as<T>() + first);
    launch({name, grid_blocks(p.groups, kThreads), kThreads}, random_kernel<kSource, T>, p);
  });
}

}  // namespace

namespace cuda {

void fill_uniform(const FillUniform& a) {
  check_arguments(a);
  run<Source::uniform>(
      "fill_uniform_kernel", a.y, a.y, a.offset,
      {.seed = a.seed, .advance = a.advance.as<int64_t>(), .low = a.low, .scale = a.high - a.low});
}

void fill_normal(const FillNormal& a) {
  check_arguments(a);
  run<Source::normal>(
      "fill_normal_kernel", a.y, a.y, a.offset,
      {.seed = a.seed, .advance = a.advance.as<int64_t>(), .low = a.mean, .scale = a.std});
}

void dropout(const Dropout& a) {
  check_arguments(a);
  run<Source::dropout>("dropout_kernel", a.x, a.y, a.offset,
                       {.seed = a.seed,
                        .advance = a.advance.as<int64_t>(),
                        .scale = 1.0 / (1.0 - a.p),
                        .p = static_cast<float>(a.p)});
}

}  // namespace cuda
}  // namespace binade::kernels
