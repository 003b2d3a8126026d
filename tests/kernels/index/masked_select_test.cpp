// Tests masked_select and its inverse: layouts, dtypes, masks all false and all true, chunks.
#include <binade/kernels/index/masked_select.h>
#include <gtest/gtest.h>

#include "tests/kernels/support/layouts.h"

namespace binade::kernels::masked_select_test {
namespace {

void check_selection(DType dtype, const Dims& sizes, Layout layout, int every) {
  const std::string what = describe(dtype, sizes, layout) + " every " + std::to_string(every);
  Array x(dtype, sizes, layout), mask(DType::boolean, sizes, layout), back(dtype, sizes, layout);
  x.random(1, 1, 100);
  std::vector<double> chosen;
  for (int64_t i = 0; i < x.numel(); ++i) {
    mask.set(i, every > 0 && i * i % every == 0);
    if (mask[i] != 0) {
      chosen.push_back(x[i]);
    }
  }
  const auto count = static_cast<int64_t>(chosen.size());
  TestValues<int64_t> offsets(static_cast<size_t>(mask_offsets(x.numel())), -1);
  const View at = offsets.view(DType::i64, {mask_offsets(x.numel())});
  mask_count({mask.view(), at});
  ASSERT_EQ(offsets[offsets.size() - 1], count) << what;
  ASSERT_EQ(offsets[0], 0) << what;
  Array y(dtype, {count});
  const View same = offsets.view(DType::i64, {mask_offsets(x.numel())});
  masked_select({x.view(), mask.view(), same, y.view()});
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(y[i], chosen[static_cast<size_t>(i)]) << what << " element " << i;
  }
  masked_spread({y.view(), mask.view(), same, back.view()});
  EXPECT_TRUE(back.gaps_untouched()) << what;
  for (int64_t i = 0; i < x.numel(); ++i) {
    ASSERT_EQ(back[i], mask[i] != 0 ? x[i] : 0) << what << " element " << i;
  }
}

TEST(MaskedSelect, MatchesLoops) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    for (Layout layout : kOutputLayouts) {
      check_selection(dtype, {2, 9, 11}, layout, 3);
    }
  }
  for (int every : {0, 1, 2, 7}) {
    check_selection(DType::f32, {3, 1500}, Layout::contiguous, every);
    check_selection(DType::f32, {kMaskChunk}, Layout::contiguous, every);
    check_selection(DType::f32, {}, Layout::contiguous, every);
    check_selection(DType::f32, {0, 3}, Layout::contiguous, every);
  }
}

TEST(MaskedSelect, Errors) {
  Array x(DType::f32, {4}), mask(DType::boolean, {4}), y(DType::f16, {4});
  TestValues<int64_t> offsets(size_t{2});
  EXPECT_THROW(mask_count({x.view(), offsets.view(DType::i64, {2})}), Error);
  EXPECT_THROW(mask_count({mask.view(), offsets.view(DType::i64, {1})}), Error);
  EXPECT_THROW(masked_select({x.view(), mask.view(), offsets.view(DType::i64, {2}), y.view()}),
               Error);
}

}  // namespace
}  // namespace binade::kernels::masked_select_test
