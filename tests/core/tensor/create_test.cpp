// Tests creating tensors from values, ranges and random numbers, and reading them back.
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/philox.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include <tests/core/autograd/autograd_testing.h>

namespace binade::create_test {
namespace {

TEST(From, TheDtypeIsThatOfTheValues) {
  EXPECT_EQ(Tensor::from({1.0, 2.0}).dtype(), DType::f64);
  EXPECT_EQ(Tensor::from({1.0f, 2.0f}).dtype(), DType::f32);
  EXPECT_EQ(Tensor::from({half(1.5f)}).dtype(), DType::f16);
  EXPECT_EQ(Tensor::from({bfloat16(1.5f)}).dtype(), DType::bf16);
  EXPECT_EQ(Tensor::from({int64_t(1)}).dtype(), DType::i64);
  EXPECT_EQ(Tensor::from({1, 2}).dtype(), DType::i32);
  EXPECT_EQ(Tensor::from({uint8_t(200)}).dtype(), DType::u8);
  EXPECT_EQ(Tensor::from({true, false}).dtype(), DType::boolean);
  EXPECT_EQ(values(Tensor::from({uint8_t(200)})), std::vector<double>{200});
}

TEST(From, ShapesAreRowMajor) {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_EQ(x.sizes(), (Dims{3, 2}));
  EXPECT_EQ(select(x, 0, 2).at(0), 5);
  const Tensor nested = Tensor::from({{1.5f, 2.5f, 3.5f}, {4.5f, 5.5f, 6.5f}});
  EXPECT_EQ(nested.sizes(), (Dims{2, 3}));
  EXPECT_EQ(nested.at(4), 5.5);
  std::vector<float> list{1, 2, 3, 4};
  const Tensor copy = Tensor::from(list, {2, 2});
  list[0] = 9;
  EXPECT_EQ(copy.at(0), 1);
  EXPECT_EQ(Tensor::from(list).sizes(), Dims{4});
  EXPECT_EQ(Tensor::from(std::span<const float>(list).subspan(1), {3}).at(0), 2);
  EXPECT_EQ(values(Tensor::from(std::vector<bool>{true, false, true})),
            (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(Tensor::from(std::vector<float>{}, {0, 3}).sizes(), (Dims{0, 3}));
  EXPECT_EQ(Tensor::from({7.0}, {}).item(), 7);
}

TEST(From, WrongCountsAreErrors) {
  EXPECT_HAS(error_of([] {
               Tensor::from({1, 2, 3}, {2, 2});
             }),
             "from: got 3 values for shape [2, 2], expected 4");
  EXPECT_HAS(error_of([] { Tensor::from({{1, 2}, {3}}); }), "from: got rows of 2 and 1 values");
}

TEST(ToVector, ReadsAnyLayout) {
  const Tensor x = Tensor::from({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(x.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(transpose(x, 0, 1).to_vector<int32_t>(), (std::vector<int32_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(slice(x, 1, 0, 3, 2).to_vector<int64_t>(), (std::vector<int64_t>{1, 3, 4, 6}));
  EXPECT_EQ(expand(x[1], {2, 3}).to_vector<double>(), (std::vector<double>{4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(gt(x, 3).to_vector<bool>(), (std::vector<bool>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(empty({0, 3}).to_vector<float>().size(), 0u);
  const Tensor largest = Tensor::from({INT64_MAX, INT64_MIN});
  EXPECT_EQ(largest.to_vector<int64_t>(), (std::vector<int64_t>{INT64_MAX, INT64_MIN}));
}

// to_vector<T>() of each dtype works if T can hold every value of the dtype.
template <class T>
void expect_widening(const std::set<DType>& held) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor x = ones({2}, dtype);
    const std::string error = error_of([&] {
      const std::vector<T> y = x.to_vector<T>();
      EXPECT_EQ(static_cast<double>(y[1]), 1);
    });
    EXPECT_EQ(error == "none", held.count(dtype) == 1) << to_string(dtype) << ": " << error;
  }
}

TEST(ToVector, ConvertsToWiderTypesOnly) {
  using enum DType;
  expect_widening<double>({f64, f32, f16, bf16, i32, u8, boolean});
  expect_widening<float>({f32, f16, bf16, u8, boolean});
  expect_widening<half>({f16, u8, boolean});
  expect_widening<int64_t>({i64, i32, u8, boolean});
  expect_widening<int32_t>({i32, u8, boolean});
  expect_widening<uint8_t>({u8, boolean});
  expect_widening<bool>({boolean});
  EXPECT_HAS(error_of([] { ones({2}).to_vector<int64_t>(); }),
             "to_vector: got a tensor of dtype f32 for a vector of i64");
  EXPECT_HAS(error_of([] { Tensor().to_vector<float>(); }), "to_vector: got an undefined tensor");
}

TEST(Like, TakesSizesLayoutAndDtype) {
  const Tensor t = empty({4, 3}, DType::f16);
  const Tensor x = transpose(t, 0, 1);
  for (const Tensor& y : {zeros_like(x), rand_like(x), randn_like(x)}) {
    EXPECT_EQ(y.sizes(), x.sizes());
    EXPECT_EQ(y.strides(), x.strides());
    EXPECT_EQ(y.dtype(), DType::f16);
  }
  EXPECT_EQ(values(full_like(x[0], 2.5)), std::vector<double>(4, 2.5));
  EXPECT_EQ(ones_like(x, DType::i64).dtype(), DType::i64);
  EXPECT_EQ(values(ones_like(x[0], DType::i64)), std::vector<double>(4, 1));
  EXPECT_TRUE(zeros_like(expand(ones({1, 3}), {5, 3})).is_contiguous());
  manual_seed(4);
  const Tensor drawn = randn({3, 4}, DType::f16);
  manual_seed(4);
  EXPECT_EQ(values(randn_like(x)), values(drawn)) << "element i in row-major order takes number i";
  EXPECT_HAS(error_of([] { zeros_like(Tensor()); }), "full_like: got an undefined tensor");
  EXPECT_HAS(error_of([] { rand_like(ones({2}, DType::i64)); }), "expected a floating dtype");
}

TEST(Eye, HasOnesOnTheDiagonal) {
  EXPECT_EQ(values(eye(2, 3)), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(values(eye(3, 2, DType::i64)), (std::vector<double>{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(eye(4).sizes(), (Dims{4, 4}));
  EXPECT_EQ(sum(eye(5, DType::f64)).item(), 5);
  EXPECT_EQ(eye(0).numel(), 0);
  EXPECT_HAS(error_of([] { eye(-1); }), "eye: got -1 rows");
}

TEST(Arange, CountsByStepsInBothDirections) {
  EXPECT_EQ(values(arange(2, 8)), (std::vector<double>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(arange(2, 8).dtype(), DType::i64);
  EXPECT_EQ(values(arange(0, 7, 3)), (std::vector<double>{0, 3, 6}));
  EXPECT_EQ(values(arange(0, 6, 3)), (std::vector<double>{0, 3}));
  EXPECT_EQ(values(arange(5, 0, -2)), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(arange(5, 0).numel(), 0);
  EXPECT_EQ(arange(3, 3).numel(), 0);
  EXPECT_EQ(arange(0, 3, 1, DType::f16).dtype(), DType::f16);
  const Tensor real = arange(0, 1, 0.25);
  EXPECT_EQ(real.dtype(), DType::f32);
  EXPECT_EQ(values(real), (std::vector<double>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(values(arange(1.0, 0.0, -0.5, DType::f64)), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(arange(INT64_MAX - 2, INT64_MAX).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MAX - 2, INT64_MAX - 1}));
  EXPECT_EQ(arange(INT64_MIN, INT64_MAX, INT64_MAX).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(values(arange(3)), (std::vector<double>{0, 1, 2}));
  EXPECT_HAS(error_of([] { arange(0, 3, 0); }), "arange: got step 0");
  EXPECT_HAS(error_of([] { arange(0, INFINITY, 1.0); }), "expected finite numbers");
  EXPECT_HAS(error_of([] { arange(-1); }), "expected a count of at least 0");
}

TEST(Linspace, HasBothEnds) {
  EXPECT_EQ(values(linspace(0, 1, 5)), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(values(linspace(3, -3, 3)), (std::vector<double>{3, 0, -3}));
  EXPECT_EQ(values(linspace(2, 5, 1)), std::vector<double>{2});
  EXPECT_EQ(linspace(2, 5, 0).numel(), 0);
  const Tensor x = linspace(-0.1, 0.1, 100, DType::f64);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(x.at(i), -x.at(99 - i));
    EXPECT_NEAR(x.at(i), -0.1 + 0.2 * static_cast<double>(i) / 99, 1e-16);
  }
  EXPECT_EQ(values(logspace(-1, 2, 4, {.dtype = DType::f64})),
            (std::vector<double>{0.1, 1, 10, 100}));
  EXPECT_EQ(values(logspace(0, 3, 4, {.base = 2})), (std::vector<double>{1, 2, 4, 8}));
  EXPECT_HAS(error_of([] { linspace(0, 1, -1); }), "linspace: got count -1");
  EXPECT_HAS(error_of([] { logspace(0, 1, 2, {.base = -2}); }),
             "expected 0 or more and a positive");
}

TEST(Randint, IsUniformAndRepeats) {
  manual_seed(5);
  const Tensor x = randint(-2, 3, {5000});
  EXPECT_EQ(x.dtype(), DType::i64);
  std::vector<int> counts(5);
  for (int64_t value : x.to_vector<int64_t>()) {
    ASSERT_TRUE(value >= -2 && value < 3);
    ++counts[static_cast<size_t>(value + 2)];
  }
  for (int count : counts) {
    EXPECT_NEAR(count, 1000, 4 * std::sqrt(1000 * 0.8));
  }
  EXPECT_EQ(generator().offset, 10000u);
  manual_seed(5);
  EXPECT_EQ(randint(-2, 3, {5000}, DType::i32).to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(randint(1, {4}, DType::u8).to_vector<int64_t>(), std::vector<int64_t>(4, 0));
  EXPECT_NE(randint(INT64_MIN, INT64_MAX, {1}).to_vector<int64_t>(),
            randint(INT64_MIN, INT64_MAX, {1}).to_vector<int64_t>());
  EXPECT_HAS(error_of([] { randint(3, 3, {2}); }), "randint: got low 3 and high 3");
  EXPECT_HAS(error_of([] { randint(0, 257, {2}, DType::u8); }),
             "randint: got 0 to 256 for dtype u8, expected 0 to 255");
}

TEST(Randperm, IsAPermutation) {
  manual_seed(6);
  std::vector<int64_t> first;
  for (int64_t n : {0, 1, 2, 1000}) {
    const std::vector<int64_t> p = randperm(n).to_vector<int64_t>();
    const std::set<int64_t> distinct(p.begin(), p.end());
    ASSERT_EQ(static_cast<int64_t>(distinct.size()), n);
    EXPECT_TRUE(n == 0 || (*distinct.begin() == 0 && *distinct.rbegin() == n - 1));
  }
  std::vector<int> heads(6);  // all 6 orders of 3 elements are equally likely
  for (int i = 0; i < 1200; ++i) {
    const std::vector<int64_t> p = randperm(3).to_vector<int64_t>();
    ++heads[static_cast<size_t>(2 * p[0] + (p[1] > p[2]))];
  }
  for (int count : heads) {
    EXPECT_NEAR(count, 200, 4 * std::sqrt(200));
  }
  EXPECT_HAS(error_of([] { randperm(-1); }), "randperm: got -1");
}

TEST(Multinomial, FollowsTheWeights) {
  manual_seed(8);
  const Tensor p = Tensor::from({{0.0f, 1.0f, 3.0f}, {2.0f, 0.0f, 2.0f}});
  const Tensor y = multinomial(p, 4000, true);
  EXPECT_EQ(y.sizes(), (Dims{2, 4000}));
  const auto share = [&](int row, int k) {
    return sum(eq(y[row], k).to(DType::f64)).item() / 4000;
  };
  EXPECT_EQ(share(0, 0), 0);
  EXPECT_NEAR(share(0, 1), 0.25, 0.03);
  EXPECT_EQ(share(1, 1), 0);
  EXPECT_NEAR(share(1, 2), 0.5, 0.03);
  int first = 0;  // the first draw is distributed by weight
  for (int i = 0; i < 1000; ++i) {
    const std::vector<int64_t> drawn = multinomial(p[0], 2).to_vector<int64_t>();
    ASSERT_EQ(drawn[0] + drawn[1], 3);
    first += drawn[0] == 2;
  }
  EXPECT_NEAR(first, 750, 60);
  Tensor weights = ones({3});
  weights.require_grad();
  EXPECT_FALSE(multinomial(weights, 1).requires_grad());
  EXPECT_FALSE(bernoulli(weights).requires_grad());
  const PrecisionScope scope(Precision::half(DType::f16));
  EXPECT_EQ(multinomial(full({3}, 1e-7), 3).numel(), 3) << "the steps do not round to f16";
}

}  // namespace
}  // namespace binade::create_test
