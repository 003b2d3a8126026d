// Tensors with more elements than 32 bits count (the test M11): an op on the whole of one gives the
// bits, or within rounding the values, that it gives on parts of it. BINADE_HUGE_TENSORS names the
// device, cpu or cuda; without it, or with less free memory than a test needs (up to 18 GB), the
// test is skipped. The ctest train_huge_tensors_long sets it.
#include <binade/binade.h>
#include <binade/core/device/memory_limit.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace binade::huge_tensors_test {
namespace {

// One below 2^31 (a prime), at and above 2^31, and above 2^32.
constexpr int64_t kCounts[] = {(int64_t{1} << 31) - 1, int64_t{1} << 31, (int64_t{1} << 31) + 512,
                               (int64_t{1} << 32) + 1};
// A prime, so that an index that wraps at 2^31 or 2^32 meets other values.
constexpr int64_t kPeriod = 1'048'573;

const char* device_name() { return std::getenv("BINADE_HUGE_TENSORS"); }

// Rows of n elements, as long as possible below 1024. n is no prime.
Dims rows_of(int64_t n) {
  int64_t columns = 1023;
  while (n % columns != 0) {
    --columns;
  }
  return {n / columns, columns};
}

class HugeVectors : public ::testing::TestWithParam<int64_t> {
 protected:
  void TearDown() override { empty_cache(); }  // the next test has blocks of another size

  int64_t n() const { return GetParam(); }
  Device device() const { return device_; }

  // False, with the test skipped, if `tensors` f16 tensors of n elements do not fit.
  bool fits(double tensors) {
    const auto skip = [](const std::string& why) { GTEST_SKIP() << why; };
    if (device_name() == nullptr) {
      skip("BINADE_HUGE_TENSORS is not set");
      return false;
    }
    device_ = Device::parse(device_name());
    const auto needed = static_cast<int64_t>(tensors * 2 * static_cast<double>(n())) + (1 << 30);
    const int64_t room = memory_room(device_).bytes;
    if (room < needed) {
      skip("needs " + std::to_string(needed >> 20) + " MiB of " + std::to_string(room >> 20));
      return false;
    }
    return true;
  }

  // n f16 elements that repeat after kPeriod.
  Tensor drawn(const Dims& sizes) const {
    manual_seed(7);
    const Tensor part = cast(randn({kPeriod}), DType::f16).to(device_);
    const Tensor x = empty({n()}, DType::f16, device_);
    for (int64_t i = 0; i < n(); i += kPeriod) {
      const int64_t length = std::min(kPeriod, n() - i);
      narrow(x, 0, i, length).copy_(narrow(part, 0, 0, length));
    }
    return reshape(x, sizes);
  }

  // The first of `length` rows to look at: at both ends, within, and about multiples of 2^31.
  static std::vector<int64_t> places(const Tensor& x, int64_t length) {
    const int64_t rows = x.size(0), row = x.numel() / rows;
    std::vector<int64_t> first = {0, rows / 3, rows - length};
    for (int64_t edge = int64_t{1} << 31; edge < x.numel(); edge += int64_t{1} << 31) {
      first.push_back(std::clamp<int64_t>(edge / row - length / 2, 0, rows - length));
    }
    return first;
  }

  // Rows of f(x) are f of these rows of x, within `tolerance` of each value; 0: in every bit.
  template <class F>
  static void same_in_parts(const Tensor& x, int64_t length, F f, double tolerance = 0) {
    const Tensor whole = f(x);
    ASSERT_EQ(whole.size(0), x.size(0));
    for (const int64_t at : places(x, length)) {
      const Tensor got = narrow(whole, 0, at, length);
      const Tensor expected = f(clone(narrow(x, 0, at, length)));
      EXPECT_TRUE(tolerance == 0 ? equal(got, expected)
                                 : allclose(got, expected, tolerance, tolerance))
          << "rows from " << at;
    }
  }

