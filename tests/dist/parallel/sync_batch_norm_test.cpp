// Tests batch norm over the batches of all ranks, which are threads here.
#include <binade/core/ops.h>
#include <binade/dist/job/threads.h>
#include <binade/dist/parallel/distributed_data_parallel.h>
#include <binade/nn/conv.h>
#include <binade/nn/linear.h>
#include <binade/nn/losses.h>
#include <binade/nn/norm.h>
#include <binade/nn/sequential.h>
#include <binade/optim/adamw.h>
#include <gtest/gtest.h>
#include <tests/dist/parallel/training_cases.h>
#include <tests/kernels/support/test_device.h>

#include <numeric>

namespace binade::dist::sync_batch_norm_test {
namespace {

constexpr int64_t kChannels = 3;

struct Result {
  Tensor y, dx;               // for this rank's rows
  std::vector<double> dw_db;  // sums over the rows
  std::vector<double> running;
};

Tensor wave(const Dims& sizes, double phase, DType dtype) {
  int64_t numel = 1;
  for (const int64_t size : sizes) {
    numel *= size;
  }
  std::vector<double> values;
  for (int64_t i = 0; i < numel; ++i) {
    values.push_back(3 + 2 * std::sin(1.7 * static_cast<double>(i) + phase));
  }
  return from_values(std::span<const double>(values), sizes, dtype);
}

// Runs rows [first, first + count) of a batch of 12 images forward and backward.
Result normalize(int64_t first, int64_t count, DType dtype, bool affine, RankGroup* group,
                 Device device = {}) {
  const DType compute = compute_dtype(dtype);
  const auto part = [&](double phase) {
    return contiguous(slice(wave({12, kChannels, 2, 3}, phase, dtype), 0, first, first + count))
        .to(device);
  };
  const auto vector = [&](double phase) { return wave({kChannels}, phase, compute).to(device); };
  Tensor x = part(0), w = vector(1), b = vector(2);
  const Tensor mean = zeros({kChannels}, compute, device), var = ones({kChannels}, compute, device);
  x.require_grad(), w.require_grad(), b.require_grad();
  const Tensor y = batch_norm(x, affine ? w : Tensor(), affine ? b : Tensor(), mean, var,
                              {.momentum = 0.3, .group = group});
  backward(y, part(3));
  Result result{.y = y.detach(), .dx = x.grad(), .dw_db = {}, .running = {}};
  if (affine) {
    result.dw_db = values_of({{"dw", w.grad()}, {"db", b.grad()}});
  }
  result.running = values_of({{"mean", mean}, {"var", var}});
  return result;
}

void expect_one_batch(const std::vector<int64_t>& parts, DType dtype, bool affine, double tolerance,
                      Device device = {}) {
  const Result whole = normalize(0, 12, dtype, affine, nullptr);
  run_threads(static_cast<int>(parts.size()), [&](Communicator& group) {
    const auto rank = static_cast<size_t>(group.rank());
    const int64_t first = std::accumulate(parts.begin(), parts.begin() + group.rank(), int64_t(0)),
                  last = first + parts[rank];
    const Result part = normalize(first, parts[rank], dtype, affine, &group, device);
    check_close(values_of({{"y", part.y}}), values_of({{"y", slice(whole.y, 0, first, last)}}),
                tolerance);
    check_close(values_of({{"dx", part.dx}}), values_of({{"dx", slice(whole.dx, 0, first, last)}}),
                tolerance);
    check_close(part.running, whole.running, tolerance);
    if (affine) {
      const Tensor sums = from_values(std::span<const double>(part.dw_db),
                                      {static_cast<int64_t>(part.dw_db.size())}, DType::f64);
      group.all_reduce(sums);
      check_close(values_of({{"sums", sums}}), whole.dw_db, 10 * tolerance);
    }
  });
}

TEST(SyncBatchNorm, EqualsOneRankWithTheWholeBatch) {
  for (const bool affine : {true, false}) {
    expect_one_batch({6, 6}, DType::f64, affine, 1e-12);
    expect_one_batch({4, 4, 4}, DType::f64, affine, 1e-12);
    expect_one_batch({1, 7, 4}, DType::f64, affine, 1e-12);  // uneven parts
    expect_one_batch({6, 6}, DType::f32, affine, 1e-5);
    expect_one_batch({5, 7}, DType::f16, affine, 1e-2);
  }
}

TEST(SyncBatchNorm, OnADevice) {
  if (kernels::test_device().is_cpu()) {
    GTEST_SKIP() << "skipped: no device";
  }
  expect_one_batch({5, 7}, DType::f32, true, 1e-5, kernels::test_device());
  expect_one_batch({1, 7, 4}, DType::f16, true, 1e-2, kernels::test_device());
}

// The values are {1, 2} on one rank and {4} on the other.
TEST(SyncBatchNorm, RunningVarianceFarBelowEps) {
  run_threads(2, [](Communicator& group) {
    const Tensor x = group.rank() == 0 ? from_values({1e-6, 2e-6}, {2, 1}) : full({1, 1}, 4e-6);
    const Tensor mean = zeros({1}), var = ones({1});
    (void)batch_norm(x, {}, {}, mean, var, {.momentum = 1, .group = &group});
    EXPECT_NEAR(var.item() / (7e-12 / 3), 1, 1e-6);
    EXPECT_NEAR(mean.item() / (7e-6 / 3), 1, 1e-6);
  });
}

// The means of the ranks differ by less than f32 rounds a mean of 1e6.
TEST(SyncBatchNorm, RunningVarianceBesideALargeMean) {
  for (Device device : {Device{}, kernels::test_device()}) {
    run_threads(2, [device](Communicator& group) {
      const bool first = group.rank() == 0;
      const Tensor x =
          reshape(arange(first ? 9 : 10, DType::f32) / 16 + (first ? 1e6 : 1e6 + .5625),
                  {first ? 9 : 10, 1});
      const Tensor mean = zeros({1}).to(device), var = ones({1}).to(device);
      (void)batch_norm(x.to(device), {}, {}, mean, var, {.momentum = 1, .group = &group});
      EXPECT_NEAR(var.to(Device{}).item() * 256 * 12 / (19 * 20), 1, 1e-6);  // that of 0, 1 .. 18
    });
  }
}

TEST(SyncBatchNorm, RanksWithOtherStatisticsMakeADifference) {
  const Result whole = normalize(0, 12, DType::f64, true, nullptr);
  const Result part = normalize(0, 6, DType::f64, true, nullptr);
  EXPECT_THROW(
      check_close(values_of({{"y", part.y}}), values_of({{"y", slice(whole.y, 0, 0, 6)}}), 1e-6),
      Error);
}

// Convolution, batch norm, linear, batch norm over single values per sample. No biases precede the
// norms: their gradients would be rounding errors, which Adam would turn into full steps.
class Model : public nn::Module {
 public:
  Model() : Model(seed()) {}
  Tensor forward(const Tensor& x) override {
    const Tensor h = relu(norm1(conv(x)));
    return fc2(tanh(norm2(fc1(flatten(h, 1)))));
  }
  nn::Conv2d conv;
  nn::BatchNorm2d norm1;
  nn::Linear fc1;
  nn::BatchNorm1d norm2;
  nn::Linear fc2;

