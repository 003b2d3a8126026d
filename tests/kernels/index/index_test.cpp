// Compares gather, scatter_add, scatter and one_hot with plain loops: rows and single elements,
// layouts, dtypes, few and many indices, repeated indices, and indices out of range.
#include <binade/kernels/index/index.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/support/fault_of.h"
#include "tests/kernels/support/layouts.h"
#include "tests/kernels/support/strided_array.h"

namespace binade::kernels::index_test {
namespace {

// `sizes` are those of the indices; the other operand has size `bound` in `dim`. rows: one index
// covers all dimensions after dim.
struct Case {
  Dims sizes;
  int dim;
  int64_t bound;
  bool rows = false;
  Layout layout = Layout::contiguous;
  int64_t exempt = kNoExemption;

  Dims other() const {
    Dims all = sizes;
    all[dim] = bound;
    return all;
  }
  std::string describe() const {
    return text("sizes ", sizes, " dim ", dim, " bound ", bound, rows ? " rows" : "", " layout ",
                static_cast<int>(layout));
  }
};

struct Indices {
  std::vector<int64_t> values;  // the distinct index values
  Dims sizes, strides;

  Indices(const Case& c, uint32_t seed) : sizes(c.sizes), strides(row_major_strides(c.sizes)) {
    if (c.rows) {
      int64_t inner = 1;
      for (int d = c.sizes.size() - 1; d > c.dim; --d) {
        inner *= c.sizes[d];
        strides[d] = 0;
      }
      for (int d = 0; d <= c.dim; ++d) {
        strides[d] /= inner > 0 ? inner : 1;
      }
    }
    std::mt19937 generator(seed);
    const int64_t count =
        c.rows && element_count(c.sizes) > 0 ? c.sizes[0] * strides[0] : element_count(c.sizes);
    for (int64_t i = 0; i < count; ++i) {  // about half of them are equal
      const auto drawn = static_cast<int64_t>(generator());
      values.push_back(drawn % 2 == 0 ? c.bound / 2 : drawn / 2 % c.bound);
    }
  }
  int64_t at(int64_t i) const {
    int64_t offset = 0;
    for (int d = sizes.size() - 1; d >= 0; --d) {
      offset += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return values[static_cast<size_t>(offset)];
  }
};

// The row-major index of the element in the other operand to which index entry i refers.
int64_t target(const Case& c, int64_t i, int64_t index) {
  int64_t inner = 1;
  for (int d = c.sizes.size() - 1; d > c.dim; --d) {
    inner *= c.sizes[d];
  }
  const int64_t outer = i / (inner * c.sizes[c.dim]);
  return (outer * c.bound + index) * inner + i % inner;
}

void check_gather(const Case& c, DType dtype) {
  Array x(dtype, c.other(), c.layout), y(dtype, c.sizes);
  x.random(1, 1, 100);
  const Indices index(c, 2);
  TestValues<int64_t> values(index.values);
  gather({"gather", x.view(), values.view(DType::i64, c.sizes, index.strides), y.view(), c.dim,
          c.exempt});
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t k = index.at(i);
    ASSERT_EQ(y[i], k == c.exempt ? 0 : x[target(c, i, k)])
        << c.describe() << " " << to_string(dtype) << " element " << i;
  }
}

void check_scatter(const Case& c, DType dtype) {
  Array src(dtype, c.sizes, c.layout), y(dtype, c.other());
  src.random(1);
  y.random(2);
  std::vector<double> expected;
  for (int64_t i = 0; i < y.numel(); ++i) {
    expected.push_back(y[i]);
  }
  const Indices index(c, 3);
  TestValues<int64_t> values(index.values);
  scatter_add({"scatter_add", values.view(DType::i64, c.sizes, index.strides), src.view(), y.view(),
               c.dim, c.exempt});
  for (int64_t i = 0; i < src.numel(); ++i) {
    if (const int64_t k = index.at(i); k != c.exempt) {
      expected[static_cast<size_t>(target(c, i, k))] += src[i];
    }
  }
  for (int64_t i = 0; i < y.numel(); ++i) {
    const double want = expected[static_cast<size_t>(i)];
    const double terms = std::sqrt(static_cast<double>(c.sizes[c.dim]) + 1);
    ASSERT_NEAR(y[i], want,
                std::fabs(want) * epsilon(dtype) + 8 * terms * epsilon(compute_dtype(dtype)))
        << c.describe() << " " << to_string(dtype) << " element " << i;
  }
}

// The last entry for a target wins. distinct: entry j of a line goes to element 2 j + 1.
void check_overwrite(const Case& c, DType dtype, bool distinct) {
  Array src(dtype, c.sizes, c.layout), y(dtype, c.other(), c.layout);
  src.random(1, 1, 100);
  y.random(2, 1, 100);
  std::vector<double> expected;
  for (int64_t i = 0; i < y.numel(); ++i) {
    expected.push_back(y[i]);
  }
  Indices index(c, 3);
  if (distinct) {
    int64_t inner = 1;
    for (int d = c.sizes.size() - 1; d > c.dim; --d) {
      inner *= c.sizes[d];
    }
    for (size_t i = 0; i < index.values.size(); ++i) {
      index.values[i] = (2 * (static_cast<int64_t>(i) / inner % c.sizes[c.dim]) + 1) % c.bound;
    }
  }
  TestValues<int64_t> values(index.values);
  scatter({"scatter", values.view(DType::i64, c.sizes, index.strides), src.view(), y.view(), c.dim,
           distinct});
  for (int64_t i = 0; i < src.numel(); ++i) {
    expected[static_cast<size_t>(target(c, i, index.at(i)))] = src[i];
  }
  ASSERT_TRUE(y.gaps_untouched());
  for (int64_t i = 0; i < y.numel(); ++i) {
    ASSERT_EQ(y[i], expected[static_cast<size_t>(i)])
        << c.describe() << " " << to_string(dtype) << " element " << i;
  }
}

const std::vector<Case> kCases = {
    {{7}, 0, 5},
    {{2, 3, 4}, 1, 6},
    {{3, 40, 2}, 1, 9},
    {{40, 3}, 0, 1},
    {{2100}, 0, 300},
    {{9, 8}, 0, 5, true},
    {{2, 30, 33}, 1, 4, true},
    {{70, 5}, 0, 200, true, Layout::contiguous, 100},
    {{12, 6}, 0, 4, true, Layout::transposed, 2},
    {{3, 20, 2, 4}, 1, 6, true, Layout::padded},
    {{5, 20, 3}, 0, 6, false, Layout::step2, 3},
    {{2, 3, 4}, 2, 6, false, Layout::transposed},
    {{0, 3}, 0, 5},
    {{3, 0}, 0, 5, true},
};

TEST(Index, GatherMatchesLoops) {
  for (const Case& c : kCases) {
    for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
      check_gather(c, dtype);
    }
  }
}

TEST(Index, ScatterAddMatchesLoops) {
  for (const Case& c : kCases) {
    for (DType dtype : floating_dtypes()) {
      check_scatter(c, dtype);
    }
  }
}

TEST(Index, ScatterKeepsTheLast) {
  for (const Case& c : kCases) {
    for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
      check_overwrite(c, dtype, false);
    }
  }
  check_overwrite({{1, 3000}, 1, 2}, DType::i64, false);
}

