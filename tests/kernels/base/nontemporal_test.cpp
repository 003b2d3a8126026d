// Results of at least kNontemporalBytes bypass the caches. They must have the same bits as the same
// work in halves below the limit, at odd addresses and counts, and in place.
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/pointwise/pointwise.h>
#include <binade/kernels/softmax/softmax.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

namespace binade::kernels::nontemporal_test {
namespace {

constexpr int64_t kCols = 1024, kFloats = kNontemporalBytes / 4, kRows = kFloats / kCols;

std::vector<float> ramp(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 2654435761u % 8191) / 2048 - 2;
  }
  return x;
}

// Runs work(first, count) at once and in two parts, on memory of `bytes` per item.
void expect_same(int64_t items, int64_t bytes,
                 const std::function<void(std::byte* y, int64_t first, int64_t count)>& work) {
  ASSERT_GE(items * bytes, kNontemporalBytes);
  std::vector<std::byte> whole(static_cast<size_t>(items * bytes)), parts = whole;
  work(whole.data(), 0, items);
  const int64_t half = items / 2;
  work(parts.data(), 0, half);
  work(parts.data() + half * bytes, half, items - half);
  EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size()), 0);
  EXPECT_NE(std::memcmp(whole.data(), parts.data() + half * bytes, 4096), 0);
}

TEST(Nontemporal, PointwiseAtOddAddresses) {
  const int64_t count = kFloats + 1037;
  std::vector<float> a = ramp(count + 1), memory(static_cast<size_t>(count) + 3);
  expect_same(count, 4, [&](std::byte* y, int64_t first, int64_t n) {
    float* target = memory.data() + 3;  // 4 bytes off the cache lines
    binary_forward({.op = Binary::mul,
                    .a = view_of(a.data() + first, DType::f32, {n}),
                    .b = view_of(a.data() + first + 1, DType::f32, {n}),
                    .y = view_of(target, DType::f32, {n})});
    std::memcpy(y, target, static_cast<size_t>(n) * 4);
  });
  expect_same(count, 4, [&](std::byte* y, int64_t first, int64_t n) {
    unary_forward({.op = Unary::gelu,
                   .x = view_of(a.data() + first, DType::f32, {n}),
                   .y = view_of(y, DType::f32, {n})});
  });
}

TEST(Nontemporal, NarrowResultsAndCopies) {
  std::vector<float> a = ramp(2 * kFloats + 5);
  std::vector<half> narrow(a.size());
  const int64_t count = static_cast<int64_t>(a.size());
  copy({.x = view_of(a.data(), DType::f32, {count}),
        .y = view_of(narrow.data(), DType::f16, {count})});
  for (const bool exp : {false, true}) {
    expect_same(count, 2, [&](std::byte* y, int64_t first, int64_t n) {
      const View x = view_of(narrow.data() + first, DType::f16, {n}),
                 to = view_of(y, DType::f16, {n});
      exp ? unary_forward({.op = Unary::exp, .x = x, .y = to}) : copy({.x = x, .y = to});
    });
  }
}

TEST(Nontemporal, InPlace) {
  std::vector<float> a = ramp(kFloats), b = a;
  const View x = view_of(a.data(), DType::f32, {kFloats});
  unary_forward({.op = Unary::square, .x = x, .y = x});
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i], b[i] * b[i]) << i;
  }
}

TEST(Nontemporal, RowsOfSoftmaxAndNorm) {
  std::vector<float> a = ramp((kRows + 2) * kCols), weight = ramp(kCols), mean(kRows + 2),
                     rstd(kRows + 2);
  const auto rows_at = [&](std::vector<float>& v, int64_t first, int64_t n) {
    return view_of(v.data() + first * kCols, DType::f32, {n, kCols});
  };
  for (const bool log : {false, true}) {
    expect_same(kRows + 1, kCols * 4, [&](std::byte* y, int64_t first, int64_t n) {
      softmax_forward({.x = rows_at(a, first, n),
                       .y = view_of(y, DType::f32, {n, kCols}),
                       .dim = 1,
                       .log = log});
    });
    expect_same(kRows + 1, kCols * 4, [&](std::byte* y, int64_t first, int64_t n) {
      softmax_backward({.y = rows_at(a, first, n),
                        .dy = rows_at(a, first + 1, n),
                        .dx = view_of(y, DType::f32, {n, kCols}),
                        .dim = 1,
                        .log = log});
    });
  }
  const View w = view_of(weight.data(), DType::f32, {kCols});
  expect_same(kRows + 1, kCols * 4, [&](std::byte* y, int64_t first, int64_t n) {
    layer_norm_forward({.x = rows_at(a, first, n),
                        .weight = w,
                        .bias = w,
                        .y = view_of(y, DType::f32, {n, kCols}),
                        .mean = view_of(mean.data() + first, DType::f32, {n}),
                        .rstd = view_of(rstd.data() + first, DType::f32, {n}),
                        .eps = 1e-5});
  });
  expect_same(kRows + 1, kCols * 4, [&](std::byte* y, int64_t first, int64_t n) {
    layer_norm_backward({.x = rows_at(a, first, n),
                         .dy = rows_at(a, first + 1, n),
                         .weight = w,
                         .mean = view_of(mean.data() + first, DType::f32, {n}),
                         .rstd = view_of(rstd.data() + first, DType::f32, {n}),
                         .dx = view_of(y, DType::f32, {n, kCols}),
                         .dweight = kNoView,
                         .dbias = kNoView});
  });
}

}  // namespace
}  // namespace binade::kernels::nontemporal_test
