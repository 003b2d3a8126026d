// Streams and events of the emulated device: the deferred mode catches what CUDA leaves undefined.
#include "device_kernels.h"

#include <binade/core/device/host_sync.h>

#include <binade/core/device/pinned.h>
#include <binade/kernels/host/executor.h>

#include <cmath>

namespace binade::streams_test {
namespace {

namespace host = kernels::host;
using StreamsTest = DeviceTest;

constexpr int64_t kCount = 100;

TEST_F(StreamsTest, WorkRunsWhenSomebodyWaits) {
  const DeviceArray x(repeated(2, kCount)), y(kCount);
  synchronize(kDevice);
  const int64_t kernels_before = host::runtime_counts().kernels;
  scale(x, y, 3);
  EXPECT_EQ(host::runtime_counts().kernels, kernels_before);
  EXPECT_EQ(y.get(), repeated(6, kCount));
  EXPECT_EQ(host::runtime_counts().kernels, kernels_before + 1);
}

TEST_F(StreamsTest, NewAndFreedMemoryIsNan) {
  const DeviceArray x(kCount);
  for (float value : x.get()) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// Two streams with and without the event between them, in every order.
float consume(bool with_event) {
  const Stream producer(kDevice), consumer(kDevice);
  const DeviceArray x(repeated(2, kCount)), y(kCount), z(kCount);
  synchronize(kDevice);
  Event produced(kDevice);
  {
    const StreamGuard guard(producer);
    scale(x, y, 3);
    produced.record();
  }
  if (with_event) {
    consumer.wait(produced);
  }
  {
    const StreamGuard guard(consumer);
    scale(y, z, 10);
  }
  consumer.synchronize();
  synchronize(kDevice);
  return z.get()[0];
}

TEST_F(StreamsTest, AnEventOrdersTwoStreamsAndAMissingOneIsSeen) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    host::stream_options().seed = seed;
    EXPECT_EQ(consume(true), 60) << "seed " << seed;
    wrong += consume(false) != 60;
  }
  EXPECT_GE(wrong, 2);
  host::stream_options().seed = 0;
  EXPECT_NE(consume(false), 60);
}

TEST_F(StreamsTest, ImmediateStreamsDoNotSeeAMissingEvent) {
  host::stream_options().deferred = false;
  EXPECT_EQ(consume(false), 60);
}

TEST_F(StreamsTest, EarlyReuseOfAPinnedBufferIsSeen) {
  for (const bool waits : {true, false}) {
    const DeviceArray x(kCount);
    PinnedBuffer buffer(kDevice, x.bytes());
    auto* values = reinterpret_cast<float*>(buffer.data());
    std::fill_n(values, kCount, 1.0f);
    device_copy(x.data(), kDevice, values, Device{}, x.bytes());
    if (waits) {
      synchronize_stream(kDevice);
    }
    std::fill_n(values, kCount, 2.0f);
    EXPECT_EQ(x.get()[0], waits ? 1 : 2);
  }
}

TEST_F(StreamsTest, APageableSourceIsFreeWhenTheCopyReturns) {
  for (const int64_t count :
       {kCount, int64_t{1} << 19}) {  // copied to pinned memory, and waited for
    const DeviceArray x(count);
    std::vector<float> values = repeated(1, count);
    x.set(values);
    values.assign(values.size(), 2);
    const std::vector<float> on_device = x.get();
    EXPECT_EQ(on_device, repeated(1, count));
  }
}

TEST_F(StreamsTest, FewPageableBytesDoNotMakeTheHostWait) {
  const DeviceArray x(kCount), large(int64_t{1} << 19);
  const std::vector<float> many = repeated(1, int64_t{1} << 19);
  const int64_t before = host::runtime_counts().waits;
  x.set(repeated(1, kCount));
  EXPECT_EQ(host::runtime_counts().waits, before);
  HostSyncGuard guard(HostSyncGuard::record);
  large.set(many);
  EXPECT_EQ(host::runtime_counts().waits, before + 1);
  EXPECT_EQ(guard.count(), 1);
}

// The system refuses to lock more memory: the host waits for the copy instead.
TEST_F(StreamsTest, PageableCopiesWorkWithoutPinnedMemory) {
  empty_pinned_cache();  // else a buffer of an earlier copy would do
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    host::stream_options().seed = seed;
    const DeviceArray x(kCount), y(kCount);
    host::inject_fault(
        {.code = cudaErrorMemoryAllocation, .k = 1, .call = "cudaHostAlloc", .stays = true});
    std::vector<float> values = repeated(1, kCount);
    const int64_t waits = host::runtime_counts().waits;
    {
      const HostSyncGuard guard(HostSyncGuard::record);
      x.set(values);
      ASSERT_EQ(guard.found().size(), 1u);
      EXPECT_NE(guard.found()[0].what.find("without pinned memory"), std::string::npos);
    }
    EXPECT_EQ(host::runtime_counts().waits, waits + 1);
    values.assign(values.size(), 2);  // the copy is over
    scale(x, y, 3);
    EXPECT_EQ(y.get(), repeated(3, kCount));
    host::reset_faults();
  }
  EXPECT_EQ(pinned_stats().allocated, 0);
}

TEST_F(StreamsTest, APageableTargetHoldsTheBytesWhenTheCopyReturns) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  scale(x, y, 3);
  std::vector<float> values(kCount, -1);
  device_copy(values.data(), Device{}, y.data(), kDevice, y.bytes());
  EXPECT_EQ(values, repeated(3, kCount));
}