TEST(Index, ScatterOfDistinctIndices) {
  for (Layout layout : kOutputLayouts) {
    for (DType dtype : floating_dtypes()) {
      check_overwrite({{3, 3, 4}, 1, 9, false, layout}, dtype, true);
      check_overwrite({{5, 7}, 1, 7, false, layout}, dtype, true);
    }
  }
}

// Covers several digits of the sort, several blocks, and a target with entries in many chunks.
TEST(Index, ScatterAddOfManyEntries) {
  check_scatter({{every_combination() ? 30000 : 5000}, 0, 70000}, DType::f32);
  check_scatter({{2500}, 0, 1}, DType::f16);
}

TEST(Index, AddsRepeatedHalvesWithoutRoundingBetween) {
  for (int64_t count : {10, 3000}) {
    Array src(DType::f16, {count}), y(DType::f16, {2});
    for (int64_t i = 0; i < count; ++i) {
      src.set(i, 1);
    }
    y.set(0, 0);
    y.set(1, 0);
    TestValues<int64_t> index(static_cast<size_t>(count), 1);
    scatter_add({"scatter_add", index.view(DType::i64, {count}), src.view(), y.view(), 0});
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], static_cast<double>(count));  // a sum in f16 would stop at 2048
  }
}

TEST(Index, OneHot) {
  TestValues<int64_t> index{2, 0, 4, 4, 1, 3};
  for (bool transposed : {false, true}) {
    TestValues<int64_t> y(size_t{30}, int64_t{7});
    const View at =
        transposed ? index.view(DType::i64, {3, 2}, {1, 3}) : index.view(DType::i64, {3, 2});
    one_hot({at, y.view(DType::i64, {3, 2, 5})});
    for (int64_t i = 0; i < 30; ++i) {
      const int64_t entry = i / 5, from = transposed ? entry % 2 * 3 + entry / 2 : entry;
      EXPECT_EQ(y[static_cast<size_t>(i)], index[static_cast<size_t>(from)] == i % 5) << i;
    }
  }
}

