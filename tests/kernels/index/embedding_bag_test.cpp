// Compares embedding_bag with plain loops: every mode, layout and dtype, empty bags, entries that
// take no part, NaN, and bad offsets.
#include <binade/kernels/index/embedding_bag.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/support/fault_of.h"
#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::embedding_bag_test {
namespace {

Array numbers(const std::vector<int64_t>& values) {
  Array a(DType::i64, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    a.set(int64_t(i), double(values[i]));
  }
  return a;
}

struct Case {
  BagMode mode;
  DType dtype;
  Layout layout;
  int64_t columns, exempt;
  bool factors;
};

void check_case(const Case& c) {
  const std::vector<int64_t> index = {0, 3, 3, 1, 4, 4, 2, 0, 2}, offsets = {0, 0, 4, 6, 9, 9};
  const auto bags = int64_t(offsets.size()) - 1, n = int64_t(index.size());
  Array weight(c.dtype, {5, c.columns}, c.layout), factors(c.dtype, {n}),
      y(c.dtype, {bags, c.columns}), chosen(DType::i64, {bags, c.columns});
  weight.random(1, -1, 1);
  factors.random(2, -1, 1);
  Array i = numbers(index), o = numbers(offsets);
  const bool max = c.mode == BagMode::max;
  embedding_bag({"test", weight.view(), i.view(), o.view(), c.factors ? factors.view() : kNoView,
                 y.view(), max ? chosen.view() : kNoView, c.mode, c.exempt});
  const std::string what = describe(c.dtype, {5, c.columns}, c.layout);
  for (int64_t item = 0; item < bags * c.columns; ++item) {
    const int64_t bag = item / c.columns, column = item % c.columns;
    double sum = 0, largest = 0;
    int64_t count = 0, row = -1;
    for (int64_t e = offsets[size_t(bag)]; e < offsets[size_t(bag) + 1]; ++e) {
      const int64_t k = index[size_t(e)];
      if (k != c.exempt) {
        const double x = weight[k * c.columns + column];
        if (row < 0 || x > largest) {
          largest = x;
          row = k;
        }
        sum += c.factors ? x * factors[e] : x;
        ++count;
      }
    }
    if (max) {
      ASSERT_EQ(y[item], largest) << what << " " << item;
      ASSERT_EQ(chosen[item], double(row)) << what << " " << item;
    } else {
      const double wanted = c.mode == BagMode::mean && count > 0 ? sum / double(count) : sum;
      ASSERT_NEAR(y[item], wanted, 4 * epsilon(c.dtype) * (1 + std::fabs(wanted)))
          << what << " " << item;
    }
  }
}

TEST(EmbeddingBag, EveryModeLayoutAndDtype) {
  for (DType dtype : floating_dtypes()) {
    for (Layout layout : kInputLayouts) {
      for (int64_t columns : {1, 33}) {
        for (int64_t exempt : {kNoExemption, int64_t{4}}) {
          for (BagMode mode : {BagMode::sum, BagMode::mean, BagMode::max}) {
            check_case({mode, dtype, layout, columns, exempt, false});
          }
          check_case({BagMode::sum, dtype, layout, columns, exempt, true});
        }
      }
    }
  }
}

TEST(EmbeddingBag, TheFirstLargestAndNan) {
  Array weight(DType::f32, {3, 2}), y(DType::f32, {2, 2}), chosen(DType::i64, {2, 2});
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = INFINITY;
  const double values[] = {1, infinity, 1, nan, 0, nan};
  for (int64_t i = 0; i < 6; ++i) {
    weight.set(i, values[i]);
  }
  Array index = numbers({2, 1, 0, 0, 1, 2}), offsets = numbers({0, 3, 6});
  embedding_bag({"test", weight.view(), index.view(), offsets.view(), kNoView, y.view(),
                 chosen.view(), BagMode::max});
  EXPECT_EQ(chosen[0], 1);
  EXPECT_EQ(chosen[2], 0);
  EXPECT_EQ(chosen[1], 2);
  EXPECT_EQ(chosen[3], 1);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[3]));
}

TEST(EmbeddingBag, BadOffsetsAndIndices) {
  Array weight(DType::f32, {3, 2}), y(DType::f32, {2, 2});
  weight.random(1);
  const auto message = [&](const std::vector<int64_t>& index, const std::vector<int64_t>& offsets) {
    Array i = numbers(index), o = numbers(offsets);
    const std::string all = fault_of([&] {
      embedding_bag(
          {"bag", weight.view(), i.view(), o.view(), kNoView, y.view(), kNoView, BagMode::sum});
    });
    return all.substr(0, all.find(", exp"));
  };
  fault_of([] {});  // clears faults of earlier tests
  EXPECT_EQ(message({0, 1, 2}, {0, 1, 3}), "");
  EXPECT_EQ(message({0, 1, 2}, {1, 2, 3}), "bag 1: bag: got a first offset of 1");
  EXPECT_EQ(message({0, 1, 2}, {0, 4, 3}), "bag 4: bag: got an offset of 4");
  EXPECT_EQ(message({0, 1, 2}, {0, -1, 3}), "bag -1: bag: got an offset of -1");
  EXPECT_EQ(message({0, 1, 2}, {0, 2, 1}), "bag -1: bag: got a bag of length -1");
  EXPECT_EQ(message({0, 1, 2}, {0, 1, 2}),
            "bag 1: bag: got indices after the last bag, in number 1");
  EXPECT_TRUE(message({0, 3, 2}, {0, 1, 3}).starts_with("bag 3: bag: got index 3"));
}

TEST(EmbeddingBag, BadArgumentsAreErrors) {
  Array weight(DType::f32, {3, 2}), y(DType::f32, {2, 2}), half(DType::f16, {2, 2}),
      factors(DType::f32, {3}), chosen(DType::i64, {2, 2});
  Array index = numbers({0, 1, 2}), offsets = numbers({0, 1, 3});
  const auto run = [&](const View& w, const View& o, const View& f, const View& to, const View& at,
                       BagMode mode) {
    EXPECT_THROW(embedding_bag({"bag", w, index.view(), o, f, to, at, mode}), Error);
  };
  run(weight.view(), offsets.view(), kNoView, half.view(), kNoView, BagMode::sum);
  run(index.view(), offsets.view(), kNoView, y.view(), kNoView, BagMode::sum);
  run(weight.view(), factors.view(), kNoView, y.view(), kNoView, BagMode::sum);
  run(weight.view(), offsets.view(), factors.view(), y.view(), kNoView, BagMode::mean);
  run(weight.view(), offsets.view(), offsets.view(), y.view(), kNoView, BagMode::sum);
  run(weight.view(), offsets.view(), kNoView, y.view(), chosen.view(), BagMode::sum);
  run(weight.view(), offsets.view(), kNoView, y.view(), y.view(), BagMode::max);
}

}  // namespace
}  // namespace binade::kernels::embedding_bag_test