TEST_F(StreamsTest, TheRuntimeDoesNotWaitForPageableMemory) {
  const DeviceArray x(repeated(1, kCount));
  synchronize(kDevice);
  std::vector<float> values(kCount, -1);
  auto* stream = static_cast<cudaStream_t>(Stream::current(kDevice).handle());
  ASSERT_EQ(cudaMemcpyAsync(values.data(), x.data(), x.bytes(), cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
  EXPECT_EQ(values[0], -1);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(values[0], 1);
}

TEST_F(StreamsTest, EarlyReuseOfABlockOnAnotherStreamIsSeen) {
  // A block is released while another stream still reads it. If the use was recorded the block is
  // kept; otherwise the next owner overwrites it first.
  for (const bool recorded : {true, false}) {
    const Stream reader(kDevice);
    const DeviceArray y(kCount);
    auto x = std::make_unique<DeviceArray>(repeated(5, kCount));
    synchronize(kDevice);
    {
      const StreamGuard guard(reader);
      scale(x->view(), y, 1);
    }
    if (recorded) {
      device_record_use(kDevice, x->data(), reader.handle());
    }
    x.reset();
    const DeviceArray next(repeated(7, kCount));
    synchronize_stream(kDevice);  // the home stream only: the reader comes later
    reader.synchronize();
    EXPECT_EQ(y.get()[0] == 5, recorded);
  }
}

TEST_F(StreamsTest, QueriesAndEventsTellWhatIsOver) {
  const Stream stream(kDevice);
  Event never(kDevice), first(kDevice, true), second(kDevice, true);
  EXPECT_TRUE(never.done());
  EXPECT_TRUE(stream.done());
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  synchronize(kDevice);
  const StreamGuard guard(stream);
  first.record();
  scale(x, y, 2);
  second.record();
  int asked = 0;
  while (!second.done()) {
    ASSERT_LT(++asked, 1000);
  }
  EXPECT_TRUE(first.done());
  EXPECT_GE(second.since(first), 0);
  second.synchronize();
  EXPECT_EQ(Stream::current(kDevice), stream);
}

TEST_F(StreamsTest, AKernelThatBreaksARuleIsReportedAtTheWait) {
  View view;
  view.device = kDevice;
  const auto launch_it = [&] {
    const kernels::KernelCall call("divergent", view);
    kernels::launch({"divergent_barrier_kernel", dim3(1), dim3(64)}, divergent_barrier_kernel);
  };
  launch_it();
  const std::string deferred = error_of<host::KernelError>([] { synchronize_stream(kDevice); });
  expect_parts(deferred, {"divergent_barrier_kernel"});
  synchronize(kDevice);  // and the device goes on
  host::stream_options().deferred = false;
  expect_parts(error_of<host::KernelError>(launch_it), {"divergent_barrier_kernel"});
}

TEST_F(StreamsTest, AnUploadIsThereWhenItsReaderWaits) {
  float value = 0;  // another each time: the block may hold the values of the upload before
  for (const bool waits : {true, false}) {
    int right = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      host::stream_options().seed = seed;
      Uploader uploader(kDevice);
      PinnedBuffer batch(kDevice, kCount * sizeof(float));
      std::fill_n(reinterpret_cast<float*>(batch.data()), kCount, ++value);
      const DeviceArray y(kCount);
      std::byte* x = uploader.copy(std::move(batch));
      if (waits) {
        uploader.ready();
      }
      View view = view_of(x, DType::f32, {kCount});
      view.device = kDevice;
      scale(view, y, 1);
      device_release(kDevice, x, kCount * sizeof(float));
      right += y.get()[0] == value;
      synchronize(kDevice);
    }
    EXPECT_EQ(right == static_cast<int>(kSeeds), waits);
  }
}

TEST_F(StreamsTest, PinnedBuffersAreUsedAgainOnlyAfterTheirCopies) {
  empty_pinned_cache();
  const int64_t before = pinned_stats().host_allocations;
  const Stream stream(kDevice);
  constexpr size_t kBytes = 8192;
  const DeviceArray x(kBytes / sizeof(float));
  std::byte* first = nullptr;
  {
    PinnedBuffer buffer(kDevice, kBytes);
    first = buffer.data();
    const StreamGuard guard(stream);
    device_copy(x.data(), kDevice, buffer.data(), Device{}, kBytes);
    buffer.used_on(stream);
  }
  {
    // Polling may run work of the stream; an unfinished copy keeps its buffer.
    const int64_t kernels_before = pinned_stats().reserved;
    const PinnedBuffer other(kDevice, kBytes);
    EXPECT_TRUE(other.data() != first || stream.done());
    EXPECT_GE(pinned_stats().reserved, kernels_before);
  }
  stream.synchronize();
  for (int i = 0; i < 100; ++i) {
    const PinnedBuffer again(kDevice, kBytes - static_cast<size_t>(i));
  }
  EXPECT_LE(pinned_stats().host_allocations - before, 2);
  EXPECT_EQ(pinned_stats().allocated, 0);
  empty_pinned_cache();
  EXPECT_EQ(pinned_stats().reserved, 0);
}

TEST_F(StreamsTest, StreamsAndDevicesThatDoNotExist) {
  EXPECT_THROW(Stream(Device{}), Error);
  expect_parts(error_of<Error>([] { Device::parse("emulated:1"); }), {"emulated:1", "below 1"});
  expect_parts(error_of<Error>([] { Device::parse("cuda"); }), {"cuda", "emulated device"});
  EXPECT_EQ(Device::best(), Device{});
  const DeviceGuard guard(kDevice);
}

}  // namespace
}  // namespace binade::streams_test
