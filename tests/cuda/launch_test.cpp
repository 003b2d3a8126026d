// Tests the checks of launch(), and what it tells the runtime about a kernel.
#include "device_kernels.h"

#include <binade/kernels/gemm/gemm.h>
#include <binade/kernels/gemm/gemm_provider.h>

namespace binade::launch_test {
namespace {

namespace host = kernels::host;
using LaunchTest = DeviceTest;

template <int kMost>
__global__ void __launch_bounds__(kMost, 2) bounded_kernel(float* y) {
  if (threadIdx.x == 0) {
    y[blockIdx.x] = static_cast<float>(blockDim.x);
  }
}
__global__ void unbounded_kernel(float* y) { y[blockIdx.x] = static_cast<float>(blockDim.x); }

struct Tile {
  float values[16384];
};
__global__ void tile_kernel(float* y) {
  auto& tile = kernels::dev::shared_mem<Tile>();
  tile.values[threadIdx.x] = 2;
  y[threadIdx.x] = tile.values[threadIdx.x];
}

template <class K>
void start(const DeviceArray& y, kernels::Launch launch, K kernel) {
  const View view = y;
  const kernels::KernelCall call("start", view);
  kernels::launch(launch, kernel, y.data());
}

template <class K>
const void* code_of(K kernel) {
  return reinterpret_cast<const void*>(kernel);
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
TEST_F(LaunchTest, LaunchBoundsAreKnown) {
  EXPECT_EQ(host::launch_bound(code_of(bounded_kernel<64>)), 64);
  EXPECT_EQ(host::launch_bound(code_of(bounded_kernel<256>)), 256);
  EXPECT_EQ(host::launch_bound(code_of(bounded_kernel<1024>)), 1024);
  EXPECT_EQ(host::launch_bound(code_of(unbounded_kernel)), 1024);
}

TEST_F(LaunchTest, MoreThreadsThanTheLaunchBoundsAreAnError) {
  const DeviceArray y(4);
  start(y, {"bounded_kernel", dim3(1), dim3(64)}, bounded_kernel<64>);
  EXPECT_EQ(y.get()[0], 64);
  const std::string error = error_of<kernels::CudaError>([&] {
    start(y, {"bounded_kernel", dim3(1), dim3(96)}, bounded_kernel<64>);
  });
  expect_parts(error, {"start: launch failed", "bounded_kernel", "got 96 threads",
                       "expected at most 64", "__launch_bounds__"});
  // The runtime refuses it too.
  EXPECT_EQ(host::enqueue_kernel({.name = "bounded_kernel",
                                  .grid = dim3(1),
                                  .block = dim3(96),
                                  .kernel = code_of(bounded_kernel<64>)},
                                 [] {}),
            cudaErrorLaunchOutOfResources);
}
#endif

TEST_F(LaunchTest, MuchSharedMemoryIsAskedForAndGetsTheCache) {
  const DeviceArray y(32);
  start(y, {"tile_kernel", dim3(1), dim3(32), sizeof(Tile)}, tile_kernel);
  EXPECT_EQ(y.get(), repeated(2, 32));
  const host::KernelState state = host::kernel_state(code_of(tile_kernel));
  EXPECT_GE(state.shared_limit, static_cast<int>(sizeof(Tile)));
  EXPECT_EQ(state.carveout, 100);
  start(y, {.name = "unbounded_kernel", .grid = dim3(1), .block = dim3(32)}, unbounded_kernel);
  EXPECT_EQ(host::kernel_state(code_of(unbounded_kernel)).carveout, -1);
  start(y, {.name = "unbounded_kernel", .grid = dim3(1), .block = dim3(32), .carveout = 25},
        unbounded_kernel);
  EXPECT_EQ(host::kernel_state(code_of(unbounded_kernel)).carveout, 25);
}

TEST_F(LaunchTest, ClustersDivideTheGrid) {
  const DeviceArray y(8);
  start(y, {.name = "unbounded_kernel", .grid = dim3(8), .block = dim3(32), .cluster = dim3(4)},
        unbounded_kernel);
  EXPECT_EQ(y.get(), repeated(32, 8));
  expect_parts(
      error_of<Error>([&] {
        start(y,
              {.name = "unbounded_kernel", .grid = dim3(8), .block = dim3(32), .cluster = dim3(3)},
              unbounded_kernel);
      }),
      {"unbounded_kernel", "clusters of (3, 1, 1)", "grid of (8, 1, 1)"});
}

TEST_F(LaunchTest, AnOverlappingLaunchIsOrderedHere) {
  const DeviceArray x(repeated(1, 64)), y(64);
  scale(x, y, 2);
  start(
      y,
      {.name = "unbounded_kernel", .grid = dim3(64), .block = dim3(32), .overlaps_previous = true},
      unbounded_kernel);
  EXPECT_EQ(y.get(), repeated(32, 64));
}

TEST_F(LaunchTest, AKernelIsPreparedOnce) {
  const DeviceArray y(32);
  const auto launch = [&] {
    start(y, {"tile_kernel", dim3(1), dim3(32), sizeof(Tile)}, tile_kernel);
    synchronize(kDevice);
  };
  launch();
  const int64_t before = host::runtime_counts().calls;
  launch();
  const int64_t later = host::runtime_counts().calls - before;
  launch();
  EXPECT_EQ(host::runtime_counts().calls - before, 2 * later);
  EXPECT_EQ(later, 2);  // the launch and the wait
}

TEST_F(LaunchTest, PropertiesOfTheDeviceAreAskedOnce) {
  const DeviceArray a(repeated(1, 64)), b(repeated(2, 64)), y(64);
  const auto matrix = [](const DeviceArray& array) {
    View view = view_of(array.data(), DType::f32, {8, 8});
    view.device = kDevice;
    return view;
  };
  for (const char* provider : {"own", "auto"}) {
    kernels::set_gemm_provider(provider);
    const auto multiply = [&] { kernels::gemm({.a = matrix(a), .b = matrix(b), .y = matrix(y)}); };
    multiply();  // asks, and times the candidates
    const int64_t before = host::runtime_counts().queries;
    multiply();
    EXPECT_EQ(host::runtime_counts().queries, before) << provider;
    EXPECT_EQ(y.get(), repeated(16, 64));
  }
  kernels::set_gemm_provider("own");
}

}  // namespace
}  // namespace binade::launch_test
