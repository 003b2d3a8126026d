// Making, printing, reading and changing tensors on a device: the numbers of the CPU, with as few
// waits for the device as the values need.
#include "device_fixture.h"

#include <binade/core/device/host_sync.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/print.h>

namespace binade::tensor_basics_test {
namespace {

using TensorBasicsTest = DeviceTest;

TEST_F(TensorBasicsTest, RandomNumbersAreThoseOfTheCpu) {
  const auto drawn = [](Device device) {
    manual_seed(21);
    std::vector<Tensor> all = {randint(-7, 1000, {3, 41}, DType::i64, device),
                               randint(0, int64_t(1) << 60, {5}, DType::i64, device),
                               randperm(300, device)};
    const Tensor p = rand({7, 90}, DType::f32, device);
    all.push_back(bernoulli(p));
    all.push_back(multinomial(p, 50, true));
    all.push_back(multinomial(p, 50, false));
    return all;
  };
  const std::vector<Tensor> expected = drawn({}), got = drawn(kDevice);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].device(), kDevice);
    EXPECT_EQ(got[i].to(DType::f64).to_vector<double>(),
              expected[i].to(DType::f64).to_vector<double>())
        << i;
  }
}

TEST_F(TensorBasicsTest, APrintReadsTheShownElementsInOneCopy) {
  const Tensor x = arange(1'000'000, DType::i64, kDevice).reshape({1000, 1000});
  const std::string cpu = to_string(x.to(Device{}));
  HostSyncGuard guard(HostSyncGuard::record);
  EXPECT_EQ(to_string(x), cpu + " " + to_string(kDevice));
  ASSERT_EQ(guard.found().size(), 1u);
  EXPECT_EQ(guard.count(), 1);
  EXPECT_EQ(guard.found()[0].what, "to_string");
  EXPECT_NE(guard.found()[0].file.find("tensor_basics_test"), std::string::npos);
}

TEST_F(TensorBasicsTest, ValuesGoThereAndBack) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}, kDevice);
  EXPECT_EQ(x.device(), kDevice);
  HostSyncGuard guard(HostSyncGuard::record);
  EXPECT_EQ(transpose(x, 0, 1).to_vector<double>(), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  ASSERT_EQ(guard.found().size(), 1u);
  EXPECT_EQ(guard.found()[0].what, "to_vector");
  EXPECT_EQ(eye(2, 3, DType::f32, kDevice).to_vector<float>(),
            (std::vector<float>{1, 0, 0, 0, 1, 0}));
}

TEST_F(TensorBasicsTest, InPlaceArithmetic) {
  Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4}, {2, 2}, kDevice);
  x[1] += x[0];
  x *= 2;
  x -= transpose(x, 0, 1);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, -4, 4, 0}));
  EXPECT_THROW(x += ones({2, 2}), Error);
}

TEST_F(TensorBasicsTest, BernoulliReportsWhatIsNoProbability) {
  const Tensor p = Tensor::from(std::vector<float>{0.5f, 1.5f, 0.25f}, {3}, kDevice);
  const Tensor y = bernoulli(p);
  try {
    y.at(1);
    ADD_FAILURE() << "no error";
  } catch (const kernels::ValueError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("bernoulli: got p 1.5, expected 0 to 1", 0), 0u)
        << error.what();
  }
  EXPECT_EQ(y.at(1), 0) << "the fault is over";
}

}  // namespace
}  // namespace binade::tensor_basics_test
