// Graph capture on the emulated device.
#include "device_kernels.h"

#include <binade/core/device/pinned.h>
#include <binade/core/observe/label.h>

#include <cmath>
#include <optional>

namespace binade::graph_test {
namespace {

namespace host = kernels::host;
using GraphTest = DeviceTest;

constexpr int64_t kCount = 100;

TEST_F(GraphTest, ReplayComputesFromTheInputsOfTheMoment) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    host::stream_options().seed = seed;
    const DeviceArray x(repeated(1, kCount)), y(kCount);
    Graph graph(kDevice);
    const int64_t kernels_before = host::runtime_counts().kernels;
    graph.capture([&] {
      const DeviceArray between(kCount);
      scale(x, between, 2);
      scale(between, y, 5);
    });
    synchronize(kDevice);
    EXPECT_EQ(host::runtime_counts().kernels, kernels_before);
    for (float value : {3.0f, 4.0f}) {
      x.set(repeated(value, kCount));
      graph.replay();
      EXPECT_EQ(y.get(), repeated(10 * value, kCount));
    }
  }
}

TEST_F(GraphTest, ResultsLiveInTheMemoryOfTheGraph) {
  const DeviceArray x(repeated(1, kCount));
  std::optional<DeviceArray> y;
  Graph graph(kDevice);
  graph.capture([&] {
    y.emplace(kCount);
    scale(x, *y, 2);
  });
  const int64_t allocations = memory_stats(kDevice).device_allocations;
  for (int i = 1; i < 20; ++i) {
    x.set(repeated(static_cast<float>(i), kCount));
    graph.replay();
    const DeviceArray other(repeated(-1, kCount));  // does not take the graph's memory
    EXPECT_EQ(y->get()[0], 2 * i);
  }
  EXPECT_LE(memory_stats(kDevice).device_allocations, allocations + 1);
}

TEST_F(GraphTest, AGraphGivesItsMemoryBack) {
  const size_t before = host::runtime_counts().device_bytes;
  for (int i = 0; i < 3; ++i) {
    Graph graph(kDevice);
    graph.capture([&] {
      const DeviceArray large(1 << 20), small(kCount);
      scale(small, small, 1);
    });
    EXPECT_GT(host::runtime_counts().device_bytes, before);
  }
  EXPECT_EQ(host::runtime_counts().device_bytes, before);
}

TEST_F(GraphTest, StreamsForkAndJoinInsideACapture) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    host::stream_options().seed = seed;
    const DeviceArray x(repeated(1, kCount)), a(kCount), b(kCount), y(kCount);
    const Stream side(kDevice);
    Graph graph(kDevice);
    const auto body = [&](bool waits_inside) {
      Event fork(kDevice), join(kDevice);
      scale(x, a, 2);
      fork.record();
      side.wait(fork);
      {
        const StreamGuard guard(side);
        const DeviceArray between(kCount);
        scale(a, between, 10);
        scale(between, b, 1);
        join.record();
      }
      if (waits_inside) {
        Stream::current(kDevice).wait(join);
      }
      sum(a, b, y);
      Stream::current(kDevice).wait(join);
    };
    graph.capture([&] { body(true); });
    graph.replay();
    EXPECT_EQ(y.get()[0], 22);
    if (seed == 0) {  // the sum may run before its operand is there
      b.set(repeated(-1, kCount));
      graph.capture([&] { body(false); });
      graph.replay();
      const float first_order = y.get()[0];
      host::stream_options().seed = 1;
      b.set(repeated(-1, kCount));
      graph.replay();
      EXPECT_TRUE(first_order != 22 || y.get()[0] != 22);
      synchronize(kDevice);
    }
  }
}

TEST_F(GraphTest, AStreamThatDoesNotJoinIsAnError) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  const Stream side(kDevice);
  Graph graph(kDevice);
  const std::string error = error_of<kernels::CudaError>([&] {
    graph.capture([&] {
      Event fork(kDevice);
      fork.record();
      side.wait(fork);
      const StreamGuard guard(side);
      scale(x, y, 2);
    });
  });
  expect_parts(error, {"cudaErrorStreamCaptureUnjoined", "904"});
  EXPECT_FALSE(graph.captured());
  EXPECT_THROW(graph.replay(), Error);
  scale(x, y, 3);
  EXPECT_EQ(y.get()[0], 3);
}

TEST_F(GraphTest, WaitingForWorkFromBeforeTheCaptureIsAnError) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  const Stream side(kDevice);
  Event before(kDevice);
  before.record(side);
  Graph graph(kDevice);
  expect_parts(error_of<kernels::CudaError>(
                   [&] { graph.capture([&] { Stream::current(kDevice).wait(before); }); }),
               {"cudaErrorStreamCaptureIsolation"});
}

