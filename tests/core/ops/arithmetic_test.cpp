// Tests arithmetic of integers and bools, exact in 64 bits; type promotion; host comparisons.
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <tests/support/error_of.h>

namespace binade::arithmetic_test {
namespace {

constexpr int64_t kBig = int64_t{1} << 60;
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr double kInf = std::numeric_limits<double>::infinity();

Device device() { return kernels::test_device(); }

Tensor integers(const std::vector<int64_t>& values) {
  Tensor x = empty({static_cast<int64_t>(values.size())}, DType::i64);
  for (size_t i = 0; i < values.size(); ++i) {
    x.data<int64_t>()[i] = values[i];
  }
  return x.to(device());
}

Tensor reals(const std::vector<double>& values, DType dtype = DType::f32) {
  Tensor x = empty({static_cast<int64_t>(values.size())}, DType::f64);
  for (size_t i = 0; i < values.size(); ++i) {
    x.data<double>()[i] = values[i];
  }
  return x.to(dtype).to(device());
}

std::vector<int64_t> int64s(const Tensor& x) {
  EXPECT_EQ(x.dtype(), DType::i64);
  const Tensor host = contiguous(x.to(Device{}));
  const int64_t* data = host.data<int64_t>();
  return {data, data + host.numel()};
}

std::vector<double> doubles(const Tensor& x) {
  std::vector<double> values;
  for (int64_t i = 0; i < x.numel(); ++i) {
    values.push_back(x.at(i));
  }
  return values;
}

Tensor leaf(Tensor x) { return x.require_grad(); }

using BinaryOp = Tensor (*)(const Tensor&, const Tensor&);
using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

TEST(IntegerArithmetic, IsExactBeyondTheIntegersOfDouble) {
  const Tensor x = integers({kBig + 1, -kBig - 3, 5});
  EXPECT_EQ(int64s(x + 1), (Ints{kBig + 2, -kBig - 2, 6}));
  EXPECT_EQ(int64s(x - 1), (Ints{kBig, -kBig - 4, 4}));
  EXPECT_EQ(int64s(1 - x), (Ints{-kBig, kBig + 4, -4}));
  EXPECT_EQ(int64s(x * 2), (Ints{2 * kBig + 2, -2 * kBig - 6, 10}));
  EXPECT_EQ(int64s(-x), (Ints{-kBig - 1, kBig + 3, -5}));
  EXPECT_EQ(int64s(abs(x)), (Ints{kBig + 1, kBig + 3, 5}));
  EXPECT_EQ(int64s(sign(x)), (Ints{1, -1, 1}));
  EXPECT_EQ(int64s(square(integers({(int64_t{1} << 31) + 1, -3}))),
            (Ints{(int64_t{1} << 62) + (int64_t{1} << 32) + 1, 9}));
  EXPECT_EQ(int64s(clamp(x, -1, {})), (Ints{kBig + 1, -1, 5}));
  EXPECT_EQ(int64s(clamp(x, {}, 7)), (Ints{7, -kBig - 3, 5}));
  EXPECT_EQ(int64s(clamp(x, integers({6}), integers({kBig}))), (Ints{kBig, 6, 6}));
  EXPECT_EQ(int64s(clamp(x, Tensor(), integers({kBig}))), (Ints{kBig, -kBig - 3, 5}));
  EXPECT_EQ(int64s(floor_divide(x, 2)), (Ints{kBig / 2, -kBig / 2 - 2, 2}));
  EXPECT_EQ(int64s(x % 2), (Ints{1, 1, 1}));
  EXPECT_EQ(int64s(fmod(x, 2)), (Ints{1, -1, 1}));
  EXPECT_EQ(int64s(sum(x)), (Ints{3}));
}

TEST(IntegerArithmetic, WrapsAroundAndDividesByZeroAndMinusOne) {
  const Tensor lowest = integers({kLowest});
  EXPECT_EQ(int64s(lowest - 1), (Ints{kLargest}));
  EXPECT_EQ(int64s(-lowest), (Ints{kLowest}));
  EXPECT_EQ(int64s(abs(lowest)), (Ints{kLowest}));
  EXPECT_EQ(int64s(floor_divide(lowest, -1)), (Ints{kLowest}));
  EXPECT_EQ(int64s(remainder(lowest, -1)), (Ints{0}));
  EXPECT_EQ(int64s(fmod(lowest, -1)), (Ints{0}));
  const Tensor least32 = full({1}, -0x1p31, DType::i32, device());
  EXPECT_EQ(floor_divide(least32, -1).item(), -0x1p31);
  EXPECT_EQ(remainder(least32, -1).item(), 0);
  const Tensor x = integers({7, -7, 0}), none = integers({0});
  for (BinaryOp op : std::initializer_list<BinaryOp>{floor_divide, remainder, fmod}) {
    EXPECT_EQ(int64s(op(x, none)), (Ints{0, 0, 0}));
  }
  EXPECT_EQ(error_of([&] { (void)(x % 0); }),
            "remainder: got the divisor 0 for a tensor of dtype i64, expected another number; "
            "floating dtypes divide by 0");
}

// As in Python, the quotient rounds down and the remainder has the sign of the divisor.
TEST(IntegerArithmetic, DivisionsRoundDownInEveryDtype) {
  for (DType dtype : {DType::i64, DType::i32, DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor a = reals({7, -7, 7, -7, 6, -6, 0}, dtype);
    const Tensor b = reals({2, 2, -2, -2, -3, -3, 5}, dtype);
    EXPECT_EQ(doubles(floor_divide(a, b)), (Reals{3, -4, -4, 3, -2, 2, 0})) << to_string(dtype);
    EXPECT_EQ(doubles(a % b), (Reals{1, 1, -1, -1, 0, 0, 0})) << to_string(dtype);
    EXPECT_EQ(doubles(fmod(a, b)), (Reals{1, -1, 1, -1, 0, 0, 0})) << to_string(dtype);
  }
  const Tensor pixel = reals({200, 7, 255}, DType::u8);
  EXPECT_EQ(doubles(pixel + 100), (Reals{44, 107, 99}));
  EXPECT_EQ(doubles(pixel - 10), (Reals{190, 253, 245}));
  EXPECT_EQ(doubles(floor_divide(pixel, 3)), (Reals{66, 2, 85}));
  EXPECT_EQ(doubles(pixel % 255), (Reals{200, 7, 0}));
  EXPECT_EQ(doubles(abs(pixel)), (Reals{200, 7, 255}));
  EXPECT_TRUE(std::isnan(remainder(reals({1}), 0).item()));
  EXPECT_EQ(floor_divide(reals({1}), 0).item(), kInf);
}

TEST(Promotion, OfTwoTensors) {
  constexpr DType kNone = DType::boolean;
  const DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16,
                          DType::i64, DType::i32, DType::u8,  DType::boolean};
  for (DType p : dtypes) {
    for (DType q : dtypes) {
      const bool both = is_floating(p) && is_floating(q);
      const DType want = both && p != q                     ? kNone
                         : is_floating(p)                   ? p
                         : is_floating(q)                   ? q
                         : size_of(p) != size_of(q)         ? (size_of(p) > size_of(q) ? p : q)
                         : p == DType::u8 || q == DType::u8 ? DType::u8
                                                            : p;
      const Tensor a = ones({2, 1}, p, device()), b = ones({3}, q, device());
      const Tensor mask = ones({3}, DType::boolean, device());
      const std::string names = std::string(to_string(p)) + " " + to_string(q);
      if (both && p != q) {
        EXPECT_EQ(error_of([&] { (void)(a * b); }),
                  text("mul: got dtypes ", p, " and ", q,
                       ", expected equal ones; convert one with to()"));
        EXPECT_NE(error_of([&] { (void)lt(a, b); }).find("lt: got dtypes"), std::string::npos);
        EXPECT_NE(error_of([&] { (void)where(mask, a, b); }).find("where"), std::string::npos);
        continue;
      }
      EXPECT_EQ(where(mask, a, b).dtype(), want) << names;
      EXPECT_EQ(doubles(le(a, b)), Reals(6, 1)) << names;
      EXPECT_EQ(div(a, b).dtype(), is_floating(want) ? want : DType::f32) << names;
      if (want != DType::boolean) {
        for (BinaryOp op : std::initializer_list<BinaryOp>{add, sub, mul, pow, maximum, minimum,
                                                           floor_divide, remainder, fmod}) {
          const Tensor y = op(a, b);
          EXPECT_EQ(y.dtype(), want) << names;
          EXPECT_EQ(y.sizes(), (Dims{2, 3}));
        }
      }
    }
  }
}

TEST(IntegerArithmetic, PowersWrapAround) {
  const Tensor x = integers({3, -3, 0, 1, -1, kBig + 1});
  EXPECT_EQ(int64s(pow(x, 3)), (Ints{27, -27, 0, 1, -1, 3 * kBig + 1}));
  EXPECT_EQ(int64s(pow(x, 0)), (Ints{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(int64s(pow(integers({2, 3}), 63)), (Ints{kLowest, -3237885987332494933}));
  EXPECT_EQ(int64s(pow(integers({2, 7, 10}), integers({62, 2, 18}))),
            (Ints{int64_t{1} << 62, 49, 1000000000000000000}));
  for (DType dtype : {DType::i32, DType::u8}) {
    const Tensor y = pow(integers({2, 3, 200}).to(dtype), integers({4, 5, 2}).to(dtype));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(doubles(y), (Reals{16, 243, dtype == DType::u8 ? 64. : 40000.}));
  }
  EXPECT_EQ(int64s(pow(integers({-1, 0}) > -1, 2)), (Ints{0, 1}));
  EXPECT_EQ(int64s(pow(integers({2, 3}).to(DType::u8), integers({9, 2}))), (Ints{512, 9}));
  EXPECT_EQ(doubles(pow(integers({4, 9}), 0.5)), (Reals{2, 3}));
  EXPECT_EQ(pow(integers({4}), -0.5).dtype(), DType::f32);
  EXPECT_EQ(doubles(pow(integers({2, 3}), reals({-1, 2}))), (Reals{0.5, 9}));
  EXPECT_EQ(pow(integers({}), integers({})).numel(), 0);
  EXPECT_EQ(error_of([] { (void)pow(integers({2}), -1); }),
            "pow: got exponent -1 for a tensor of dtype i64, expected 0 or more; convert the "
            "tensor with to(DType::f32)");
  EXPECT_EQ(error_of([] {
              (void)pow(integers({2, 2}), integers({1, -1}));
            }),
            "pow: got negative exponents for integers, expected 0 or more; convert the base with "
            "to(DType::f32)");
  EXPECT_NE(error_of([] { (void)pow(integers({2}), 1e300); }).find("pow: got the number"),
            std::string::npos);
}

TEST(Promotion, OfATensorAndANumber) {
  const Tensor ids = integers({2, 3}), mask = gt(ids, 2), pixels = ids.to(DType::u8);
  EXPECT_EQ(doubles(ids + 0.5), (Reals{2.5, 3.5}));
  EXPECT_EQ((ids + 0.5).dtype(), DType::f32);
  EXPECT_EQ(doubles(ids / 2), (Reals{1, 1.5}));
  EXPECT_EQ(doubles(ids / integers({4})), (Reals{0.5, 0.75}));
  EXPECT_EQ(doubles(6 / ids), (Reals{3, 2}));
  EXPECT_EQ((ids.to(DType::i32) * 3).dtype(), DType::i32);
  EXPECT_EQ(int64s(1 - mask), (Ints{1, 0}));
  EXPECT_EQ(int64s(mask * 3), (Ints{0, 3}));
  EXPECT_EQ(int64s(mask * ids), (Ints{0, 3}));
  EXPECT_EQ(doubles(mask * 0.5), (Reals{0, 0.5}));
  EXPECT_EQ(doubles(lt(ids, 2.5)), (Reals{1, 0}));
  EXPECT_EQ(doubles(lt(mask, 2)), (Reals{1, 1}));
  EXPECT_EQ(where(mask, mask, 0).dtype(), DType::boolean);
  EXPECT_EQ(int64s(where(mask, ids, -1)), (Ints{-1, 3}));
  EXPECT_EQ(doubles(where(mask, ids, 0.5)), (Reals{0.5, 3}));
  EXPECT_EQ(doubles(where(mask, 1, 0)), (Reals{0, 1}));
  EXPECT_EQ(doubles(clamp(ids, 2.5, {})), (Reals{2.5, 3}));
  EXPECT_EQ(error_of([&] { (void)(pixels * 300); }),
            "mul: got the number 300 for a tensor of dtype u8, expected one that the dtype holds; "
            "convert the tensor with to()");
  EXPECT_NE(error_of([&] { (void)(-mask); }).find("neg: got dtype bool"), std::string::npos);
}

TEST(Promotion, GradientsGoToFloatingOperands) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = leaf(reals({1, -2, 3}, dtype));
    const Tensor ids = integers({4, 5, 6}), mask = gt(ids, 4);
    const Tensor y = where(mask, x * ids + mask, ids) - x / 2;
    EXPECT_EQ(y.dtype(), dtype);
    sum(y * reals({1, 2, 4}, dtype)).backward();
    EXPECT_EQ(doubles(x.grad()), (Reals{-0.5, 9, 22})) << to_string(dtype);
  }
}

TEST(Promotion, ActsAfterThePrecisionPolicy) {
  const Tensor x = leaf(reals({1, 2})), ids = integers({3, 4}), mask = gt(ids, 3);
  const PrecisionScope scope(Precision::half(DType::f16));
  EXPECT_EQ((x * mask).dtype(), DType::f16);
  EXPECT_EQ(where(mask, x, ids).dtype(), DType::f16);
  EXPECT_EQ((ids + 1).dtype(), DType::i64);
  sum(x * ids).backward();
  EXPECT_EQ(doubles(x.grad()), (Reals{3, 4}));
  // 70000 is infinite in f16, but these ops do not cast.
  EXPECT_EQ(doubles(isfinite(reals({70000}))), (Reals{1}));
  EXPECT_EQ(doubles(nan_to_num(reals({70000}))), (Reals{70000}));
}

TEST(Sums, OfIntegersAndBoolsAreI64) {
  for (int64_t n : {1, 3, 33, 5000}) {
    for (DType dtype : {DType::boolean, DType::u8, DType::i32, DType::i64}) {
      const Tensor row = full({n, 3}, dtype == DType::boolean ? 1 : 200, dtype, device());
      const int64_t value = dtype == DType::boolean ? 1 : 200;
      EXPECT_EQ(int64s(sum(row)), (Ints{3 * n * value}));
      EXPECT_EQ(int64s(sum(row, {0})), Ints(3, n * value));
      EXPECT_EQ(int64s(sum(transpose(row, 0, 1), {0})), Ints(static_cast<size_t>(n), 3 * value));
      EXPECT_EQ(int64s(cumsum(row, 1)).back(), 3 * value);
      EXPECT_EQ(error_of([&] { (void)mean(row); }),
                text("mean: got dtype ", dtype, ", expected a floating dtype; convert with to()"));
    }
  }
  EXPECT_EQ(int64s(sum(full({3}, -0x1p31, DType::i32, device()))), (Ints{-3 * (int64_t{1} << 31)}));
  EXPECT_EQ(int64s(sum(zeros({0, 2}, DType::boolean, device()), {0})), (Ints{0, 0}));
}

TEST(Kinds, OfEveryDtype) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = reals({NAN, kInf, -kInf, 0, -1}, dtype);
    EXPECT_EQ(doubles(isnan(x)), (Reals{1, 0, 0, 0, 0}));
    EXPECT_EQ(doubles(isinf(x)), (Reals{0, 1, 1, 0, 0}));
    EXPECT_EQ(doubles(isfinite(x)), (Reals{0, 0, 0, 1, 1}));
    EXPECT_EQ(doubles(nan_to_num(x, 3, 5, -7)), (Reals{3, 5, -7, 0, -1}));
    const Reals defaults = doubles(nan_to_num(x));
    EXPECT_TRUE(defaults[0] == 0 && std::isfinite(defaults[1]) && defaults[2] == -defaults[1]);
    EXPECT_TRUE(std::isinf(reals({defaults[1] * 1.01}, dtype).item()) || dtype == DType::f64);
  }
  for (DType dtype : {DType::i64, DType::i32, DType::u8, DType::boolean}) {
    const Tensor x = ones({2}, dtype, device());
    EXPECT_EQ(doubles(isnan(x)), (Reals{0, 0}));
    EXPECT_EQ(doubles(isinf(x)), (Reals{0, 0}));
    EXPECT_EQ(doubles(isfinite(x)), (Reals{1, 1}));
  }
}

TEST(Kinds, TheGradientOfReplacedNumbersIsZero) {
  const Tensor x = leaf(reals({NAN, kInf, 2, -kInf}));
  sum(nan_to_num(x) * reals({1, 2, 3, 4})).backward();
  EXPECT_EQ(doubles(x.grad()), (Reals{0, 0, 3, 0}));
}

TEST(ClampByTensors, HasTheGradientOfPyTorchAtTies) {
  const Tensor x = leaf(reals({1, 2, 3, 5}));
  const Tensor low = leaf(reals({2, 2, 4, 0})), high = leaf(reals({3, 3, 2, 4}));
  const Tensor y = clamp(x, low, high);
  EXPECT_EQ(doubles(y), (Reals{2, 2, 2, 4}));
  sum(y * reals({1, 2, 4, 8})).backward();
  EXPECT_EQ(doubles(x.grad()), (Reals{0, 1, 0, 0}));
  EXPECT_EQ(doubles(low.grad()), (Reals{1, 1, 0, 0}));
  EXPECT_EQ(doubles(high.grad()), (Reals{0, 0, 4, 8}));
}

TEST(Equality, OfWholeTensors) {
  const Tensor x = integers({kBig, 2});
  EXPECT_TRUE(equal(x, x + 0));
  EXPECT_FALSE(equal(x, x + integers({1, 0})));  // they differ beyond 2^53
  EXPECT_FALSE(equal(x, integers({kBig})));
  EXPECT_TRUE(equal(integers({2}), reals({2})));
  EXPECT_FALSE(equal(reals({NAN}), reals({NAN})));
  EXPECT_TRUE(equal(zeros({0, 3}), ones({0, 3})));
  EXPECT_EQ(error_of([&] { (void)equal(x, Tensor()); }),
            "equal: got an undefined tensor, expected one with a value; assign it first");
}

TEST(Equality, WithTolerances) {
  const Tensor a = reals({1, kInf, NAN, 100}), b = reals({1.0000001, kInf, NAN, 100.0005});
  EXPECT_EQ(doubles(isclose(a, b)), (Reals{1, 1, 0, 1}));
  EXPECT_EQ(doubles(isclose(a, b, 0, 0, true)), (Reals{0, 1, 1, 0}));
  EXPECT_EQ(doubles(isclose(reals({kInf, 1}), reals({-kInf, kInf}), 1, 1)), (Reals{0, 0}));
  EXPECT_FALSE(allclose(a, b));
  EXPECT_TRUE(allclose(a, b, 1e-5, 1e-8, true));
  EXPECT_TRUE(allclose(integers({100}), integers({101}), 0.01));
  EXPECT_TRUE(allclose(reals({0.1}, DType::f16), reals({0.1001}, DType::f16), 1e-2));
  EXPECT_NE(error_of([&] {
              (void)allclose(a, reals({1, 2, 3}));
            }).find("isclose"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { (void)isclose(a, b, -1); }),
            "isclose: got rtol = -1 and atol = 1e-08, expected 0 or more");
}

}  // namespace
}  // namespace binade::arithmetic_test
