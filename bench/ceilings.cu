// gpu_ceilings measures a GPU's peak rates per clock cycle, so that a kernel's rate can be given as
// a share of the peak at any clock frequency: tensor-core products (mma.sync), fused multiply-adds,
// matrix loads from shared memory, and copies of global memory.
//   gpu_ceilings [--json]
// The emulated device counts nanoseconds of the host, which say nothing about a GPU.
#include <binade/kernels/base/stream.h>
#include <tests/cuda/conformance.h>

#include <chrono>
#include <cstdio>

namespace binade::conformance {
namespace {

using kernels::dev::shared_mem;

#ifdef BINADE_HOST_EXECUTION
long long clock64() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
#endif

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kRounds = kHardware ? 4096 : 2;
constexpr int kProducts = 8, kSums = 16, kLoads = 4;  // independent operations per round
constexpr int kSamples = kHardware ? 7 : 2;

// kernels
// ------------------------------------------------------------------------------------------

// Measures the cycles that a block needs for `body`, as its first thread sees them.
template <class F>
__device__ __forceinline__ void timed(long long* cycles, F&& body) {
  __syncthreads();
  const long long start = clock64();
  body();
  __syncthreads();
  if (threadIdx.x == 0) {
    cycles[blockIdx.x] = clock64() - start;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    product_clock_kernel(long long* cycles, float* sink, int rounds) {
  float d[kProducts][4] = {};
  const uint32_t a[4] = {threadIdx.x, 1, 2, 3}, b[2] = {threadIdx.x, 5};  // tiny numbers
  timed(cycles, [&] {
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
      for (int i = 0; i < kProducts; ++i) {
        kernels::dev::mma_m16n8k16<T>(d[i], a, b);
      }
    }
  });
  float sum = 0;
  for (int i = 0; i < kProducts; ++i) {
    sum += d[i][0] + d[i][1] + d[i][2] + d[i][3];
  }
  sink[blockIdx.x * kThreads + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    sum_clock_kernel(long long* cycles, float* sink, int rounds) {
  float sums[kSums] = {};
  const float a = 1.0f + 1e-7f * static_cast<float>(threadIdx.x), b = 1e-3f;
  timed(cycles, [&] {
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        sums[i] = fmaf(sums[i], a, b);
      }
    }
  });
  float sum = 0;
  for (int i = 0; i < kSums; ++i) {
    sum += sums[i];
  }
  sink[blockIdx.x * kThreads + threadIdx.x] = sum;
}

struct LoadSmem {
  alignas(16) uint4 rows[kThreads];
};
__global__ void __launch_bounds__(kThreads)
    load_clock_kernel(long long* cycles, float* sink, int rounds) {
  auto& smem = shared_mem<LoadSmem>();
  smem.rows[threadIdx.x] = make_uint4(threadIdx.x, 0, 0, 0);
  uint32_t fragments[kLoads][4] = {};
  timed(cycles, [&] {
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        kernels::dev::ldmatrix_x4(fragments[i], &smem.rows[(threadIdx.x + 32 * i) % kThreads]);
      }
    }
  });
  uint32_t sum = 0;
  for (int i = 0; i < kLoads; ++i) {
    sum += fragments[i][0] ^ fragments[i][3];
  }
  sink[blockIdx.x * kThreads + threadIdx.x] = static_cast<float>(sum);
}

// One wave of blocks, so the slowest block takes as long as the kernel.
__global__ void __launch_bounds__(kThreads)
    copy_clock_kernel(const uint4* x, uint4* y, long long count, long long* cycles) {
  timed(cycles, [&] {
    const long long step = static_cast<long long>(gridDim.x) * kThreads;
    long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
      const uint4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
      y[i] = a, y[i + step] = b, y[i + 2 * step] = c, y[i + 3 * step] = d;
    }
    for (; i < count; i += step) {
      y[i] = x[i];
    }
  });
}

