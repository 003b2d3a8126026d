// Hops of a reduction between ranks, against one operation per element.
#include <binade/kernels/combine.h>
#include <tests/kernels/array_values.h>

namespace binade::kernels {
namespace {

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
  for (const DType dtype : kFloatingDTypes) {
    for (const DType wire : {dtype, DType::f32}) {
      if (wire != dtype && !is_half(dtype)) {
        continue;
      }
      for (const CombineOp op : {CombineOp::sum, CombineOp::max, CombineOp::min}) {
        for (const int64_t count : {0, 1, 31, 1025, 5003}) {
          for (const double after : {1.0, 2.0}) {
            const Values mine = small_integers(count, 3), other = small_integers(count, 14);
            StridedArray x = make_array(dtype, {count}, mine);
            StridedArray received = make_array(wire, {count}, other);
            StridedArray y = make_array(wire, {count}, Values(mine.size(), 99));
            cpu::combine({.op = op,
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

template <class T>
void expect_integers() {
  std::vector<T> x(2049), received(2049), y(2049);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(i * 7 % 23) - 11;
    received[i] = static_cast<T>(i * 5 % 19) - 9;
  }
  const auto view = [](std::vector<T>& values) {
    return view_of(values.data(), dtype_of<T>, {static_cast<int64_t>(values.size())});
  };
  for (const CombineOp op : {CombineOp::sum, CombineOp::max, CombineOp::min}) {
    for (const int after : {1, 3}) {
      cpu::combine({.op = op,
                    .received = view(received),
                    .x = view(x),
                    .y = view(y),
                    .after = static_cast<double>(after)});
      for (size_t i = 0; i < x.size(); ++i) {
        const T both = op == CombineOp::sum   ? x[i] + received[i]
                       : op == CombineOp::max ? std::max(x[i], received[i])
                                              : std::min(x[i], received[i]);
        ASSERT_EQ(y[i], both / after) << i;
      }
    }
  }
}

TEST(Combine, IsExactForIntegers) {
  expect_integers<int64_t>();
  expect_integers<int32_t>();
}

TEST(Combine, DividesOwnValuesBefore) {
  for (const DType dtype : kFloatingDTypes) {
    StridedArray x = make_array(dtype, {3}, {8, -4, 2}),
                 received = make_array(dtype, {3}, {1, 1, 1});
    StridedArray y = make_array(dtype, {3}, {0, 0, 0});
    cpu::combine({.op = CombineOp::sum,
                  .received = received.view(),
                  .x = x.view(),
                  .y = y.view(),
                  .before = 4});
    EXPECT_EQ(values_of(y), (Values{3, 0, 1.5}));
    cpu::combine(
        {.op = CombineOp::sum, .received = kNoView, .x = x.view(), .y = y.view(), .before = 4});
    EXPECT_EQ(values_of(y), (Values{2, -1, 0.5}));
  }
}

TEST(Combine, NamesWhatDoesNotFit) {
  StridedArray x = make_array(DType::f32, {3}, {1, 2, 3}), y = make_array(DType::f32, {2}, {1, 2});
  StridedArray wide = make_array(DType::f64, {3}, {1, 2, 3});
  const auto error = [&](const View& received, const View& own, const View& out) {
    try {
      cpu::combine({.op = CombineOp::sum, .received = received, .x = own, .y = out});
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
}  // namespace binade::kernels
