// Errors of the CUDA runtime: each code at each call, each allocation that fails.
#include "device_kernels.h"

#include <binade/core/device/pinned.h>

namespace binade::fault_test {
namespace {

namespace host = kernels::host;
using FaultTest = DeviceTest;

constexpr int64_t kCount = 70;

// Kernels, copies, a second stream, pinned memory and a graph, as in a training step.
std::vector<float> run_step() {
  const Stream side(kDevice);
  const DeviceArray x(repeated(1, kCount)), a(kCount), b(kCount), y(kCount);
  Event ready(kDevice), back(kDevice);
  scale(x, a, 3);
  ready.record();
  side.wait(ready);
  {
    const StreamGuard guard(side);
    const DeviceArray between(kCount);
    scale(a, between, 2);
    scale(between, b, 5);
    back.record();
  }
  Stream::current(kDevice).wait(back);
  Uploader uploader(kDevice);
  PinnedBuffer batch(kDevice, x.bytes());
  std::fill_n(reinterpret_cast<float*>(batch.data()), kCount, 0.5f);
  std::byte* added = uploader.copy(std::move(batch));
  struct Owner {
    std::byte* block;
    ~Owner() { device_release(kDevice, block, kCount * sizeof(float)); }
  } const owner{added};
  uploader.ready();
  View view = view_of(added, DType::f32, {kCount});
  view.device = kDevice;
  sum(b, view, b);
  Graph graph(kDevice);
  graph.capture([&] {
    const DeviceArray inside(kCount);
    sum(a, b, inside);
    scale(inside, y, 2);
  });
  graph.replay();
  synchronize(kDevice);
  return y.get();
}

const std::vector<float> kExpected = repeated(67, kCount);

void expect_recovered(int64_t allocated, const std::string& what) {
  host::reset_faults();
  synchronize(kDevice);
  EXPECT_EQ(memory_stats(kDevice).allocated, allocated) << what;
  EXPECT_EQ(pinned_stats().allocated, 0) << what;
  EXPECT_EQ(run_step(), kExpected) << what;
}

TEST_F(FaultTest, EveryCodeAtEveryCallIsOneTypedError) {
  constexpr cudaError_t kCodes[] = {cudaErrorInvalidValue,           cudaErrorMemoryAllocation,
                                    cudaErrorInitializationError,    cudaErrorInvalidConfiguration,
                                    cudaErrorNoKernelImageForDevice, cudaErrorECCUncorrectable,
                                    cudaErrorInvalidResourceHandle,  cudaErrorIllegalAddress,
                                    cudaErrorLaunchOutOfResources,   cudaErrorLaunchTimeout,
                                    cudaErrorMisalignedAddress,      cudaErrorLaunchFailure,
                                    cudaErrorNotSupported,           cudaErrorUnknown};
  EXPECT_EQ(run_step(), kExpected);
  const int64_t allocated = memory_stats(kDevice).allocated;
  for (const cudaError_t code : kCodes) {
    int errors = 0;
    for (int64_t k = 1;; ++k) {
      // Some cold runs, so that allocations of the driver fail too.
      if (k % 4 == 0) {
        empty_cache(kDevice);
        empty_pinned_cache();
      }
      host::inject_fault({.code = code, .k = k, .call = ""});
      const int64_t calls = host::runtime_counts().calls;
      const std::string what = text(cudaGetErrorName(code), " at call ", k);
      bool failed = false;
      try {
        EXPECT_EQ(run_step(), kExpected) << what;
      } catch (const kernels::CudaError& error) {
        failed = true;
        EXPECT_EQ(error.code(), code) << what;
        expect_parts(error.what(), {cudaGetErrorName(code), text("(", static_cast<int>(code), ")"),
                                    cudaGetErrorString(code), "emulated:0"});
      } catch (const OutOfMemory& error) {
        failed = true;
        EXPECT_EQ(code, cudaErrorMemoryAllocation) << what << error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << what << ": " << error.what();
      }
      const int64_t made = host::runtime_counts().calls - calls;
      errors += failed;
      expect_recovered(allocated, what);
      if (HasFailure() || (!failed && made < k)) {
        break;  // the step makes no k-th call
      }
    }
    EXPECT_GT(errors, 10) << cudaGetErrorName(code);
  }
}

TEST_F(FaultTest, ARefusedLaunchSaysAllAboutItself) {
  const DeviceArray x(kCount), y(kCount);
  host::inject_fault(
      {.code = cudaErrorLaunchOutOfResources, .k = 1, .call = "cudaLaunchKernelExC"});
  const std::string error = error_of<kernels::CudaError>([&] { scale(x, y, 2); });
  expect_parts(
      error, {"scale: launch failed", "emulated:0", "cudaErrorLaunchOutOfResources (701)",
              "too many resources requested for launch", "operand f32 [70]", "kernel scale_kernel",
              "grid (2, 1, 1)", "block (64, 1, 1)", "0 bytes of shared memory", "report"});
}

TEST_F(FaultTest, AFaultInAKernelIsReportedLateAndStays) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  synchronize(kDevice);
  host::inject_fault({.code = cudaErrorIllegalAddress, .k = 2, .call = "kernel"});
  scale(x, y, 2);
  scale(y, x, 2);
  const std::string first = error_of<kernels::CudaError>([] { synchronize(kDevice); });
  expect_parts(first, {"cudaErrorIllegalAddress (700)", "an illegal memory access was encountered",
                       "operations started last: scale, scale", "BINADE_SYNC=1", "restart"});
  const std::string later = error_of<kernels::CudaError>([&] { sum(x, y, y); });
  expect_parts(later, {"sum: launch failed", "the first failure was: cudaDeviceSynchronize"});
  EXPECT_THROW(synchronize(kDevice), kernels::CudaError);
}

TEST_F(FaultTest, EveryAllocationMayFail) {
  EXPECT_EQ(run_step(), kExpected);
  const DeviceMemoryStats before = memory_stats(kDevice);
  EXPECT_EQ(run_step(), kExpected);
  const int64_t requests = memory_stats(kDevice).requests - before.requests;
  ASSERT_GE(requests, 6);
  for (int64_t n = 1; n <= requests; ++n) {
    fail_allocation(kDevice, n);
    const std::string error = error_of<OutOfMemory>([] { run_step(); });
    expect_parts(error, {"out of memory on emulated:0", "got a request for", "reserved",
                         "free on the device", "held by"});
    fail_allocation(kDevice, 0);
    expect_recovered(before.allocated, text("allocation ", n));
  }
}

TEST_F(FaultTest, EveryDeviceAllocationMayFailOnce) {
  // The cache is emptied and the driver asked again.
  for (int64_t k = 1; k <= 4; ++k) {
    empty_cache(kDevice);
    const int64_t flushes = memory_stats(kDevice).flushes;
    host::inject_fault({.code = cudaErrorMemoryAllocation, .k = k, .call = "cuMemCreate"});
    EXPECT_EQ(run_step(), kExpected);
    host::reset_faults();
    EXPECT_GE(memory_stats(kDevice).flushes, flushes);
  }
}

}  // namespace
}  // namespace binade::fault_test