 private:
  static int seed() {
    manual_seed(8);
    return 0;
  }
  explicit Model(int)
      : conv({.in = 2, .out = 3, .kernel = 3, .bias = false}),
        norm1({.channels = 3}),
        fc1({.in = 12, .out = 6, .bias = false}),
        norm2({.channels = 6}),
        fc2({.in = 6, .out = kClasses}) {
    register_module("conv", conv);
    register_module("norm1", norm1);
    register_module("fc1", fc1);
    register_module("norm2", norm2);
    register_module("fc2", fc2);
  }
};

std::vector<double> train(int64_t steps, Communicator* group) {
  const int ranks = group ? group->size() : 1, rank = group ? group->rank() : 0;
  const int64_t own = 12 / ranks;
  Model model;
  model.to(DType::f64);
  std::unique_ptr<DistributedDataParallel> ddp;
  if (group) {
    check(model.synchronize_batch_norms(group) == 2, "not every norm was found");
    ddp = std::make_unique<DistributedDataParallel>(
        *group, model.parameters(),
        DistributedDataParallelOptions{.bucket_bytes = 600, .check_every = 10});
  }
  optim::AdamW adam(model.parameters(), {.lr = 0.003});
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor x = slice(wave({12, 2, 4, 4}, static_cast<double>(step), DType::f64), 0,
                           rank * own, (rank + 1) * own);
    const Rows rows = rows_of(step, rank * own, own, DType::f64);
    nn::cross_entropy(model(x), rows.labels).backward();
    check(adam.step() == optim::StepOutcome::applied, "the step was skipped");
  }
  model.eval();
  std::vector<double> values = values_of(model.state());
  for (const double y : values_of({{"y", model(wave({12, 2, 4, 4}, 0.5, DType::f64))}})) {
    values.push_back(y);
  }
  return values;
}

TEST(SyncBatchNorm, TrainsAsOneRankWithTheWholeBatch) {
  for (const int ranks : {2, 3, 12}) {  // 12: one sample each
    const int64_t steps = ranks == 2 ? 200 : 30;
    const std::vector<double> alone = train(steps, nullptr);
    run_threads(ranks,
                [&](Communicator& group) { check_close(train(steps, &group), alone, 1e-12); });
  }
}

TEST(SyncBatchNorm, ARankWithoutSamplesIsRefused) {
  try {
    run_threads(2, [](Communicator& group) {
      (void)batch_norm(ones({0, 2}), {}, {}, {}, {}, {.group = &group});
    });
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("expected samples on every rank"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace binade::dist::sync_batch_norm_test
