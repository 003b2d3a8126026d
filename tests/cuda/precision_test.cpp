// Policies on the device: rules, the cast cache with captured graphs, and a ledger that does not
// wait.
#include "device_fixture.h"

#include <binade/binade.h>

namespace binade::precision_test {
namespace {

using DevicePrecision = DeviceTest;
constexpr DType f16 = DType::f16;

Tensor weight(double value) {
  Tensor w = full({2, 2}, value, DType::f32, kDevice);
  return w.require_grad();
}

TEST_F(DevicePrecision, ALedgerOfAStepWaitsForNothing) {
  nn::Linear model({.in = 2, .out = 2});
  model.to(kDevice, Precision::autocast(f16).with({{.op = "softmax", .dtype = f16}}));
  const Tensor x = ones({3, 2}, DType::f32, kDevice);
  PrecisionLedger ledger;
  const HostSyncGuard raises;
  for (int i = 0; i < 2; ++i) {
    const PrecisionScope step(*model.precision());
    const Tensor y = softmax(model(model(x)), 1);
    EXPECT_EQ(y.dtype(), f16);
    sum(y).backward();
  }
  ASSERT_FALSE(ledger.rows().empty());
  const LedgerRow& linear = ledger.rows()[0];
  EXPECT_EQ(linear.op, "linear");
  EXPECT_EQ(linear.inputs, "f16 f16 f16");
  EXPECT_EQ(linear.calls, 4);
  EXPECT_GT(ledger.cast_bytes(), 0);
}

TEST_F(DevicePrecision, CastsOfParametersAreKeptAndSeeChanges) {
  Tensor w = weight(2);
  const Tensor x = ones({1, 2}, f16, kDevice);
  const PrecisionScope scope(Precision::autocast(f16));
  {
    const NoGradGuard no_grad;
    EXPECT_EQ(matmul(x, w).at(0), 4);
    EXPECT_EQ(cast_cache_stats().entries, 1);
    w.fill_(3);
  }
  const Tensor y = matmul(x, w);
  EXPECT_EQ(y.at(0), 6);
  sum(y).backward();
  EXPECT_EQ(w.grad().at(3), 1);
}

TEST_F(DevicePrecision, AGraphHasItsOwnCasts) {
  Tensor w = weight(2);
  const Tensor x = ones({1, 2}, f16, kDevice);
  const NoGradGuard no_grad;
  const PrecisionScope scope(Precision::autocast(f16));
  matmul(x, w);  // the cache is warm
  Graph graph(kDevice);
  Tensor y;
  graph.capture([&] { y = matmul(x, w); });
  w.fill_(5);
  graph.replay();
  EXPECT_EQ(y.at(0), 10);
}

}  // namespace
}  // namespace binade::precision_test
