// Buckets are reduced while backward is still running. The test uses no clock: it blocks backward
// until the reductions are done.
#include <binade/core/autograd/hooks.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/nn/losses.h>
#include <gtest/gtest.h>
#include <tests/dist/parallel/training_cases.h>
#include <tests/kernels/support/test_device.h>

#include <chrono>
#include <thread>

namespace binade::dist::overlap_test {
namespace {

struct Case {
  Sharding sharding;
  Device device;
};

// Blocks the backward of the first layer until every complete bucket has been reduced.
void train_while_held(Communicator& group, const Case& c) {
  SmallModel model;
  model.to(c.device, Precision::full());
  const ParameterList parameters = model.parameters();
  if (c.sharding != Sharding::none) {
    parameters.shard(group, c.sharding);
  }
  std::unique_ptr<DistributedDataParallel> ddp;
  size_t reduced = 0;  // number at the first gradient of the first layer
  bool held = false;
  const auto hold = [&](Tensor&) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!held) {
      reduced = 0;
      bool waits = false;
      for (const BucketTimes& bucket : ddp->last_reduction()) {
        reduced += bucket.end >= 0;
        waits = waits || (bucket.ready >= 0 && bucket.end < 0);
      }
      held = !waits;
      check(std::chrono::steady_clock::now() < deadline, "the buckets wait for backward");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  HookHandle hooks[] = {on_gradient(parameters[0].value, hold),
                        on_gradient(parameters[1].value, hold)};
  ddp = std::make_unique<DistributedDataParallel>(
      group, parameters, DistributedDataParallelOptions{.bucket_bytes = 600});
  const Rows rows = rows_of(0, 6 * group.rank(), 6, DType::f32);
  nn::cross_entropy(model(rows.x.to(c.device)), rows.labels.to(c.device)).backward();
  const std::vector<BucketTimes> times = ddp->last_reduction();
  check(times.size() >= 4 && reduced >= times.size() - 2, reduced, " of ", times.size(),
        " buckets were reduced during backward");
  int64_t bytes = 0;
  for (size_t b = 0; b < times.size(); ++b) {
    check(times[b].ready >= 0 && times[b].begin >= times[b].ready && times[b].end >= times[b].begin,
          "bucket ", b, ": ", times[b].ready, " ", times[b].begin, " ", times[b].end);
    check(b == 0 || times[b].begin >= times[b - 1].end, "bucket ", b, " began early");
    bytes += times[b].bytes;
  }
  check(bytes == parameters.arena()->segments()[0].numel * 4, bytes, " bytes");
  check(overlap_of(times).exposed < overlap_of(times).communication, "nothing was hidden");
  for (HookHandle& hook : hooks) {
    hook.remove();
  }
}

void expect_overlap_on(Device device) {
  for (const Sharding sharding : {Sharding::none, Sharding::states, Sharding::gradients}) {
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(text(to_string(sharding), ", ", ranks, " ranks"));
      const CommunicatorOptions slow{.link = {.latency = 1e-3}};
      const Case one{sharding, device};
      run_threads(
          ranks, [&](Communicator& group) { train_while_held(group, one); }, slow);
    }
  }
}

TEST(Overlap, BucketsAreReducedWhileBackwardGoesOn) { expect_overlap_on({}); }

// The device's gradients go through host memory, because the devices are not connected.
TEST(Overlap, BucketsAreReducedWhileBackwardGoesOnADevice) {
  if (kernels::test_device().is_cpu()) {
    GTEST_SKIP() << "skipped: no device";
  }
  expect_overlap_on(kernels::test_device());
}

std::vector<BucketTimes> evenly_ready(int count, double backward, int64_t bytes) {
  std::vector<BucketTimes> buckets;
  for (int b = 1; b <= count; ++b) {
    buckets.push_back({.bytes = bytes, .ready = backward * b / count});
  }
  return buckets;
}

TEST(Overlap, OfAModelledLink) {
  // Two ranks, two messages of 1 + 2 ms each.
  const LinkDelay link{.latency = 1e-3, .bytes_per_second = 1e6};
  const auto times = modelled_reduction(evenly_ready(3, 0.012, 4000), link, 2);
  EXPECT_DOUBLE_EQ(times[0].begin, 0.004);
  EXPECT_DOUBLE_EQ(times[0].end, 0.010);
  EXPECT_DOUBLE_EQ(times[1].begin, 0.010);  // starts after the first
  EXPECT_DOUBLE_EQ(times[2].end, 0.022);
  const Overlap overlap = overlap_of(times);
  EXPECT_DOUBLE_EQ(overlap.communication, 0.018);
  EXPECT_DOUBLE_EQ(overlap.tail, 0.008);
  EXPECT_DOUBLE_EQ(overlap.exposed, 0.010);
  EXPECT_DOUBLE_EQ(overlap.hidden(), 0.008);
  EXPECT_DOUBLE_EQ(overlap.bound(), 0.010 + 0.0018);
}

// With links slower and faster than backward, the exposed time must stay within the bound.
TEST(Overlap, ExposesNoMoreThanItMust) {
  const double backward = 1;
  for (const int ranks : {2, 3, 8}) {
    for (double share = 0.1; share < 10; share *= 1.3) {  // communication time over backward time
      const int64_t bytes = 1'000'000;
      const double link_bytes = 12 * bytes * 2.0 * (ranks - 1) / ranks;
      const LinkDelay link{.bytes_per_second = link_bytes / (share * backward)};
      const Overlap o =
          overlap_of(modelled_reduction(evenly_ready(12, backward, bytes), link, ranks));
      EXPECT_NEAR(o.communication, share * backward, 1e-9);
      EXPECT_LE(o.exposed, o.bound()) << ranks << " ranks, share " << share;
      // One bucket hides nothing, and two hide too little.
      const Overlap one =
          overlap_of(modelled_reduction(evenly_ready(1, backward, 12 * bytes), link, ranks));
      EXPECT_DOUBLE_EQ(one.exposed, one.communication);
      const Overlap two =
          overlap_of(modelled_reduction(evenly_ready(2, backward, 6 * bytes), link, ranks));
      EXPECT_EQ(two.exposed <= two.bound(), share >= 0.5 / 0.6) << share;
    }
  }
}

}  // namespace
}  // namespace binade::dist::overlap_test
