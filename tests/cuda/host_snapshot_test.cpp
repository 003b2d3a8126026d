// Copies of a state on the device for saves in the background: the host does not wait for them, and
// later steps do not change them.
#include "device_kernels.h"

#include <binade/binade.h>
#include <binade/core/device/pinned.h>
#include <binade/core/observe/warning.h>
#include <binade/kernels/base/fault.h>
#include <binade/train/checkpoint/host_snapshot_internal.h>
#include <tests/data/fake_dataset.h>
#include <tests/support/temporary_directory.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

namespace binade::train::host_snapshot_test {
namespace {

namespace host = kernels::host;

class HostSnapshotTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    empty_pinned_cache();
    before_ = set_warning_handler([this](const std::string& text) { warnings.push_back(text); });
  }
  void TearDown() override {
    set_warning_handler(before_);
    EXPECT_EQ(pinned_stats().reserved, 0) << "a state in pinned memory stays after its snapshot";
    DeviceTest::TearDown();
  }
  std::vector<std::string> warnings;

 private:
  WarningHandler before_;
};

// Odd layouts: transposed, cut out, one element, none, on the CPU, in 16 bits.
StateParts state_of(uint64_t seed) {
  manual_seed(seed);
  const NoGradGuard guard;
  const auto on_device = [](const Tensor& x) { return x.to(kDevice); };
  const Tensor wide = on_device(randn({7, 9}));
  return {{"a",
           {{"transposed", transpose(on_device(randn({5, 33})), 0, 1)},
            {"cut", slice(wide, 1, 2, 5)},
            {"one", on_device(randn({1}))},
            {"none", on_device(empty({0, 3}))}}},
          {"b",
           {{"host", randn({3, 5})},
            {"half", on_device(randn({1025})).to(DType::f16)},
            {"large", on_device(randn({300, 70}))}}}};
}

std::vector<std::vector<float>> values_of(const StateParts& parts) {
  std::vector<std::vector<float>> all;
  for (const StatePart& part : parts) {
    for (const auto& [name, tensor] : part.tensors) {
      const Tensor x = tensor.to(Device{}).to(DType::f32).contiguous();
      all.emplace_back(x.numel() ? x.data<float>() : nullptr,
                       x.numel() ? x.data<float>() + x.numel() : nullptr);
    }
  }
  return all;
}

// A step after the copy.
void overwrite(const StateParts& parts) {
  const NoGradGuard guard;
  for (const StatePart& part : parts) {
    for (const auto& [name, tensor] : part.tensors) {
      Tensor(tensor).fill_(-5);
    }
  }
}

void expect_on_cpu_like(const StateParts& copy, const StateParts& state) {
  ASSERT_EQ(copy.size(), state.size());
  for (size_t i = 0; i < copy.size(); ++i) {
    EXPECT_EQ(copy[i].file, state[i].file);
    ASSERT_EQ(copy[i].tensors.size(), state[i].tensors.size());
    for (size_t k = 0; k < copy[i].tensors.size(); ++k) {
      const auto& [name, tensor] = copy[i].tensors[k];
      EXPECT_EQ(name, state[i].tensors[k].first);
      EXPECT_TRUE(tensor.device().is_cpu()) << name;
      EXPECT_EQ(tensor.sizes(), state[i].tensors[k].second.sizes()) << name;
      EXPECT_EQ(tensor.dtype(), state[i].tensors[k].second.dtype()) << name;
    }
  }
}

TEST_F(HostSnapshotTest, TheHostDoesNotWaitAndLaterStepsDoNotChangeTheCopy) {
  HostSnapshot snapshot;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    host::stream_options().seed = seed;
    const StateParts state = state_of(seed);
    const auto expected = values_of(state);
    const int64_t before = host::runtime_counts().waits;
    snapshot.take(state);
    overwrite(state);
    EXPECT_EQ(host::runtime_counts().waits, before) << "seed " << seed;
    EXPECT_EQ(values_of(snapshot.parts()), expected) << "seed " << seed;
    expect_on_cpu_like(snapshot.parts(), state);
  }
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

TEST_F(HostSnapshotTest, AnotherThreadReadsTheCopy) {
  for (const bool deferred : {true, false}) {
    host::stream_options().deferred = deferred;
    const StateParts state = state_of(3);
    const auto expected = values_of(state);
    HostSnapshot snapshot;
    snapshot.take(state);
    std::vector<std::vector<float>> got;
    std::thread reader([&] { got = values_of(snapshot.parts()); });
    overwrite(state);
    reader.join();
    EXPECT_EQ(got, expected);
  }
}

