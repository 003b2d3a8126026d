// The caching allocator against a model, and its guarantees.
#include "device_kernels.h"

#include <binade/core/device/cuda/caching_allocator_internal.h>
#include <binade/core/observe/label.h>

#include <map>
#include <random>
#include <thread>

namespace binade::allocator_test {
namespace {

namespace host = kernels::host;
using AllocatorTest = DeviceTest;
using Handle = kernels::StreamHandle;

constexpr size_t kMiB = size_t{1} << 20;

bool overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

TEST_F(AllocatorTest, AReleasedBlockIsFreeAtOnceForItsStream) {
  CachingAllocator allocator(kDevice, {});
  void* first = allocator.allocate(1000);
  allocator.release(first);
  EXPECT_EQ(allocator.allocate(900), first);
  allocator.release(first);
  const Stream other(kDevice);
  const StreamGuard guard(other);
  void* second = allocator.allocate(1000);
  EXPECT_NE(second, first);
  allocator.release(second);
  EXPECT_TRUE(allocator.consistent());
}

TEST_F(AllocatorTest, BlocksAreCutAndMerged) {
  for (const bool growable : {true, false}) {
    CachingAllocator allocator(kDevice, {.growable = growable});
    EXPECT_EQ(allocator.stats().growable, growable);
    std::vector<std::byte*> blocks(3);
    for (auto& block : blocks) {
      block = static_cast<std::byte*>(allocator.allocate(1));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 512, 0u);
    }
    EXPECT_EQ(blocks[1], blocks[0] + 512);
    EXPECT_EQ(blocks[2], blocks[1] + 512);
    allocator.release(blocks[1]);
    allocator.release(blocks[0]);
    EXPECT_TRUE(allocator.consistent());
    EXPECT_EQ(allocator.allocate(1024), blocks[0]);
    allocator.release(blocks[0]);
    allocator.release(blocks[2]);
    EXPECT_TRUE(allocator.consistent());
    EXPECT_EQ(allocator.stats().allocated, 0);
    allocator.flush();
    EXPECT_EQ(allocator.stats().reserved, 0);
    EXPECT_TRUE(allocator.consistent());
  }
}

TEST_F(AllocatorTest, WithoutVirtualMemoryOfTheDriverSegmentsArePlain) {
  // The driver's functions are looked up once per process, so only the option can be tested here.
  EXPECT_TRUE(Segment::can_grow(kDevice));
  CachingAllocator allocator(kDevice, {.growable = false});
  const int64_t frees = host::runtime_counts().device_frees;
  allocator.release(allocator.allocate(10 * kMiB));
  EXPECT_EQ(allocator.stats().device_allocations, 1);
  allocator.flush();
  EXPECT_EQ(host::runtime_counts().device_frees, frees + 1);
  EXPECT_EQ(allocator.stats().device_frees, 1);
}

// A current or former owner of memory in the model.
struct Owner {
  std::byte* data;
  size_t bytes;
  Handle home;
  uint32_t label;
  std::vector<Handle> users;
  std::vector<std::shared_ptr<bool>> pending;  // uses on other streams, true once over
};

// Queues work on a stream that notes when it ran.
void queue_mark(Handle stream, const std::shared_ptr<bool>& done) {
  host::enqueue_kernel({.name = "mark", .grid = dim3(1), .block = dim3(1), .stream = stream},
                       [done] { *done = true; });
}

class Model {
 public:
  explicit Model(CachingAllocator& allocator) : allocator_(allocator) {}

  void allocate(size_t bytes, uint32_t label, Handle stream) {
    const LabelScope scope(label);
    Owner owner{static_cast<std::byte*>(allocator_.allocate(bytes)), bytes, stream, label, {}, {}};
    auto after = live_.lower_bound(owner.data);
    if (after != live_.end()) {
      ASSERT_FALSE(overlap(owner.data, bytes, after->first, after->second.bytes));
    }
    if (after != live_.begin()) {
      const Owner& before = std::prev(after)->second;
      ASSERT_FALSE(overlap(owner.data, bytes, before.data, before.bytes));
    }
    std::erase_if(former_, [&](const Owner& former) {
      if (!overlap(owner.data, bytes, former.data, former.bytes)) {
        return false;
      }
      EXPECT_TRUE(former.home == stream || flushed_);
      for (const auto& over : former.pending) {
        EXPECT_TRUE(*over) << "a block is used again before its events";
      }
      return true;
    });
    expected_[label] += rounded(bytes);
    live_.emplace(owner.data, std::move(owner));
  }

  void use(size_t which, Handle stream) {
    Owner& owner = pick(which);
    allocator_.record_use(owner.data, stream);
    owner.users.push_back(stream);
  }

  void release(size_t which, Handle current) {
    Owner owner = pick(which);
    live_.erase(owner.data);
    if (current != owner.home) {
      owner.users.push_back(current);
    }
    for (Handle user : owner.users) {
      if (user != owner.home) {
        owner.pending.push_back(std::make_shared<bool>(false));
        queue_mark(user, owner.pending.back());
      }
    }
    expected_[owner.label] -= rounded(owner.bytes);
    allocator_.release(owner.data);
    former_.push_back(std::move(owner));
  }

