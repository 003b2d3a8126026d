// The hidden-sync finder, and the anomaly finder on the device.
#include "device_kernels.h"

#include <binade/binade.h>

#include <tests/support/error_of.h>

namespace binade::diagnostics_test {
namespace {

using Diagnostics = DeviceTest;

TEST_F(Diagnostics, ItemNamesTheLineAndTheModule) {
  const Tensor x = full({1}, 3, DType::f32, kDevice);
  const LabelScope module(intern_label(0, "head"));
  const HostSyncGuard guard(HostSyncGuard::record);
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    sum += x.item();
  }
  const int line = __LINE__ - 2;
  EXPECT_EQ(sum, 9);
  ASSERT_EQ(guard.found().size(), 1u);
  const HostSync& sync = guard.found()[0];
  EXPECT_EQ(sync.what, "item");
  EXPECT_EQ(sync.module, "head");
  EXPECT_EQ(sync.line, static_cast<uint32_t>(line));
  EXPECT_NE(sync.file.find("diagnostics_test.cpp"), std::string::npos);
  EXPECT_EQ(sync.count, 3);
  EXPECT_EQ(guard.count(), 3);
  const std::string text = to_string(sync);
  EXPECT_NE(text.find("item on emulated:0, 3 times, "), std::string::npos) << text;
  EXPECT_NE(text.find("(in module head)"), std::string::npos) << text;
}

TEST_F(Diagnostics, EveryWayToWaitIsFound) {
  const Tensor x = full({4}, 3, DType::f32, kDevice);
  Event event(kDevice);
  event.record();
  HostSyncGuard guard(HostSyncGuard::record);
  x.at(2);
  x.to(Device{});
  to_device(x, Device{});
  synchronize(kDevice);
  synchronize_stream(kDevice);
  Stream::current(kDevice).synchronize();
  event.synchronize();
  empty_cache(kDevice);
  std::vector<std::string> what;
  for (const HostSync& sync : guard.found()) {
    what.push_back(sync.what);
  }
  EXPECT_EQ(what, (std::vector<std::string>{"at", "to", "copy to the cpu", "synchronize",
                                            "synchronize_stream", "Stream::synchronize",
                                            "Event::synchronize", "empty_cache"}));
}

TEST_F(Diagnostics, WhatDoesNotWaitIsNotFound) {
  const Tensor host = ones({4});
  const HostSyncGuard guard;  // raises
  Tensor x = host.to(kDevice);
  x.require_grad();
  sum(relu(x * 2.0)).backward();
  EXPECT_EQ(host.at(0), 1);
  host.to(Device{});
  const AllowHostSyncGuard allowed;
  EXPECT_EQ(x.grad().at(0), 2);
}

TEST_F(Diagnostics, RaisesBeforeTheWait) {
  const Tensor x = full({1}, 3, DType::f32, kDevice);
  {
    const HostSyncGuard guard;
    const std::string error = error_of([&] { x.item(); });
    EXPECT_NE(error.find("host sync: the host would wait for the device in item on emulated"),
              std::string::npos)
        << error;
  }
  EXPECT_EQ(x.item(), 3);
}

TEST_F(Diagnostics, ASyncInBackwardNamesTheOp) {
  static constexpr Op kOp{"reads_back", OpClass::movement};
  Tensor x = full({1}, 3, DType::f32, kDevice);
  x.require_grad();
  Tensor y = x.detach();
  {
    const LabelScope module(intern_label(0, "body"));
    y = kOp.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy * dy.item()}; });
  }
  const HostSyncGuard guard(HostSyncGuard::record);
  y.backward();
  ASSERT_EQ(guard.found().size(), 1u);
  EXPECT_EQ(guard.found()[0].op, "in backward of reads_back");
  EXPECT_EQ(guard.found()[0].module, "body");
}

TEST_F(Diagnostics, AnomaliesAreFoundOnTheDevice) {
  Tensor x = from_values({4, 0, 9}, {3}).to(kDevice);
  x.require_grad();
  const HostSyncGuard syncs(HostSyncGuard::record);
  const AnomalyGuard guard;
  EXPECT_NE(error_of([&] { log(x); }).find("the result of log, of shape [3], has 0 NaN and 1"),
            std::string::npos);
  const Tensor loss = sum(sqrt(x));
  const std::string error = error_of([&] { loss.backward(); });
  EXPECT_NE(error.find("the first at [1]"), std::string::npos) << error;
  EXPECT_NE(error.find("(in backward of sqrt)"), std::string::npos) << error;
  EXPECT_EQ(syncs.count(), 0) << "the finder's own waits are not the program's";
}

TEST_F(Diagnostics, RecomputeOnTheDevice) {
  Tensor x = ones({1000}, DType::f32, kDevice);
  x.require_grad();
  const Tensor y = recompute([](const Tensor& t) { return dropout(t, 0.5) * 3.0; }, x);
  sum(y).backward();
  const Tensor a = x.grad().to(Device{}), b = y.detach().to(Device{});
  for (int64_t i = 0; i < a.numel(); ++i) {
    ASSERT_EQ(a.at(i), b.at(i)) << i;
  }
}

}  // namespace
}  // namespace binade::diagnostics_test