TEST_F(GraphTest, AHostReadInsideIsAnErrorThatNamesIt) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  Graph graph(kDevice);
  const LabelScope label(intern_label(0, "classifier"));
  const auto captured = [&](auto&& body) {
    return error_of<Error>([&] {
      graph.capture([&] {
        scale(x, y, 2);
        body();
      });
    });
  };
  expect_parts(captured([&] { y.get(); }), {"graph capture", "copy to the cpu", "classifier"});
  expect_parts(captured([&] { y.set(repeated(1, kCount)); }), {"copy from the cpu"});
  expect_parts(captured([] { synchronize_stream(kDevice); }), {"synchronize_stream"});
  expect_parts(captured([] { synchronize(kDevice); }), {"synchronize"});
  expect_parts(captured([] { empty_cache(kDevice); }), {"empty_cache"});
  expect_parts(captured([] { Stream::current(kDevice).synchronize(); }), {"Stream::synchronize"});
  expect_parts(captured([] { throw Error("from the step itself"); }), {"from the step itself"});
  EXPECT_FALSE(is_capturing(kDevice));
  scale(x, y, 4);  // and the device works on
  EXPECT_EQ(y.get()[0], 4);
}

TEST_F(GraphTest, TheRuntimeItselfForbidsWaitingInACapture) {
  using Call = cudaError_t (*)(cudaStream_t);
  constexpr Call kCalls[] = {
      [](cudaStream_t stream) { return cudaStreamSynchronize(stream); },
      [](cudaStream_t) { return cudaDeviceSynchronize(); },
      [](cudaStream_t stream) { return cudaStreamQuery(stream); },
      [](cudaStream_t) {
        void* block = nullptr;
        return cudaMalloc(&block, 512);
      },
      [](cudaStream_t) {
        float from = 0, to = 0;
        return cudaMemcpy(&to, &from, sizeof to, cudaMemcpyHostToHost);
      },
  };
  for (const Call call : kCalls) {
    const Stream stream(kDevice);
    auto* raw = static_cast<cudaStream_t>(stream.handle());
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(raw, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(call(raw), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(cudaStreamEndCapture(raw, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    cudaGetLastError();
  }
}

// Kernels that no other test launches.
__global__ void first_in_a_capture_kernel(float* y) { y[threadIdx.x] = 4; }
__global__ void never_loaded_kernel(float* y) { y[threadIdx.x] = 5; }

TEST_F(GraphTest, AKernelMayRunForTheFirstTimeInACapture) {
  const DeviceArray y(kCount);
  Graph graph(kDevice);
  graph.capture([&] {
    const View view = y;
    const kernels::KernelCall call("first", view);
    kernels::launch({"first_in_a_capture_kernel", dim3(1), dim3(kCount)}, first_in_a_capture_kernel,
                    y.data());
  });
  graph.replay();
  EXPECT_EQ(y.get(), repeated(4, kCount));
}

TEST_F(GraphTest, TheRuntimeItselfLoadsNoKernelInACapture) {
  const Stream stream(kDevice);
  auto* raw = static_cast<cudaStream_t>(stream.handle());
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(raw, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(host::enqueue_kernel({.name = "never_loaded_kernel",
                                  .grid = dim3(1),
                                  .block = dim3(1),
                                  .stream = raw,
                                  .kernel = reinterpret_cast<const void*>(never_loaded_kernel)},
                                 [] {}),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(raw, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(GraphTest, ACaptureBeginsWithAnEmptyCache) {
  constexpr int64_t kLarge = 1 << 22;
  { const DeviceArray of_plain_steps(kLarge); }
  const int64_t reserved = memory_stats(kDevice).reserved;
  Graph graph(kDevice);
  graph.capture([&] {
    const DeviceArray between(kLarge);
    scale(between, between, 1);
  });
  EXPECT_LE(memory_stats(kDevice).reserved, reserved);
}

TEST_F(GraphTest, PinnedCopiesReadTheirMemoryAtReplay) {
  const DeviceArray x(kCount), y(kCount);
  PinnedBuffer in(kDevice, x.bytes()), out(kDevice, x.bytes());
  auto* source = reinterpret_cast<float*>(in.data());
  const auto* target = reinterpret_cast<const float*>(out.data());
  Graph graph(kDevice);
  graph.capture([&] {
    device_copy(x.data(), kDevice, source, Device{}, x.bytes());
    scale(x, y, 2);
    device_copy(out.data(), Device{}, y.data(), kDevice, y.bytes());
  });
  for (float value : {1.0f, 2.0f}) {
    std::fill_n(source, kCount, value);
    graph.replay();
    synchronize_stream(kDevice);
    EXPECT_EQ(target[kCount - 1], 2 * value);
  }
}

TEST_F(GraphTest, AReplayThatReadsReleasedInputsComputesNan) {
  const DeviceArray y(kCount);
  auto x = std::make_unique<DeviceArray>(repeated(1, kCount));
  Graph graph(kDevice);
  graph.capture([&] { scale(*x, y, 2); });
  graph.replay();
  EXPECT_EQ(y.get()[0], 2);
  x.reset();
  graph.replay();
  EXPECT_TRUE(std::isnan(y.get()[0]));
}

TEST_F(GraphTest, InputsReleasedInsideTheCaptureAreNotFilledByTheReplay) {
  auto x = std::make_unique<DeviceArray>(repeated(1, kCount));
  const DeviceArray y(kCount);
  Graph graph(kDevice);
  graph.capture([&] {
    scale(*x, y, 2);
    x.reset();
  });
  const DeviceArray next(repeated(5, kCount));  // the memory of x
  graph.replay();
  EXPECT_EQ(next.get()[0], 5);
}

}  // namespace
}  // namespace binade::graph_test
