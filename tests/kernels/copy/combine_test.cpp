// Compares one step of a reduction between ranks with one operation per element.
#include <binade/kernels/copy/combine.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/layouts.h>

#include <cmath>

namespace binade::kernels::combine_test {
namespace {

using Values = std::vector<double>;

Array make_array(DType dtype, const Dims& sizes, const Values& values) {
  Array array(dtype, sizes);
  for (int64_t i = 0; i < array.numel(); ++i) {
    array.set(i, values[static_cast<size_t>(i)]);
  }
  return array;
}

Values values_of(const Array& array) {
  Values values;
  for (int64_t i = 0; i < array.numel(); ++i) {
    values.push_back(array[i]);
  }
  return values;
}

Values small_integers(int64_t count, int seed) {
  Values values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = static_cast<double>((i * 7 + seed) % 23 - 11) * 2;
  }
  return values;
}

double combined(CombineOp op, double a, double b) {
  return op == CombineOp::sum ? a + b : op == CombineOp::max ? std::max(a, b) : std::min(a, b);
}

TEST(Combine, IsExactForSmallIntegers) {
  for (const DType dtype : floating_dtypes()) {
    for (const DType wire : {dtype, DType::f32}) {
      if (wire != dtype && !is_half(dtype)) {
        continue;
      }
      for (const CombineOp op : {CombineOp::sum, CombineOp::max, CombineOp::min}) {
        for (const int64_t count : every_combination() ? std::vector<int64_t>{0, 1, 31, 1025, 5003}
                                                       : std::vector<int64_t>{0, 1, 31, 1025}) {
          for (const double after : {1.0, 2.0}) {
            const Values mine = small_integers(count, 3), other = small_integers(count, 14);
            Array x = make_array(dtype, {count}, mine);
            Array received = make_array(wire, {count}, other);
            Array y = make_array(wire, {count}, Values(mine.size(), 99));
            combine({.op = op,
                     .received = received.view(),
                     .x = x.view(),
                     .y = y.view(),
                     .after = after});
            Values expected = mine;
            for (size_t i = 0; i < expected.size(); ++i) {
              expected[i] = combined(op, mine[i], other[i]) / after;
            }
            EXPECT_EQ(values_of(y), expected) << to_string(dtype) << " " << count;
          }
        }
      }
    }
  }
}

TEST(Combine, IsExactForIntegers) {
  for (const DType dtype : {DType::i64, DType::i32}) {
    Array x(dtype, {2049}), received(dtype, {2049}), y(dtype, {2049});
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.set(i, static_cast<double>(i * 7 % 23 - 11));
      received.set(i, static_cast<double>(i * 5 % 19 - 9));
    }
    for (const CombineOp op : {CombineOp::sum, CombineOp::max, CombineOp::min}) {
      for (const int after : {1, 3}) {
        combine({.op = op,
                 .received = received.view(),
                 .x = x.view(),
                 .y = y.view(),
                 .after = static_cast<double>(after)});
        for (int64_t i = 0; i < y.numel(); ++i) {
          ASSERT_EQ(y[i], std::trunc(combined(op, received[i], x[i]) / after)) << i;
        }
      }
    }
  }
}

// Every device must round as the CPU does, bit for bit, with and without f32 carry.
TEST(Combine, HasTheBitsOfTheCpu) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const DType wire : {dtype, DType::f32}) {
      for (const bool first : {false, true}) {
        Array x(dtype, {1001}), received(wire, {1001}), y(wire, {1001});
        x.random(5);
        received.random(6);
        combine({.op = CombineOp::sum,
                 .received = first ? kNoView : received.view(),
                 .x = x.view(),
                 .y = y.view(),
                 .before = 3,
                 .after = first ? 1.0 : 7.0});
        const Values got = values_of(y), rounded = values_of(x), arrived = values_of(received);
        Values expected(got.size());
        for (size_t i = 0; i < got.size(); ++i) {
          const float own = static_cast<float>(rounded[i]) / 3;
          expected[i] = first ? own : (static_cast<float>(arrived[i]) + own) / 7;
        }
        Array narrow = make_array(wire, {1001}, expected);
        EXPECT_EQ(got, values_of(narrow)) << to_string(dtype) << " " << to_string(wire);
      }
    }
  }
}

TEST(Combine, DividesOwnValuesBefore) {
  for (const DType dtype : floating_dtypes()) {
    Array x = make_array(dtype, {3}, {8, -4, 2}), received = make_array(dtype, {3}, {1, 1, 1});
    Array y = make_array(dtype, {3}, {0, 0, 0});
    combine({.op = CombineOp::sum,
             .received = received.view(),
             .x = x.view(),
             .y = y.view(),
             .before = 4});
    EXPECT_EQ(values_of(y), (Values{3, 0, 1.5}));
    combine({.op = CombineOp::sum, .received = kNoView, .x = x.view(), .y = y.view(), .before = 4});
    EXPECT_EQ(values_of(y), (Values{2, -1, 0.5}));
  }
}

TEST(Combine, NamesWhatDoesNotFit) {
  Array x = make_array(DType::f32, {3}, {1, 2, 3}), y = make_array(DType::f32, {2}, {1, 2});
  Array wide = make_array(DType::f64, {3}, {1, 2, 3});
  const auto error = [&](const View& received, const View& own, const View& out) {
    try {
      combine({.op = CombineOp::sum, .received = received, .x = own, .y = out});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error(x.view(), x.view(), y.view()),
            "combine: got y f32 of 2 elements, expected 3 contiguous elements of f32");
  EXPECT_EQ(error(wide.view(), x.view(), x.view()),
            "combine: got received f64 of 3 elements, expected 3 contiguous elements of f32");
}

}  // namespace
}  // namespace binade::kernels::combine_test