  void flush() {
    allocator_.flush();
    former_.clear();
  }

  void check() const {
    int64_t total = 0;
    std::map<std::string, int64_t> held;
    for (const auto& [label, bytes] : expected_) {
      total += bytes;
      if (bytes > 0) {
        held[label_text(label)] = bytes;
      }
    }
    EXPECT_EQ(allocator_.stats().allocated, total);
    std::map<std::string, int64_t> reported;
    for (const LabelMemory& entry : allocator_.by_label()) {
      reported[entry.label] = entry.bytes;
    }
    EXPECT_EQ(reported, held);
    EXPECT_TRUE(allocator_.consistent());
  }

  size_t live() const { return live_.size(); }

 private:
  static int64_t rounded(size_t bytes) { return static_cast<int64_t>((bytes + 511) / 512 * 512); }
  Owner& pick(size_t which) {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(which % live_.size()))->second;
  }

  CachingAllocator& allocator_;
  std::map<std::byte*, Owner> live_;
  std::vector<Owner> former_;
  std::map<uint32_t, int64_t> expected_;
  bool flushed_ = false;
};

// BINADE_ALLOCATOR_OPERATIONS is the number of operations of each of six runs; the ctest
// cuda_allocator_long makes 10^6 in all.
TEST_F(AllocatorTest, TenThousandRandomOperationsAgreeWithAModel) {
  const char* set = std::getenv("BINADE_ALLOCATOR_OPERATIONS");
  const int operations = set != nullptr ? std::atoi(set) : 10000;
  const Stream streams[] = {Stream(kDevice), Stream(kDevice), Stream(kDevice)};
  const uint32_t labels[] = {0, intern_label(0, "encoder"), intern_label(0, "decoder"),
                             intern_label(0, "head")};
  for (const bool growable : {true, false}) {
    for (uint64_t seed : {0, 1, 2}) {
      host::stream_options().seed = seed;
      std::mt19937_64 random(seed + 10);
      CachingAllocator allocator(kDevice, {.growable = growable});
      Model model(allocator);
      for (int step = 0; step < operations && !HasFailure(); ++step) {
        const Stream& stream = streams[random() % 3];
        const StreamGuard guard(stream);
        const uint64_t action = random() % 1000;
        if (model.live() == 0 || (action < 480 && model.live() < 60)) {
          const size_t bytes = random() % 8 ? 1 + random() % 20000 : 1 + random() % (3 * kMiB);
          model.allocate(bytes, labels[random() % 4], stream.handle());
        } else if (action < 600) {
          model.use(random(), streams[random() % 3].handle());
        } else if (action < 990) {
          model.release(random(), stream.handle());
        } else if (action < 998) {
          stream.synchronize();
        } else {
          model.flush();
        }
        if (step % 100 == 0) {
          model.check();
        }
      }
      while (model.live() > 0) {
        model.release(0, nullptr);
      }
      model.flush();
      model.check();
      EXPECT_EQ(allocator.stats().reserved, 0);
    }
  }
}