TEST_F(HostSnapshotTest, MemoryIsUsedAgainAndOtherLayoutsGetTheirOwn) {
  HostSnapshot snapshot;
  StateParts state = state_of(1);
  snapshot.take(state);
  const int64_t made = host::runtime_counts().pinned_allocations;
  for (int i = 0; i < 5; ++i) {
    snapshot.take(state);
  }
  EXPECT_EQ(host::runtime_counts().pinned_allocations, made);
  state[1].tensors[1].second = randn({40000}).to(kDevice);
  state[0].tensors.pop_back();
  const auto expected = values_of(state);
  snapshot.take(state);
  EXPECT_EQ(values_of(snapshot.parts()), expected);
  EXPECT_EQ(host::runtime_counts().pinned_allocations, made + 1);
}

// The first allocation, or one in the middle, is refused: the rest is copied while the host waits.
TEST_F(HostSnapshotTest, WithoutPinnedMemoryTheHostWaits) {
  constexpr int kNotPermitted = 800;
  for (const int64_t k : {1, 3}) {
    warnings.clear();
    HostSnapshot snapshot;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const StateParts state = state_of(seed);
      const auto expected = values_of(state);
      if (seed == 0) {
        empty_pinned_cache();  // of what staged the state's values
        host::inject_fault({.code = kNotPermitted, .k = k, .call = "cudaHostAlloc"});
      }
      const int64_t before = host::runtime_counts().waits;
      snapshot.take(state);
      overwrite(state);
      EXPECT_GT(host::runtime_counts().waits, before);
      EXPECT_EQ(values_of(snapshot.parts()), expected);
    }
    ASSERT_EQ(warnings.size(), 1u);
    expect_parts(warnings[0], {"trainer", "asynchronous saves", "cudaHostAlloc"});
  }
}

TEST_F(HostSnapshotTest, OnceOutOfPinnedMemoryTheCacheIsEmptied) {
  { const PinnedBuffer unused(kDevice, 1 << 20); }
  HostSnapshot snapshot;
  const StateParts state = state_of(2);
  const auto expected = values_of(state);
  host::inject_fault({.code = cudaErrorMemoryAllocation, .k = 1, .call = "cudaHostAlloc"});
  snapshot.take(state);
  EXPECT_EQ(values_of(snapshot.parts()), expected);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

// A fault that a kernel reports before the copy becomes an error of the save, not a checkpoint.
TEST_F(HostSnapshotTest, AReportedFaultIsThrown) {
  HostSnapshot snapshot;
  const StateParts state = state_of(4);
  const Tensor table = ones({3, 2}).to(kDevice);
  index_select(table, 0, full({1}, 5, DType::i64).to(kDevice));
  snapshot.take(state);
  const auto read = [&] { snapshot.parts(); };
  expect_parts(error_of<kernels::IndexError>(read), {"index_select", "5"});
  snapshot.take(state);
  EXPECT_EQ(values_of(snapshot.parts()), values_of(state));
}

TEST_F(HostSnapshotTest, AFailedDeviceIsAnError) {
  constexpr int kIllegalAddress = 700;
  const StateParts state = state_of(5);
  HostSnapshot snapshot;
  snapshot.take(state);
  snapshot.parts();
  host::inject_fault({.code = kIllegalAddress, .k = 1, .call = "kernel"});
  overwrite(state);
  const std::string error = error_of<Error>([&] {
    snapshot.take(state);
    snapshot.parts();
  });
  expect_parts(error, {"illegal"});
  host::reset_faults();
}

class Model : public nn::Module {
 public:
  Model() {
    register_module("first", first);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override { return second(relu(first(flatten(x, 1)))); }
  nn::Linear first{{.in = 48, .out = 16}}, second{{.in = 16, .out = 10}};
};

// A run with every step saved; returns the bytes of its checkpoints by their names.
std::map<std::string, std::string> train(const std::string& path, bool async) {
  manual_seed(7);
  Model model;
  model.to(kDevice, Precision::mixed(DType::f16));
  optim::AdamW adam(model.parameters(), {.lr = 0.01});
  optim::LossScaler scaler;
  Trainer trainer(
      {.model = model, .optimizer = adam, .scaler = &scaler},
      {.epochs = 2, .run = path, .checkpoint_every = 1, .async_save = async, .progress = false});
  const data::test::FakeDataset pictures(40);
  data::Loader loader(pictures, {.batch = 8, .workers = 0, .seed = 3, .device = kDevice});
  trainer.fit(loader);
  std::map<std::string, std::string> bytes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path + "/checkpoint")) {
    if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      bytes[entry.path().string().substr(path.size())] = {std::istreambuf_iterator<char>(file), {}};
    }
  }
  return bytes;
}

TEST_F(HostSnapshotTest, ATrainingSavesTheSameBytesAsOneThatWaits) {
  const binade::testing::TemporaryDirectory directory;
  const auto expected = train(directory / "sync", false);
  EXPECT_GE(expected.size(), 6u);
  for (const uint64_t seed : {0, 1, 2}) {
    host::stream_options().seed = seed;
    EXPECT_EQ(train(directory / text("async-", seed), true), expected);
  }
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

}  // namespace
}  // namespace binade::train::host_snapshot_test
