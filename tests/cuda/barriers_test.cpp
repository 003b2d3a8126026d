// Shared memory that a block uses again: the barrier between the last read and the next write. A
// schedule in which a warp runs ahead shows it if it is missing.
#include "device_kernels.h"

#include <binade/kernels/host/executor.h>
#include <binade/kernels/cuda/column_sums.cuh>
#include <binade/kernels/reduce/reduce_kernels.cuh>

namespace binade::barriers_test {
namespace {

constexpr int kBlock = 128, kRounds = 3;

struct SumMemory {
  kernels::dev::BlockReduceMemory<float, kBlock> block;
};

// y[i] is the sum of (i + 1) x over the block.
__global__ void block_sums_kernel(const float* x, float* y) {
  auto& memory = kernels::dev::shared_mem<SumMemory>();
  for (int i = 0; i < kRounds; ++i) {
    const float sum =
        kernels::dev::block_sum(static_cast<float>(i + 1) * x[threadIdx.x], memory.block);
    if (threadIdx.x == kBlock - 1) {
      y[i] = sum;
    }
  }
}

struct Addend {
  float value;
  __device__ Addend merge(const Addend& other) const { return {value + other.value}; }
};

// y[i][column] is the sum of (i + 1) x over the parts.
__global__ void column_sums_kernel(const float* x, float* y) {
  auto& memory = kernels::dev::shared_mem<kernels::dev::ColumnSmem<Addend>>();
  const auto column = threadIdx.x, at = threadIdx.y * kernels::dev::kColumns + column;
  for (int i = 0; i < kRounds; ++i) {
    const Addend sum = kernels::dev::add_parts(Addend{static_cast<float>(i + 1) * x[at]}, memory);
    if (threadIdx.y == 0) {
      y[i * kernels::dev::kColumns + static_cast<int>(column)] = sum.value;
    }
  }
}

// Runs `body` in every schedule.
template <class F>
void in_every_schedule(F&& body) {
  using kernels::host::Schedule;
  const kernels::host::Options before = kernels::host::options();
  for (const Schedule schedule : {Schedule::forward, Schedule::reverse, Schedule::random}) {
    kernels::host::options().schedule = schedule;
    SCOPED_TRACE(static_cast<int>(schedule));
    body();
  }
  kernels::host::options() = before;
}

std::vector<float> numbers(int count) {
  std::vector<float> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(static_cast<float>(i % 7 + 1));
  }
  return all;
}

View with_sizes(const DeviceArray& array, const Dims& sizes) {
  View view = view_of(reinterpret_cast<std::byte*>(array.data()), DType::f32, sizes);
  view.device = kDevice;
  return view;
}

using Barriers = DeviceTest;

TEST_F(Barriers, BlockReductionsFollowEachOther) {
  const std::vector<float> values = numbers(kBlock);
  float sum = 0;
  for (const float value : values) {
    sum += value;
  }
  in_every_schedule([&] {
    const DeviceArray x(values), y(kRounds);
    const kernels::KernelCall call("block_sums", y.view());
    kernels::launch({"block_sums_kernel", dim3(1), dim3(kBlock), sizeof(SumMemory)},
                    block_sums_kernel, x.data(), y.data());
    EXPECT_EQ(y.get(), (std::vector<float>{sum, 2 * sum, 3 * sum}));
  });
}

TEST_F(Barriers, ColumnSumsFollowEachOther) {
  using kernels::dev::kColumns, kernels::dev::kParts;
  const std::vector<float> values = numbers(kColumns * kParts);
  std::vector<float> expected(kRounds * kColumns);
  for (int i = 0; i < kRounds * kColumns; ++i) {
    for (int part = 0; part < kParts; ++part) {
      expected[static_cast<size_t>(i)] +=
          static_cast<float>(i / kColumns + 1) *
          values[static_cast<size_t>(part * kColumns + i % kColumns)];
    }
  }
  in_every_schedule([&] {
    const DeviceArray x(values), y(kRounds * kColumns);
    const kernels::KernelCall call("column_sums", y.view());
    kernels::launch({"column_sums_kernel", dim3(1), dim3(kColumns, kParts),
                     sizeof(kernels::dev::ColumnSmem<Addend>)},
                    column_sums_kernel, x.data(), y.data());
    EXPECT_EQ(y.get(), expected);
  });
}

// One block reduces several groups of columns, as in a grid that has fewer blocks than work.
TEST_F(Barriers, ABlockReducesColumnAfterColumn) {
  namespace reduction = kernels::reduction;
  using R = kernels::dev::Scalar<kernels::dev::Sum>;
  constexpr int kRows = 24, kCols = 96;
  const std::vector<float> values = numbers(kRows * kCols);
  std::vector<float> expected(kCols);
  for (int i = 0; i < kRows * kCols; ++i) {
    expected[static_cast<size_t>(i % kCols)] += values[static_cast<size_t>(i)];
  }
  in_every_schedule([&] {
    const DeviceArray x(values), y(kCols);
    const View in = with_sizes(x, {kRows, kCols}), out = with_sizes(y, {1, kCols}), none{};
    const reduction::Reduction a{.x = in, .y = out, .aux = none, .reading = {}};
    const View kept = part_of(a, false), reduced = part_of(a, true);
    const reduction::Loops loops = {kernels::StridedLoop("reduce", {&kept, &out, &none}),
                                    kernels::StridedLoop("reduce", {&reduced})};
    reduction::ReducePlan plan = plan_of(a, loops);
    plan_columns(loops, sizeof(float), false, plan);
    ASSERT_EQ(plan.chunks, 1);
    ASSERT_GT(plan.units, plan.lanes) << "the block must have several rounds";
    const kernels::KernelCall call("reduce", out);
    kernels::launch({"reduce_columns_kernel", dim3(1), dim3(reduction::kThreads),
                     sizeof(reduction::ColumnsMemory<R, float, 1>)},
                    reduction::reduce_columns_kernel<R, float, float, 1>, plan);
    EXPECT_EQ(y.get(), expected);
  });
}

}  // namespace
}  // namespace binade::barriers_test
