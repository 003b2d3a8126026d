// Measures the FLOP ceiling with independent multiply-adds that stay in registers.
#include <bench/kernel_timer.h>
#include <bench/machine_facts.h>
#include <bench/statistics.h>
#include <binade/kernels/base/parallel.h>

#include <algorithm>
#include <chrono>

namespace binade::bench {
namespace {

constexpr int kChains = 12, kBytes = 64;  // enough chains to hide the latency of two units

// The same loop for each instruction set; the compiler maps the vectors to its registers.
#define BINADE_FLOP_LOOP                                                  \
  using Vector [[gnu::vector_size(kBytes)]] = T;                          \
  Vector sums[kChains];                                                   \
  for (Vector & sum : sums) {                                             \
    sum = Vector{} + start;                                               \
  }                                                                       \
  const Vector factor = Vector{} + T(0.999), shift = Vector{} + T(0.001); \
  for (int64_t i = 0; i < rounds; ++i) {                                  \
    _Pragma("GCC unroll 12") for (int c = 0; c < kChains; ++c) {          \
      sums[c] = sums[c] * factor + shift;                                 \
    }                                                                     \
  }                                                                       \
  Vector all = sums[0];                                                   \
  for (int c = 1; c < kChains; ++c) {                                     \
    all += sums[c];                                                       \
  }                                                                       \
  return all[0];

template <class T>
T plain_loop(int64_t rounds, T start) {
  BINADE_FLOP_LOOP
}
#ifdef __x86_64__
template <class T>
[[gnu::target("avx2,fma")]] T avx2_loop(int64_t rounds, T start) {
  BINADE_FLOP_LOOP
}
#ifdef __clang__
#define BINADE_AVX512_TARGET "avx512f,fma"
#else
#define BINADE_AVX512_TARGET "avx512f,fma,prefer-vector-width=512"
#endif
template <class T>
[[gnu::target(BINADE_AVX512_TARGET)]] T avx512_loop(int64_t rounds, T start) {
  BINADE_FLOP_LOOP
}
#endif
#undef BINADE_AVX512_TARGET
#undef BINADE_FLOP_LOOP

template <class T>
T flop_loop(int64_t rounds, T start) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) {
    return avx512_loop<T>(rounds, start);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return avx2_loop<T>(rounds, start);
  }
#endif
  return plain_loop<T>(rounds, start);
}

template <class T>
double cpu_flops() {
  constexpr int64_t kRounds = 400000;
  const int64_t parts = kernels::threads();
  std::vector<double> rates;
  std::vector<T> results(static_cast<size_t>(parts) * 16);
  for (int sample = 0; sample < 9; ++sample) {
    const auto begin = std::chrono::steady_clock::now();
    kernels::parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        results[static_cast<size_t>(i) * 16] = flop_loop<T>(kRounds, T(sample + i));
      }
    });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    rates.push_back(2.0 * kRounds * kChains * (kBytes / sizeof(T)) * double(parts) / seconds);
  }
  volatile T sink = results[0];  // keeps the compiler from removing the loops
  static_cast<void>(sink);
  return *std::ranges::max_element(rates);
}

}  // namespace

double measured_flops(DType dtype, Device device) {
  if (device.is_cpu()) {
    return dtype == DType::f64 ? cpu_flops<double>() : cpu_flops<float>();
  }
  if (device.kind == Device::kEmulated) {
    return 0;  // the emulated device has no speed of its own
  }
  const CaseSettings product{.kernel = "gemm",
                             .rows = 4096,
                             .cols = 4096,
                             .dtype = dtype,
                             .device = device,
                             .provider = "auto"};
  const Prepared work = prepare(product);
  Timer timer(work, device);
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    seconds.push_back(timer.sample());
  }
  return work.flops / median(seconds);
}

}  // namespace binade::bench