// launchers
// ----------------------------------------------------------------------------------------

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Timer {  // measures device time in seconds
 public:
  Timer() {
    for (cudaEvent_t& event : events_) {
      check(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
    }
  }
  ~Timer() {
    for (const cudaEvent_t event : events_) {
      cudaEventDestroy(event);
    }
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  template <class F>
  double seconds(F&& body) {
    auto* stream = static_cast<cudaStream_t>(kernels::current_stream(kDevice));
    check(cudaEventRecord(events_[0], stream), "cudaEventRecord");
    body();
    check(cudaEventRecord(events_[1], stream), "cudaEventRecord");
    check(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t events_[2] = {};
};

struct Ceiling {
  std::string name, unit;
  double per_clock;      // of one multiprocessor; for copies, of the whole GPU
  double per_second;     // of the whole GPU
  double gigahertz = 0;  // cycles per second, if both are known
};

double longest(const OnDevice<long long>& cycles) {
  const std::vector<long long> all = cycles.get();
  return static_cast<double>(std::max<long long>(1, *std::max_element(all.begin(), all.end())));
}

struct Work {
  const char *name, *unit;
  void (*kernel)(long long*, float*, int);
  double per_warp;  // work of a warp per round
  size_t shared_bytes = 0;
};

Ceiling ceiling_of(const Work& work, int processors) {
  const auto blocks = static_cast<unsigned>(processors);
  const OnDevice<long long> cycles(blocks);
  const OnDevice<float> sink(static_cast<size_t>(blocks) * kThreads);
  Timer timer;
  std::vector<double> rates, clocks;
  for (int i = 0; i <= kSamples; ++i) {
    const double seconds = timer.seconds([&] {
      start({work.name, dim3(blocks), dim3(kThreads), work.shared_bytes}, work.kernel,
            cycles.data(), sink.data(), kRounds);
    });
    if (i > 0) {  // the first run is for warming up
      rates.push_back(work.per_warp * kWarps * kRounds / longest(cycles));
      clocks.push_back(longest(cycles) / seconds * 1e-9);
    }
  }
  const double clock = median(clocks), rate = median(rates);
  return {work.name, work.unit, rate, rate * clock * 1e9 * processors, clock};
}

void copies(int processors, std::vector<Ceiling>& ceilings) {
  const size_t bytes = kHardware ? size_t{1} << 30 : size_t{1} << 16;
  const OnDevice<uint4> x(bytes / sizeof(uint4)), y(bytes / sizeof(uint4));
  const auto blocks = static_cast<unsigned>(2 * processors);
  const OnDevice<long long> cycles(blocks);
  Timer timer;
  std::vector<double> per_clock, by_kernel, by_runtime;
  auto* stream = static_cast<cudaStream_t>(kernels::current_stream(kDevice));
  const double moved = 2.0 * static_cast<double>(bytes);  // read and written
  for (int i = 0; i <= kSamples; ++i) {
    const double kernel = timer.seconds([&] {
      start({"copy_clock_kernel", dim3(blocks), dim3(kThreads)}, copy_clock_kernel, x.data(),
            y.data(), static_cast<long long>(bytes / sizeof(uint4)), cycles.data());
    });
    const double runtime = timer.seconds([&] {
      check(cudaMemcpyAsync(y.data(), x.data(), bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    });
    if (i > 0) {
      per_clock.push_back(moved / longest(cycles));
      by_kernel.push_back(moved / kernel);
      by_runtime.push_back(moved / runtime);
    }
  }
  const double rate = median(per_clock), kernel = median(by_kernel);
  ceilings.push_back({"copy by a kernel", "B", rate, kernel, kernel / rate * 1e-9});
  ceilings.push_back({"copy by the runtime", "B", 0, median(by_runtime)});
}

void print(const std::vector<Ceiling>& ceilings, int processors, bool json) {
  const char* separator = "";
  if (json) {
    std::printf("{\"processors\": %d, \"hardware\": %s, \"ceilings\": [", processors,
                kHardware ? "true" : "false");
  }
  for (const Ceiling& c : ceilings) {
    if (json) {
      std::printf(
          "%s{\"name\": \"%s\", \"unit\": \"%s\", \"per_clock\": %.1f, \"per_second\": %.4g, "
          "\"gigahertz\": %.3f}",
          separator, c.name.c_str(), c.unit.c_str(), c.per_clock, c.per_second, c.gigahertz);
      separator = ", ";
    } else {
      std::printf("%-24s %10.1f %s per clock  %10.4g %s/s  at %.3f GHz\n", c.name.c_str(),
                  c.per_clock, c.unit.c_str(), c.per_second, c.unit.c_str(), c.gigahertz);
    }
  }
  std::printf(json ? "]}\n" : "%d multiprocessors\n", processors);
}

int run(int count, char** words) {
  const bool json = count > 1 && std::string(words[1]) == "--json";
  if (count > (json ? 2 : 1)) {
    std::fprintf(stderr, "usage: gpu_ceilings [--json]\n");
    return 2;
  }
  const kernels::DeviceCount& devices = kernels::cuda_devices();
  if (devices.count == 0) {
    std::printf("skipped: %s\n", devices.reason.c_str());
    return 77;
  }
  const int processors = attribute(cudaDevAttrMultiProcessorCount);
  constexpr double kProduct = 2.0 * 16 * 8 * 16 * kProducts;  // FLOP of a warp per round
  std::vector<Work> works = {
      {"mma.sync f16", "FLOP", product_clock_kernel<half>, kProduct},
      {"fma f32", "FLOP", sum_clock_kernel, 2.0 * 32 * kSums},
      {"ldmatrix", "B", load_clock_kernel, 512.0 * kLoads, sizeof(LoadSmem)},
  };
  if (has_sm80()) {
    works.push_back({"mma.sync bf16", "FLOP", product_clock_kernel<bfloat16>, kProduct});
  }
  std::vector<Ceiling> ceilings;
  for (const Work& work : works) {
    ceilings.push_back(ceiling_of(work, processors));
  }
  copies(processors, ceilings);
  print(ceilings, processors, json);
  return 0;
}

}  // namespace
}  // namespace binade::conformance

int main(int count, char** words) {
  try {
    return binade::conformance::run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
}