 private:
  Device device_;
  NoGradGuard no_gradients_;
};

class HugeRows : public HugeVectors {};

TEST_P(HugeVectors, PointwiseAndCasts) {
  if (!fits(2.1)) {
    return;
  }
  const Tensor x = drawn({n()});
  same_in_parts(x, 4096, [](const Tensor& t) { return clone(t); });
  same_in_parts(x, 4096, [](const Tensor& t) { return cast(t, DType::bf16); });
  same_in_parts(x, 4096, [](const Tensor& t) { return t * t; });
  same_in_parts(x, 4096, [](const Tensor& t) { return tanh(t); });
}

TEST_P(HugeRows, BroadcastRowsAndTransposed) {
  if (!fits(2.1)) {
    return;
  }
  const Tensor x = drawn(rows_of(n()));
  const Tensor row = clone(narrow(x, 0, 0, 1));
  same_in_parts(x, 8, [&](const Tensor& t) { return t * row; });
  const Tensor turned = transpose(x, 0, 1).contiguous();
  for (const int64_t at : places(x, 8)) {
    EXPECT_TRUE(equal(transpose(narrow(turned, 1, at, 8), 0, 1), narrow(x, 0, at, 8)))
        << "from " << at;
  }
}

TEST_P(HugeRows, SoftmaxAndNorm) {
  if (!fits(2.1)) {
    return;
  }
  const Tensor x = drawn(rows_of(n()));
  same_in_parts(x, 8, [](const Tensor& t) { return softmax(t); });
  same_in_parts(x, 8, [](const Tensor& t) { return layer_norm(t, {t.size(1)}); });
}

TEST_P(HugeRows, ReductionsOfRows) {
  if (!fits(1.6)) {
    return;
  }
  const Tensor x = drawn(rows_of(n()));
  same_in_parts(x, 8, [](const Tensor& t) { return sum(t, {1}); });
  same_in_parts(x, 8, [](const Tensor& t) { return amax(t, {1}); });
  same_in_parts(x, 8, [](const Tensor& t) { return argmax(t, 1); });
}

TEST_P(HugeVectors, ReductionsOfAll) {
  if (!fits(1.1)) {
    return;
  }
  const Tensor x = drawn({n()});
  for (const int64_t at : {n() - 1, n() / 2, int64_t{1} << 30}) {
    narrow(x, 0, at, 1).fill_(1000);
    EXPECT_EQ(max(x).item(), 1000);
    EXPECT_EQ(static_cast<int64_t>(argmax(x).item()), at);
    narrow(x, 0, at, 1).fill_(0);
  }
  const Tensor ones = x;
  ones.fill_(1);
  EXPECT_EQ(mean(ones).item(), 1);
}

TEST_P(HugeRows, SumOfColumns) {
  if (!fits(1.1)) {
    return;
  }
  const Tensor x = drawn(rows_of(n()));
  x.fill_(0);
  for (const int64_t at : places(x, 1)) {
    narrow(x, 0, at, 1).fill_(1);
  }
  std::set<int64_t> rows;
  for (const int64_t at : places(x, 1)) {
    rows.insert(at);
  }
  const Tensor sums = sum(x, {0});
  EXPECT_EQ(min(sums).item(), static_cast<double>(rows.size()));
  EXPECT_EQ(max(sums).item(), static_cast<double>(rows.size()));
}

TEST_P(HugeRows, RowsByIndex) {
  if (!fits(2.2)) {
    return;
  }
  const Tensor x = drawn(rows_of(n()));
  const Tensor rows = Tensor::from(places(x, 1)).to(device());
  const auto expect_rows = [&](const Tensor& got) {
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const int64_t at = places(x, 1)[static_cast<size_t>(i)];
      EXPECT_TRUE(equal(narrow(got, 0, i, 1), narrow(x, 0, at, 1))) << "row " << at;
    }
  };
  expect_rows(index_select(x, 0, rows));
  expect_rows(embedding(x, rows));
  expect_rows(gather(x, 0, expand(reshape(rows, {-1, 1}), {rows.size(0), x.size(1)})));
  const Tensor written = index_fill(x, 0, rows, 5);
  expect_rows(index_select(x, 0, rows));  // x is as before
  for (const int64_t at : places(x, 1)) {
    EXPECT_EQ(min(narrow(written, 0, at, 1)).item(), 5);
    const int64_t beside = at == 0 ? 1 : at - 1;
    EXPECT_TRUE(equal(narrow(written, 0, beside, 1), narrow(x, 0, beside, 1))) << "row " << beside;
  }
}

TEST_P(HugeRows, AddedAtIndices) {
  if (!fits(2.2)) {
    return;
  }
  const Tensor x = drawn(rows_of(n()));
  const Tensor rows = Tensor::from(std::vector<int64_t>{0, x.size(0) - 1}).to(device());
  const Tensor twice = index_select(x, 0, rows) * 2;
  EXPECT_TRUE(equal(index_select(index_add(x, 0, rows, index_select(x, 0, rows)), 0, rows), twice));
  const Tensor at = expand(reshape(rows, {2, 1}), {2, x.size(1)});
  EXPECT_TRUE(equal(index_select(scatter_add(x, 0, at, index_select(x, 0, rows)), 0, rows), twice));
}

TEST_P(HugeRows, Products) {
  if (!fits(1.6)) {
    return;
  }
  const Tensor x = drawn(rows_of(n()));
  manual_seed(8);
  const Tensor weight = cast(randn({x.size(1), 8}), DType::f16).to(device());
  const double rounding = 0x1p-9;  // parts may be summed in another order
  same_in_parts(
      x, 8, [&](const Tensor& t) { return matmul(t, weight); }, rounding);
}

TEST_P(HugeVectors, StepOfSGD) {
  if (!fits(3.3)) {
    return;
  }
  Tensor x = drawn({n()});
  const ParameterList list = ParameterList::of(x);
  optim::SGD sgd(list, {.lr = 0.5});
  Leaf& leaf = list[0].leaf();  // a backward would need another tensor
  leaf.buffer.fill_(2);
  leaf.has_grad = true;
  EXPECT_EQ(sgd.step().value(), optim::StepOutcome::applied);
  const Tensor expected = drawn({n()}) - 1;
  for (const int64_t at : places(x, 4096)) {
    EXPECT_TRUE(equal(narrow(x, 0, at, 4096), narrow(expected, 0, at, 4096))) << "from " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(, HugeVectors, ::testing::ValuesIn(kCounts));
INSTANTIATE_TEST_SUITE_P(, HugeRows, ::testing::ValuesIn(kCounts + 1, std::end(kCounts)));

}  // namespace
}  // namespace binade::huge_tensors_test
