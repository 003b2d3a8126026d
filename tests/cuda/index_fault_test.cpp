// Values out of range (indices, targets and others) on the device: the call succeeds, and the next
// synchronisation throws one typed error that names the op and the value; afterwards the device
// works.
#include "device_kernels.h"

#include <binade/core/ops.h>
#include <binade/core/ops/index.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/fault.h>

#include <cmath>

namespace binade::index_fault_test {
namespace {

using IndexFaultTest = DeviceTest;

Tensor device_index(std::initializer_list<double> values, const Dims& sizes) {
  return from_values(values, sizes, DType::i64, kDevice);
}
Tensor device_ones(const Dims& sizes) { return ones(sizes, DType::f32, kDevice); }

// Checks the error that `wait` throws after `run`, which must not throw.
void expect_fault(
    const char* op, int64_t value, const std::function<Tensor()>& run,
    const std::function<void(const Tensor&)>& wait = [](const Tensor& y) { y.at(0); }) {
  const Tensor y = run();
  try {
    wait(y);
    ADD_FAILURE() << op << ": no error";
  } catch (const kernels::IndexError& error) {
    EXPECT_STREQ(error.op(), op);
    EXPECT_EQ(error.value(), value);
    const std::string start =
        text(op, ": got ", std::string(op) == "cross_entropy" ? "target" : "index", " ", value,
             ", expected 0 to 2");
    EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start);
    EXPECT_NE(std::string(error.what()).find("emulated:0"), std::string::npos) << error.what();
  }
  EXPECT_EQ(y.at(0), y.at(0)) << op;  // the fault is over
}

TEST_F(IndexFaultTest, EveryOpNamesItselfAndTheValue) {
  const Tensor table = device_ones({3, 2}), row = device_ones({1, 3});
  expect_fault("embedding", 3, [&] { return embedding(table, device_index({1, 3}, {2})); });
  expect_fault("index_select", -1, [&] {
    return index_select(table, 0, device_index({1, -1}, {2}));
  });
  expect_fault("gather", 7, [&] { return gather(row, 1, device_index({1, 7}, {1, 2})); });
  expect_fault("scatter_add", 4, [&] {
    return scatter_add(row, 1, device_index({1, 4}, {1, 2}), device_ones({1, 2}));
  });
  expect_fault("scatter", 4, [&] {
    return scatter(row, 1, device_index({1, 4}, {1, 2}), device_ones({1, 2}));
  });
  expect_fault("one_hot", 5, [&] { return one_hot(device_index({1, 5}, {2}), 3); });
  expect_fault("cross_entropy", 9, [&] {
    return cross_entropy(device_ones({2, 3}), device_index({1, 9}, {2}),
                         {.reduction = Reduction::none});
  });
}

// Lengths and labels of sequences; lengths of input and target, and the label, of two samples.
TEST_F(IndexFaultTest, SequencesOfCtcLoss) {
  const auto loss = [](double input, double target, double label) {
    return ctc_loss(device_ones({3, 2, 3}), device_index({1, label}, {2, 1}),
                    device_index({3, input}, {2}), device_index({1, target}, {2}),
                    {.reduction = Reduction::none});
  };
  const auto expect = [](const Tensor& y, int64_t value, const std::string& start) {
    try {
      y.at(0);
      ADD_FAILURE() << start << ": no error";
    } catch (const kernels::IndexError& error) {
      EXPECT_EQ(error.value(), value);
      EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start);
    }
    EXPECT_EQ(y.at(0), y.at(0));
  };
  expect(loss(4, 1, 1), 4, "ctc_loss: got input length 4, expected 0 to 3; found");
  expect(loss(3, -1, 1), -1, "ctc_loss: got target length -1, expected 0 to 1; found");
  expect(loss(3, 1, 7), 7, "ctc_loss: got label 7, expected 0 to 2; found");
  expect(loss(3, 1, 0), 0, "ctc_loss: got label (that of the blank) 0, expected 0 to 2; found");
}

TEST_F(IndexFaultTest, ProbabilitiesOfBce) {
  const Tensor y = bce(full({2}, 1.25, DType::f32, kDevice), device_ones({2}));
  try {
    y.item();
    ADD_FAILURE() << "no error";
  } catch (const kernels::ValueError& error) {
    EXPECT_EQ(error.value(), 1.25);
    expect_parts(error.what(), {"bce: got input 1.25, expected 0 to 1; found by", "emulated:0"});
  }
}

TEST_F(IndexFaultTest, EverySynchronisationReports) {
  const auto bad = [] { return embedding(device_ones({3, 2}), device_index({0, 3}, {2})); };
  expect_fault("embedding", 3, bad, [](const Tensor&) { synchronize(kDevice); });
  expect_fault("embedding", 3, bad, [](const Tensor&) { synchronize_stream(kDevice); });
  expect_fault("embedding", 3, bad, [](const Tensor& y) { y.to(Device{}); });
  expect_fault("embedding", 3, bad, [](const Tensor&) { Stream::current(kDevice).synchronize(); });
}

TEST_F(IndexFaultTest, TheFirstOfSeveralIsReportedOnce) {
  const Tensor table = device_ones({3, 2});
  embedding(table, device_index({5}, {1}));
  synchronize(Device{});  // the CPU has nothing to say
  index_select(table, 0, device_index({6}, {1}));
  const std::string error = error_of<kernels::IndexError>([] { synchronize(kDevice); });
  expect_parts(error, {"embedding", "5"});
  synchronize(kDevice);
}

TEST_F(IndexFaultTest, AReplayedGraphReports) {
  const Tensor table = device_ones({3, 2}), index = device_index({1}, {1});
  Graph graph(kDevice);
  Tensor y;
  graph.capture([&] { y = embedding(table, index); });
  graph.replay();
  EXPECT_EQ(y.at(0), 1);
  index.fill_(8);
  graph.replay();
  const std::string error = error_of<kernels::IndexError>([&] { y.at(0); });
  expect_parts(error, {"embedding: got index 8, expected 0 to 2", "asynchronously"});
}

}  // namespace
}  // namespace binade::index_fault_test