// The blocks of a training step of six layers with a sequence of `length`.
class Step {
 public:
  explicit Step(CachingAllocator& allocator) : allocator_(allocator) {}
  ~Step() {
    while (!kept_.empty()) {
      drop();
    }
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  void run(size_t length) {
    constexpr size_t kWidth = 1024, kLayers = 6;
    const size_t row = length * kWidth;
    for (size_t layer = 0; layer < kLayers; ++layer) {
      for (size_t part : {row, 3 * row, length * length * 4, row, 4 * row, row}) {
        keep(part);
        temporary(part / 2);
        temporary(length * 4);
      }
    }
    while (!kept_.empty()) {  // backward
      temporary(kept_.back().second);
      drop();
    }
  }

 private:
  void keep(size_t bytes) { kept_.emplace_back(allocator_.allocate(bytes), bytes); }
  void drop() {
    allocator_.release(kept_.back().first);
    kept_.pop_back();
  }
  void temporary(size_t bytes) { allocator_.release(allocator_.allocate(bytes)); }

  CachingAllocator& allocator_;
  std::vector<std::pair<void*, size_t>> kept_;
};

TEST_F(AllocatorTest, RandomLengthsNeedNoDeviceAllocationAfterHundredSteps) {
  for (const bool growable : {true, false}) {
    CachingAllocator allocator(kDevice, {.growable = growable});
    std::vector<void*> weights;
    for (int i = 0; i < 12; ++i) {
      weights.push_back(allocator.allocate(kMiB * 3 / 2));
    }
    std::mt19937_64 random(7);
    DeviceMemoryStats warm;
    for (int step = 0; step < 10000; ++step) {
      Step(allocator).run(64 + random() % 449);
      if (step == 99) {
        warm = allocator.stats();
      }
    }
    const DeviceMemoryStats stats = allocator.stats();
    EXPECT_EQ(stats.device_allocations, warm.device_allocations) << "growable " << growable;
    EXPECT_EQ(stats.device_frees, warm.device_frees);
    EXPECT_EQ(stats.flushes, warm.flushes);
    const double ratio = static_cast<double>(stats.reserved) / static_cast<double>(stats.peak);
    std::cout << (growable ? "growable" : "plain") << ": reserved / peak " << ratio << ", peak "
              << stats.peak / static_cast<int64_t>(kMiB) << " MiB, device allocations "
              << stats.device_allocations << "\n";
    EXPECT_LE(ratio, 1.25) << "growable " << growable;
    for (void* weight : weights) {
      allocator.release(weight);
    }
    EXPECT_TRUE(allocator.consistent());
  }
}

TEST_F(AllocatorTest, RunningOutOfMemorySaysWhatIsHeldAndByWhom) {
  host::stream_options().memory = host::runtime_counts().device_bytes + 64 * kMiB;
  CachingAllocator allocator(kDevice, {});
  const uint32_t encoder = intern_label(0, "encoder");
  void* held = nullptr;
  {
    const LabelScope scope(encoder);
    held = allocator.allocate(40 * kMiB);
  }
  void* small = allocator.allocate(100);
  const DeviceMemoryStats before = allocator.stats();
  const LabelScope scope(intern_label(encoder, "attention"));
  expect_parts(error_of<OutOfMemory>([&] { allocator.allocate(30 * kMiB); }),
               {"out of memory on emulated:0", "got a request for 31457280 bytes (30 MiB)",
                "in encoder.attention", "40 MiB in use", "64 MiB free",
                "held by encoder 40 MiB, no module", "use a smaller batch"});
  EXPECT_EQ(allocator.stats().allocated, before.allocated);
  EXPECT_EQ(allocator.stats().flushes, before.flushes + 1);
  EXPECT_EQ(allocator.timeline().back().kind, MemoryEvent::out_of_memory);
  allocator.release(held);
  allocator.release(allocator.allocate(50 * kMiB));
  allocator.release(small);
  EXPECT_TRUE(allocator.consistent());
}

TEST_F(AllocatorTest, WhatOtherStreamsCachedIsFlushedBeforeAnAllocationFails) {
  for (const bool growable : {true, false}) {
    host::stream_options().memory = host::runtime_counts().device_bytes + 64 * kMiB;
    CachingAllocator allocator(kDevice, {.growable = growable});
    {
      const Stream other(kDevice);
      const StreamGuard guard(other);
      allocator.release(allocator.allocate(50 * kMiB));
    }
    void* block = allocator.allocate(40 * kMiB);
    EXPECT_EQ(allocator.stats().flushes, 1);
    allocator.release(block);
  }
}

TEST_F(AllocatorTest, ThreadsShareADevice) {
  const int64_t before = memory_stats(kDevice).allocated;
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([seed] {
      const Stream stream(kDevice);
      const StreamGuard guard(stream);
      std::mt19937_64 random(seed);
      std::vector<DeviceArray> arrays;
      for (int i = 0; i < 500; ++i) {
        arrays.emplace_back(static_cast<int64_t>(1 + random() % 5000));
        if (arrays.size() > 8) {
          arrays.pop_back();
          arrays.pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(memory_stats(kDevice).allocated, before);
  EXPECT_TRUE(CachingAllocator::of(kDevice).consistent());
}

TEST_F(AllocatorTest, TheTimelineTellsWhatHappened) {
  CachingAllocator allocator(kDevice, {});
  void* block = allocator.allocate(700);
  allocator.release(block);
  allocator.flush();
  const std::vector<MemoryEvent> events = allocator.timeline();
  std::vector<MemoryEvent::Kind> kinds;
  for (const MemoryEvent& event : events) {
    kinds.push_back(event.kind);
  }
  using enum MemoryEvent::Kind;
  const std::vector<MemoryEvent::Kind> expected = {grow, allocate, release, flush, shrink};
  EXPECT_EQ(kinds, expected);
  EXPECT_EQ(events[1].bytes, 1024);
  EXPECT_EQ(events[1].address, events[2].address);
  EXPECT_LE(events[1].time_ns, events[2].time_ns);
  for (int i = 0; i < 20000; ++i) {
    allocator.release(allocator.allocate(1));
  }
  EXPECT_LE(allocator.timeline().size(), 10000u);
}

TEST_F(AllocatorTest, PeakAndFailuresAreOfTheDeviceThatIsNamed) {
  reset_peak_memory(kDevice);
  const int64_t before = memory_stats(kDevice).allocated;
  { const DeviceArray large(100000); }
  EXPECT_EQ(memory_stats(kDevice).peak - before, 400384);
  fail_allocation(kDevice, 2);
  const DeviceArray first(10);
  EXPECT_THROW(DeviceArray(10), OutOfMemory);
  const DeviceArray third(10);
  EXPECT_THROW(memory_stats(Device{}), Error);
}

}  // namespace
}  // namespace binade::allocator_test
