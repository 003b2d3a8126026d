// Streams, events, graphs, copies and the allocator by what every device promises: here on the
// emulated device, in the bundle of scripts/gpu-check on a GPU.
#include "device_fixture.h"

#include <binade/core/device/cuda/caching_allocator_internal.h>
#include <binade/core/device/graph.h>
#include <binade/core/device/pinned.h>
#include <binade/core/device/stream.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/pointwise/pointwise.h>

#include <algorithm>
#include <optional>
#include <random>
#include <thread>

namespace binade::device_runtime_test {
namespace {

using DeviceRuntimeTest = DeviceTest;

// Long enough that a GPU is not done with a queue of them before the host goes on.
constexpr int64_t kCount = kDevice.kind == Device::kCuda ? int64_t{1} << 22 : 1000;
constexpr int kRounds = kDevice.kind == Device::kCuda ? 50 : 4;

void fill(const View& y, double value) { kernels::fill({.y = y, .value = value}); }

void add(const View& a, const View& b, const View& y) {
  kernels::binary_forward({.op = kernels::Binary::add, .a = a, .b = b, .y = y});
}

// y = 2^doublings x, as many launches: a slow way to write y.
void double_slowly(const DeviceArray& x, const DeviceArray& y, int doublings) {
  const View from = x, to = y;
  add(from, from, to);
  for (int i = 1; i < doublings; ++i) {
    add(to, to, to);
  }
}

TEST_F(DeviceRuntimeTest, AnEventOrdersTwoStreams) {
  for (uint64_t round = 0; round < 8; ++round) {
    set_order(round);
    const Stream producer(kDevice), consumer(kDevice);
    const DeviceArray x(repeated(1, kCount)), y(kCount), z(kCount);
    synchronize(kDevice);
    Event written(kDevice);
    {
      const StreamGuard guard(producer);
      double_slowly(x, y, 10);
      written.record();
    }
    consumer.wait(written);
    {
      const StreamGuard guard(consumer);
      add(y.view(), y.view(), z.view());
    }
    consumer.synchronize();
    EXPECT_EQ(z.get(), repeated(2048, kCount)) << "round " << round;
    EXPECT_TRUE(written.done());
  }
}

TEST_F(DeviceRuntimeTest, EventsTellTheTimeBetweenThem) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  Event first(kDevice, true), second(kDevice, true), never(kDevice);
  first.record();
  double_slowly(x, y, 20);
  second.record();
  second.synchronize();
  EXPECT_TRUE(first.done());
  EXPECT_GE(second.since(first), 0);
  EXPECT_TRUE(never.done());
}

TEST_F(DeviceRuntimeTest, ABlockThatAnotherStreamReadsIsNotReusedTooEarly) {
  for (int round = 0; round < kRounds; ++round) {
    set_order(static_cast<uint64_t>(round));
    const Stream reader(kDevice);
    const DeviceArray y(kCount);
    auto x = std::make_unique<DeviceArray>(repeated(5, kCount));
    synchronize(kDevice);
    {
      const StreamGuard guard(reader);
      const DeviceArray work(repeated(0, kCount));
      double_slowly(work, work, 10);  // the reader comes late
      add(x->view(), work.view(), y.view());
    }
    device_record_use(kDevice, x->data(), reader.handle());
    x.reset();
    const DeviceArray next(kCount);
    fill(next.view(), 7);
    synchronize_stream(kDevice);
    reader.synchronize();
    EXPECT_EQ(y.get(), repeated(5, kCount)) << "round " << round;
  }
}

TEST_F(DeviceRuntimeTest, ABlockIsReusedInTheOrderOfItsStream) {
  std::optional<DeviceArray> sum(std::in_place, repeated(0, kCount));
  for (int i = 1; i <= 2 * kRounds; ++i) {
    const DeviceArray part(kCount);  // mostly the block of the round before
    fill(part.view(), i);
    add(sum->view(), part.view(), sum->view());
  }
  const auto n = static_cast<float>(2 * kRounds);
  EXPECT_EQ(sum->get(), repeated(n * (n + 1) / 2, kCount));
}

TEST_F(DeviceRuntimeTest, PageableMemoryIsFreeWhenACopyReturns) {
  for (const int64_t count : {int64_t{1}, int64_t{1000}, int64_t{1} << 18, (int64_t{1} << 18) + 1,
                              int64_t{1} << 20}) {  // 1 MiB is the limit of what is staged
    const DeviceArray x(count), y(count);
    std::vector<float> values = repeated(1, count);
    for (int round = 1; round <= 8; ++round) {
      std::fill(values.begin(), values.end(), static_cast<float>(round));
      x.set(values);
      std::fill(values.begin(), values.end(), -1.0f);  // the copy must not read this
      add(x.view(), x.view(), y.view());
      EXPECT_EQ(y.get(), repeated(static_cast<float>(2 * round), count)) << count;
    }
  }
}

TEST_F(DeviceRuntimeTest, PinnedMemoryIsReadInTheOrderOfTheStream) {
  const DeviceArray x(kCount), y(kCount);
  PinnedBuffer in(kDevice, x.bytes()), out(kDevice, x.bytes());
  auto* source = reinterpret_cast<float*>(in.data());
  std::fill_n(source, kCount, 3.0f);
  device_copy(x.data(), kDevice, source, Device{}, x.bytes());
  add(x.view(), x.view(), y.view());
  device_copy(out.data(), Device{}, y.data(), kDevice, y.bytes());
  synchronize_stream(kDevice);
  EXPECT_EQ(reinterpret_cast<float*>(out.data())[kCount - 1], 6);
}

TEST_F(DeviceRuntimeTest, AnUploadIsThereForTheStreamThatAsks) {
  Uploader uploader(kDevice);
  for (int round = 0; round < kRounds; ++round) {
    set_order(static_cast<uint64_t>(round));
    PinnedBuffer batch(kDevice, static_cast<size_t>(kCount) * sizeof(float));
    std::fill_n(reinterpret_cast<float*>(batch.data()), kCount, static_cast<float>(round));
    const DeviceArray y(kCount);
    std::byte* x = uploader.copy(std::move(batch));
    uploader.ready();
    View view = view_of(x, DType::f32, {kCount});
    view.device = kDevice;
    add(view, view, y.view());
    device_release(kDevice, x, y.bytes());
    EXPECT_EQ(y.get(), repeated(static_cast<float>(2 * round), kCount));
  }
}

TEST_F(DeviceRuntimeTest, AGraphComputesFromTheInputsOfTheMoment) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  Graph graph(kDevice);
  graph.capture([&] {
    const DeviceArray between(kCount);
    add(x.view(), x.view(), between.view());
    add(between.view(), x.view(), y.view());
  });
  for (int round = 1; round <= 10; ++round) {
    x.set(repeated(static_cast<float>(round), kCount));
    graph.replay();
    const DeviceArray other(repeated(-1, kCount));  // does not take the graph's memory
    EXPECT_EQ(y.get(), repeated(static_cast<float>(3 * round), kCount));
  }
}

