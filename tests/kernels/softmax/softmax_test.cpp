// Softmax and log-softmax against naive f64 references.
#include <binade/kernels/softmax/softmax.h>
#include <tests/kernels/support/array_values.h>

#include <limits>

namespace binade::kernels::softmax_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Calls f(start, step, count) for every line of a row-major tensor along dim.
void for_lines(const Dims& sizes, int dim, const std::function<void(size_t, size_t, size_t)>& f) {
  size_t outer = 1, inner = 1, count = 1;
  for (int i = 0; i < sizes.size(); ++i) {
    (i < dim ? outer : i > dim ? inner : count) *= static_cast<size_t>(sizes[i]);
  }
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inner; ++i) {
      f(o * count * inner + i, inner, count);
    }
  }
}

Values forward(const Values& x, const Dims& sizes, int dim, bool log) {
  Values y(x.size());
  for_lines(sizes, dim, [&](size_t start, size_t step, size_t count) {
    double largest = -kInf;
    long double sum = 0;  // in double, thousands of terms lose more than the kernels do
    for (size_t i = 0; i < count; ++i) {
      largest = std::max(largest, x[start + i * step]);
    }
    for (size_t i = 0; i < count; ++i) {
      sum += std::exp(x[start + i * step] - largest);
    }
    for (size_t i = 0; i < count; ++i) {
      const double d = x[start + i * step] - largest;
      y[start + i * step] = static_cast<double>(log ? d - std::log(sum) : std::exp(d) / sum);
    }
  });
  return y;
}

Values backward(const Values& y, const Values& dy, const Dims& sizes, int dim, bool log) {
  Values dx(y.size());
  for_lines(sizes, dim, [&](size_t start, size_t step, size_t count) {
    double sum = 0;
    for (size_t i = start; i < start + count * step; i += step) {
      sum += log ? dy[i] : dy[i] * y[i];
    }
    for (size_t i = start; i < start + count * step; i += step) {
      dx[i] = log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
    }
  });
  return dx;
}

void check_case(DType dtype, const Dims& sizes, int dim, bool log, const ArrayLayout& layout) {
  const size_t count = static_cast<size_t>(element_count(sizes));
  const std::string what = std::string(log ? "log_softmax " : "softmax ") + to_string(sizes) +
                           " dim " + std::to_string(dim) + " " + layout.name;
  StridedArray x =
      make_array(dtype, sizes, random_values(count, 1, 0, 3), layout.order, layout.gap);
  StridedArray y(dtype, sizes, layout.order, layout.gap);
  softmax_forward({.x = x.view(), .y = y.view(), .dim = dim, .log = log});
  expect_close(y, dtype, forward(values_of(x), sizes, dim, log),
               4 + std::sqrt(static_cast<double>(sizes[dim])) / 8, what);

  StridedArray dy = make_array(dtype, sizes, random_values(count, 2));
  StridedArray dx(dtype, sizes, layout.order, layout.gap);
  softmax_backward({.y = y.view(), .dy = dy.view(), .dx = dx.view(), .dim = dim, .log = log});
  expect_close(dx, dtype, backward(values_of(y), values_of(dy), sizes, dim, log), 64,
               what + " backward");
}

TEST(Softmax, MatchesReferenceForAllDimsLayoutsAndDTypes) {
  for (DType dtype : floating_dtypes()) {
    for (bool log : {false, true}) {
      for (const ArrayLayout& layout : image_layouts()) {
        for (int dim = 0; dim < 4; ++dim) {
          check_case(dtype, {3, 5, 4, 7}, dim, log, layout);
        }
      }
    }
  }
}

TEST(Softmax, MatchesReferenceForAllLengthsOfRows) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t cols : {1, 2, 15, 16, 17, 33, 1003}) {
      for (bool log : {false, true}) {
        check_case(dtype, {3, cols}, 1, log, {"row-major", {}, 0});
        check_case(dtype, {3, cols}, 1, log, {"with a gap", {}, 5});
        check_case(dtype, {cols, 3}, 0, log, {"row-major", {}, 0});
      }
    }
  }
}

// Covers sizes where a device changes from part of a warp to whole warps to blocks, and from one
// read to two.
TEST(Softmax, MatchesReferenceAroundTeamSizes) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t cols : {8, 9, 31, 255, 256, 257, 1025, 2048, 8192, 8193}) {
      for (bool log : {false, true}) {
        check_case(dtype, {2, cols}, 1, log, {"row-major", {}, 0});
      }
    }
    check_case(dtype, {70, 24}, 1, false, {"row-major", {}, 0});
    check_case(dtype, {257, 3}, 1, true, {"row-major", {}, 0});
    check_case(dtype, {9, 70, 33}, 1, false, {"row-major", {}, 0});
  }
}

TEST(Softmax, MemoryMayBeginAnywhere) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t cols : {16, 8200}) {
      const size_t count = static_cast<size_t>(2 * cols);
      StridedArray x = make_array(dtype, {2 * cols + 1}, random_values(count + 1, 5));
      StridedArray y = make_array(dtype, {2 * cols + 1}, Values(count + 1));
      const auto shifted = [&](StridedArray& array) {
        View view = array.view();
        return test_view(view.data + size_of(dtype), dtype, {2, cols});
      };
      softmax_forward({.x = shifted(x), .y = shifted(y), .dim = 1});
      Values expected = values_of(x);
      expected.erase(expected.begin());
      expected = forward(expected, {2, cols}, 1, false);
      expected.insert(expected.begin(), 0);
      expect_close(y, dtype, expected, 16, "shifted");
    }
  }
}

