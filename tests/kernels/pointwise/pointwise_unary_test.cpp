// Tests unary and binary operations, casts and comparisons on all 65,536 values of f16 and of bf16.
// Results that are one rounding of the exact value must equal it bit for bit; the others must be
// within one unit in the last place of the result in double. Infinities and NaN are PyTorch's.
//
// On the emulated device every 61st value is tried, unless BINADE_ALL_HALVES is set.
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <gtest/gtest.h>
#include <tests/kernels/pointwise/binary_cases.h>
#include <tests/kernels/pointwise/unary_cases.h>
#include <tests/kernels/support/layouts.h>
#include <tests/kernels/support/test_device.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace binade::kernels::pointwise_unary_test {
namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};
constexpr int64_t kValues = 65536;

int64_t step() {
  static const bool all = every_combination() || std::getenv("BINADE_ALL_HALVES") != nullptr;
  return all ? 1 : 61;
}
int64_t count() { return (kValues + step() - 1) / step(); }

double value_of(DType dtype, uint16_t bits) {
  return dtype == DType::f16 ? static_cast<double>(std::bit_cast<half>(bits))
                             : static_cast<double>(std::bit_cast<bfloat16>(bits));
}
double rounded(DType dtype, double x) {
  return dtype == DType::f16 ? static_cast<double>(half(x)) : static_cast<double>(bfloat16(x));
}

// Value i has the bits i * step * factor + shift; an odd factor reaches all values.
Array halves(DType dtype, uint32_t factor = 1, uint32_t shift = 0) {
  Array x(dtype, {count()});
  for (int64_t i = 0; i < count(); ++i) {
    const auto index = static_cast<uint32_t>(i * step());
    x.set(i, value_of(dtype, static_cast<uint16_t>(index * factor + shift)));
  }
  return x;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// The distance between neighbours of the dtype near x.
double ulp(DType dtype, double x) {
  const double least = dtype == DType::f16 ? 0x1p-24 : 0x1p-133;
  return x == 0 ? least : std::fmax(least, std::ldexp(epsilon(dtype), std::ilogb(x)));
}

bool within_one_ulp(DType dtype, double got, double exact) {
  const double nearest = rounded(dtype, exact);
  if (same(got, nearest)) {
    return true;
  }
  if (std::isinf(got) || std::isinf(nearest)) {  // infinity may stand for the largest finite value
    const double largest = dtype == DType::f16 ? 65504 : 0x1.fep127;
    return std::fabs(std::isinf(got) ? nearest : got) == largest && got * nearest > 0;
  }
  return std::fabs(got - exact) <= ulp(dtype, exact);
}

// Counts and prints wrong results.
class Judge {
 public:
  Judge(const char* op, DType dtype, bool exact) : op_(op), dtype_(dtype), exact_(exact) {}
  void expect(double got, double exact, double a, double b = 0) {
    const bool right =
        exact_ ? same(got, rounded(dtype_, exact)) : within_one_ulp(dtype_, got, exact);
    if (!right && ++wrong_ <= 3) {
      ADD_FAILURE() << op_ << " " << to_string(dtype_) << " of " << a << ", " << b << " is " << got
                    << ", exactly " << exact;
    }
  }
  ~Judge() { EXPECT_EQ(wrong_, 0) << op_ << " " << to_string(dtype_); }

 private:
  const char* op_;
  DType dtype_;
  bool exact_;
  int64_t wrong_ = 0;
};

void check_case(const UnaryCase& c, double alpha, DType dtype) {
  Array x = halves(dtype), y(dtype, {count()});
  unary_forward({c.op, x.view(), y.view(), alpha, c.beta});
  Judge judge(to_string(c.op), dtype, c.exact);
  for (int64_t i = 0; i < x.numel(); ++i) {
    judge.expect(y[i], c.formula(x[i], alpha, c.beta), x[i]);
  }
}

TEST(AllHalves, UnaryAreExactOrWithinOneUlp) {
  for (const UnaryCase& c : unary_cases()) {
    for (DType dtype : kHalves) {
      check_case(c, c.alpha, dtype);
      if (has_option(c.op)) {
        check_case(c, kOtherOption, dtype);
      }
    }
  }
}

// Pairs each value with itself, its negative, its neighbours and four other values.
constexpr uint32_t kPartners[][2] = {{1, 0},     {1, 32768},     {1, 1},        {1, 65535},
                                     {40503, 7}, {26545, 12345}, {9949, 31337}, {65521, 54321}};

TEST(AllHalves, BinaryAreExactOrWithinOneUlp) {
  for (DType dtype : kHalves) {
    for (const auto& [factor, shift] : kPartners) {
      Array a = halves(dtype), b = halves(dtype, factor, shift), y(dtype, {count()});
      for (const BinaryCase& c : binary_cases()) {
        binary_forward({c.op, a.view(), b.view(), y.view()});
        Judge judge(to_string(c.op), dtype, c.exact);
        for (int64_t i = 0; i < count(); ++i) {
          judge.expect(y[i], c.f(a[i], b[i]), a[i], b[i]);
        }
      }
    }
  }
}

TEST(AllHalves, ComparisonsAreExact) {
  const std::function<bool(double, double)> comparison[] = {
      std::equal_to<>(),   std::not_equal_to<>(), std::less<>(),
      std::less_equal<>(), std::greater<>(),      std::greater_equal<>()};
  for (DType dtype : kHalves) {
    for (const auto& [factor, shift] : kPartners) {
      Array a = halves(dtype), b = halves(dtype, factor, shift), truth(DType::boolean, {count()});
      for (int op = 0; op < kCompareCount; ++op) {
        compare_forward({Compare(op), a.view(), b.view(), truth.view()});
        for (int64_t i = 0; i < count(); ++i) {
          ASSERT_EQ(truth[i] != 0, comparison[op](a[i], b[i])) << kCompareName[op];
        }
      }
    }
  }
}

TEST(AllHalves, CastsAreExact) {
  for (DType from : kHalves) {
    Array x = halves(from);
    for (DType to : floating_dtypes()) {
      Array y(to, {count()}), back(from, {count()});
      copy({.x = x.view(), .y = y.view()});
      copy({.x = y.view(), .y = back.view()});
      for (int64_t i = 0; i < count(); ++i) {
        const double expected = is_half(to) ? rounded(to, x[i]) : x[i];
        ASSERT_TRUE(same(y[i], expected)) << to_string(from) << " to " << to_string(to) << x[i];
        ASSERT_TRUE(same(back[i], rounded(from, expected))) << to_string(to) << expected;
        ASSERT_TRUE(std::isnan(expected) || std::signbit(y[i]) == std::signbit(expected));
      }
    }
  }
}

}  // namespace
}  // namespace binade::kernels::pointwise_unary_test