TEST_F(DeviceRuntimeTest, StreamsForkAndJoinInsideACapture) {
  const DeviceArray x(repeated(1, kCount)), a(kCount), b(kCount), y(kCount);
  const Stream side(kDevice);
  Graph graph(kDevice);
  graph.capture([&] {
    Event fork(kDevice), join(kDevice);
    add(x.view(), x.view(), a.view());
    fork.record();
    side.wait(fork);
    {
      const StreamGuard guard(side);
      double_slowly(a, b, 4);
      join.record();
    }
    Stream::current(kDevice).wait(join);
    add(a.view(), b.view(), y.view());
  });
  for (int round = 0; round < kRounds; ++round) {
    set_order(static_cast<uint64_t>(round));
    fill(y.view(), -1);
    graph.replay();
    EXPECT_EQ(y.get(), repeated(34, kCount));
  }
}

TEST_F(DeviceRuntimeTest, AHostReadInACaptureIsAnErrorAndTheDeviceGoesOn) {
  const DeviceArray x(repeated(1, kCount)), y(kCount);
  Graph graph(kDevice);
  expect_parts(error_of<Error>([&] {
                 graph.capture([&] {
                   add(x.view(), x.view(), y.view());
                   y.get();
                 });
               }),
               {"graph capture", "copy to the cpu"});
  EXPECT_FALSE(graph.captured());
  add(x.view(), x.view(), y.view());
  EXPECT_EQ(y.get(), repeated(2, kCount));
}