TEST(Softmax, ScalarAndEmptyTensors) {
  StridedArray x = make_array(DType::f32, {}, {3.5}), y(DType::f32, {});
  softmax_forward({.x = x.view(), .y = y.view(), .dim = 0});
  EXPECT_EQ(values_of(y), Values{1});
  for (const Dims& sizes : {Dims{0, 5}, Dims{5, 0}}) {
    StridedArray none(DType::f16, sizes), out(DType::f16, sizes);
    for (int dim : {0, 1}) {
      softmax_forward({.x = none.view(), .y = out.view(), .dim = dim});
      softmax_backward({.y = none.view(), .dy = none.view(), .dx = out.view(), .dim = dim});
    }
  }
}

TEST(Softmax, ExtremeInputs) {
  const double nan = std::nan("");
  for (DType dtype : {DType::f32, DType::f64}) {
    const Values rows = {1e4,   1e4 - 1, -1e4,  0,     -kInf, 0,   1, -kInf,
                         -kInf, -kInf,   -kInf, -kInf, 1,     nan, 2, 3};
    StridedArray x = make_array(dtype, {4, 4}, rows), y(dtype, {4, 4});
    for (bool log : {false, true}) {
      softmax_forward({.x = x.view(), .y = y.view(), .dim = 1, .log = log});
      Values expected = forward(rows, {4, 4}, 1, log);
      for (size_t i = 8; i < 16; ++i) {
        expected[i] = nan;
      }
      expect_close(y, dtype, expected, 8, "extreme");
    }
  }
}

// Compares subnormal results and every magnitude of the exponential with std::exp.
TEST(Softmax, ExponentialIsAccurateOverItsWholeRange) {
  for (DType dtype : {DType::f32, DType::f64}) {
    const double lowest = dtype == DType::f32 ? -110 : -750;
    const double smallest = dtype == DType::f32 ? 0x1p-149 : 0x1p-1074;
    const int64_t rows = test_device().is_cpu() ? 20011 : 5003;
    Values x;
    for (int64_t i = 0; i < rows; ++i) {
      x.push_back(0);
      x.push_back(lowest * (static_cast<double>(i) + 0.5) / static_cast<double>(rows));
    }
    StridedArray in = make_array(dtype, {rows, 2}, x), out(dtype, {rows, 2});
    softmax_forward({.x = in.view(), .y = out.view(), .dim = 1});
    const Values rounded = values_of(in), got = values_of(out);
    for (size_t i = 1; i < got.size(); i += 2) {
      const double e = std::exp(rounded[i]), expected = e / (1 + e);
      ASSERT_NEAR(got[i], expected, 3 * epsilon(dtype) * expected + smallest) << rounded[i];
    }
  }
}

TEST(Softmax, OutputMayBeTheInput) {
  for (DType dtype : floating_dtypes()) {
    StridedArray x = make_array(dtype, {5, 37}, random_values(185, 3));
    StridedArray y(dtype, {5, 37});
    for (bool log : {false, true}) {
      softmax_forward({.x = x.view(), .y = y.view(), .dim = 1, .log = log});
      StridedArray same = x;
      softmax_forward({.x = same.view(), .y = same.view(), .dim = 1, .log = log});
      EXPECT_EQ(same.bytes(), y.bytes());
    }
  }
}

TEST(Softmax, SameBitsForAnyThreadCount) {
  for (int dim : {0, 1}) {
    expect_thread_invariant([dim] {
      StridedArray x = make_array(DType::f32, {301, 203}, random_values(301 * 203, 4));
      StridedArray y(DType::f32, {301, 203}), dx(DType::f32, {301, 203});
      softmax_forward({.x = x.view(), .y = y.view(), .dim = dim});
      softmax_backward({.y = y.view(), .dy = x.view(), .dx = dx.view(), .dim = dim});
      std::vector<std::byte> all;
      append(all, y);
      append(all, dx);
      return all;
    });
  }
}

TEST(Softmax, ErrorsNameTheProblem) {
  StridedArray x(DType::f32, {2, 3}), y(DType::f32, {2, 4}), h(DType::f16, {2, 3});
  const auto run = [](StridedArray& in, StridedArray& out, int dim) {
    return error_of([&] { softmax_forward({.x = in.view(), .y = out.view(), .dim = dim}); });
  };
  EXPECT_EQ(run(x, x, 2), "softmax: got dimension 2, expected 0 to 1 for a tensor of shape [2, 3]");
  EXPECT_EQ(run(x, y, 1), "softmax: got y f32 [2, 4], expected f32 [2, 3]");
  EXPECT_EQ(run(x, h, 1), "softmax: got y f16 [2, 3], expected f32 [2, 3]");
  TestValues<int64_t> integers(6);
  const View integer = integers.view(DType::i64, {2, 3});
  EXPECT_EQ(error_of([&] { softmax_forward({.x = integer, .y = integer, .dim = 0}); }),
            "softmax: got i64, expected a floating dtype");
}

TEST(Softmax, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::softmax_test