TEST(Index, ThreadCountChangesNothing) {
  const auto run = [] {
    std::vector<std::byte> all;
    for (const Case& c : {Case{{900, 70}, 0, 50, true}, Case{{40, 300, 9}, 1, 20}}) {
      Array src(DType::f32, c.sizes), y(DType::f32, c.other());
      src.random(1);
      y.random(2);
      const Indices index(c, 3);
      TestValues<int64_t> values(index.values);
      scatter_add({"scatter_add", values.view(DType::i64, c.sizes, index.strides), src.view(),
                   y.view(), c.dim});
      all.insert(all.end(), y.bytes().begin(), y.bytes().end());
    }
    return all;
  };
  set_threads(1);
  const std::vector<std::byte> serial = run();
  set_threads(4);
  EXPECT_EQ(run(), serial);
  set_threads(0);
}

TEST(Index, NarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

void expect_fault(const std::function<void()>& run, const std::string& begin) {
  const std::string got = fault_of(run);
  EXPECT_EQ(got.substr(0, begin.size()), begin) << got;
}

TEST(Index, OutOfRangeIsOneTypedError) {
  fault_of([] {});  // clears faults of earlier tests
  for (int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX}) {
    for (size_t count : {size_t{4}, size_t{40}}) {
      const auto n = static_cast<int64_t>(count);
      TestValues<int64_t> index(count, 1);
      index.set(2, bad);
      Array x(DType::f32, {3}), y(DType::f32, {n}), sums(DType::f32, {3});
      x.random(1, 1, 2);
      y.random(2, 1, 2);
      for (int64_t i = 0; i < 3; ++i) {
        sums.set(i, 0);
      }
      const View at = index.view(DType::i64, {n});
      expect_fault(
          [&] {
            scatter_add({"embedding", at, y.view(), sums.view(), 0});
            EXPECT_GT(sums[1], 0);
            EXPECT_EQ(sums[0] + sums[2], 0);
          },
          text("embedding ", bad, ": embedding: got index ", bad));
      expect_fault(
          [&] {
            scatter({"write", at, y.view(), sums.view(), 0});
            EXPECT_EQ(sums[1], y[n - 1]);
          },
          text("write ", bad, ": write: got index ", bad));
      sums.set(1, 0);
      expect_fault(
          [&] {
            gather({"take", x.view(), at, y.view(), 0});
            EXPECT_EQ(y[2], 0);
            EXPECT_EQ(y[3], x[1]);
          },
          text("take ", bad, ": take: got index ", bad));
      TestValues<int64_t> hot(3 * count);
      expect_fault(
          [&] {
            one_hot({at, hot.view(DType::i64, {n, 3})});
            EXPECT_EQ(hot[4], 1);
          },
          text("one_hot ", bad, ": one_hot: got index ", bad));
    }
  }
}

TEST(Index, Errors) {
  Array x(DType::f32, {3, 4}), y(DType::f32, {2, 4}), strided(DType::f32, {2, 4}, Layout::step2);
  TestValues<int64_t> values(size_t{8}, int64_t{0});
  const View index = values.view(DType::i64, {2, 4});
  EXPECT_THROW(gather({"gather", x.view(), index, y.view(), 1}), Error);
  EXPECT_THROW(gather({"gather", x.view(), y.view(), y.view(), 0}), Error);
  EXPECT_THROW(gather({"gather", x.view(), index, strided.view(), 0}), Error);
  EXPECT_THROW(scatter_add({"scatter_add", index, y.view(), x.view(), 2}), Error);
  EXPECT_THROW(scatter({"scatter", index, x.view(), y.view(), 0}), Error);
  EXPECT_THROW(scatter({"scatter", index, y.view(), index, 0}), Error);
  EXPECT_THROW(one_hot({index, index}), Error);
}

}  // namespace
}  // namespace binade::kernels::index_test