TEST_F(DeviceRuntimeTest, SegmentsGrowAndGiveTheirMemoryBack) {
  constexpr int64_t kBlock = kDevice.kind == Device::kCuda ? int64_t{1} << 26 : int64_t{1} << 20;
  const int64_t before = memory_stats(kDevice).reserved;
  {
    std::vector<DeviceArray> blocks;
    for (int i = 0; i < 8; ++i) {
      blocks.emplace_back(kBlock);
      fill(blocks.back().view(), i);
    }
    EXPECT_GE(memory_stats(kDevice).reserved, before + 8 * 4 * kBlock);
    for (int i = 0; i < 8; ++i) {  // what was written before a segment grew is still there
      const View v = view_of(blocks[static_cast<size_t>(i)].data() + kBlock - 4, DType::f32, {4});
      std::vector<float> last(4);
      device_copy(last.data(), Device{}, v.data, kDevice, 16);
      EXPECT_EQ(last, repeated(static_cast<float>(i), 4));
    }
  }
  empty_cache(kDevice);
  EXPECT_LE(memory_stats(kDevice).reserved, before);
  EXPECT_TRUE(CachingAllocator::of(kDevice).consistent());
}

TEST_F(DeviceRuntimeTest, BlocksOfRandomSizesKeepTheirContents) {
  std::mt19937 random(3);
  std::vector<std::pair<DeviceArray, float>> live;
  for (int i = 0; i < 60 * kRounds; ++i) {
    if (live.size() > 20 || (!live.empty() && random() % 3 == 0)) {
      const size_t which = random() % live.size();
      const auto& [block, value] = live[which];
      const std::vector<float> got = block.get();
      ASSERT_TRUE(std::all_of(got.begin(), got.end(), [&, v = value](float x) { return x == v; }));
      std::swap(live[which], live.back());
      live.pop_back();
    } else {
      const auto value = static_cast<float>(i);
      live.emplace_back(DeviceArray(1 + random() % (random() % 4 == 0 ? 1 << 20 : 1 << 12)), value);
      fill(live.back().first.view(), value);
    }
  }
  EXPECT_TRUE(CachingAllocator::of(kDevice).consistent());
}

TEST_F(DeviceRuntimeTest, TooLargeAnAllocationIsAnErrorAndTheDeviceGoesOn) {
  const DeviceArray x(repeated(1, kCount));
  EXPECT_THROW((void)device_allocate(kDevice, size_t{1} << 44), OutOfMemory);
  const DeviceArray y(kCount);
  add(x.view(), x.view(), y.view());
  EXPECT_EQ(y.get(), repeated(2, kCount));
}

TEST_F(DeviceRuntimeTest, ThreadsHaveTheirOwnStreams) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] {
      const Stream stream(kDevice);
      const StreamGuard guard(stream);
      for (int round = 0; round < kRounds; ++round) {
        const DeviceArray x(repeated(static_cast<float>(i + 1), kCount)), y(kCount);
        double_slowly(x, y, 3);
        results[i] = y.get()[kCount / 2];
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(results, (std::vector<float>{8, 16, 24, 32}));
}

}  // namespace
}  // namespace binade::device_runtime_test
