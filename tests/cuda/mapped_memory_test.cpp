// Growable segments on drivers that refuse to map memory, at once or later.
#include "device_kernels.h"

#include <binade/core/device/cuda/caching_allocator_internal.h>

#include <cstring>

namespace binade::mapped_memory_test {
namespace {

namespace host = kernels::host;
using MappedMemoryTest = DeviceTest;

constexpr size_t kMiB = size_t{1} << 20;

TEST_F(MappedMemoryTest, ADriverThatRefusesToMapGivesPlainMemory) {
  for (const char* call : {"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    host::inject_fault({.code = cudaErrorNotSupported, .k = 1, .call = call, .stays = true});
    EXPECT_FALSE(Segment::can_grow(kDevice)) << call;
    CachingAllocator allocator(kDevice, {});
    EXPECT_FALSE(allocator.stats().growable) << call;
    allocator.release(allocator.allocate(10 * kMiB));
    EXPECT_EQ(allocator.stats().device_allocations, 1) << call;
    allocator.flush();
    EXPECT_EQ(allocator.stats().reserved, 0) << call;
    host::reset_faults();
  }
  EXPECT_TRUE(Segment::can_grow(kDevice));
}

TEST_F(MappedMemoryTest, ADriverThatRefusesToMapAfterTheProbeGivesPlainMemory) {
  for (const cudaError_t code : {cudaErrorNotSupported, cudaErrorMemoryAllocation}) {
    for (const char* call : {"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
      const std::string what = text(call, " ", static_cast<int>(code));
      CachingAllocator allocator(kDevice, {});
      EXPECT_TRUE(allocator.stats().growable) << what;
      void* mapped = allocator.allocate(3 * kMiB);
      host::inject_fault({.code = code, .k = 1, .call = call, .stays = true});
      std::vector<void*> blocks;
      for (const size_t bytes : {size_t{100}, 10 * kMiB, 20 * kMiB}) {
        blocks.push_back(allocator.allocate(bytes));
        std::memset(blocks.back(), 1, bytes);
        EXPECT_TRUE(allocator.consistent()) << what;
      }
      host::reset_faults();
      blocks.push_back(allocator.allocate(40 * kMiB));  // mapped again
      blocks.push_back(mapped);
      for (void* block : blocks) {
        allocator.release(block);
      }
      allocator.flush();
      EXPECT_TRUE(allocator.consistent()) << what;
      EXPECT_EQ(allocator.stats().reserved, 0) << what;
      EXPECT_EQ(allocator.stats().device_allocations, allocator.stats().device_frees) << what;
    }
  }
}

}  // namespace
}  // namespace binade::mapped_memory_test
