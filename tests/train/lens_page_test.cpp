// Tests how much the page of a lens holds.
#include <binade/train/lens_report.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace binade::train::lens_page_test {
namespace {

TEST(LensPage, APageNamesAsManyElementsAsItsSizeAllows) {
  const auto page_of = [](int64_t steps, int cells) {
    LensReport report;
    report.rows.push_back({.kind = "update", .layer = "a", .tensor = "a.w", .elements = 4});
    report.rows[0].exponents.assign(ExponentCounts::kMost - ExponentCounts::kLeast + 2, 1);
    for (int64_t step = 0; step < steps; ++step) {
      LensMoment moment{.step = step, .elements = 4, .least_exponent = -3, .exponents = {4}};
      for (int e = 0; e < cells; ++e) {
        for (int k = 0; k < 2; ++k) {
          moment.worst.push_back({.exponent = e - 120,
                                  .place = {e, 7 + k},
                                  .value = 70000.0 * (k + 1),
                                  .in_f16 = INFINITY,
                                  .in_bf16 = 1e5});
        }
      }
      report.moments.push_back(std::move(moment));
    }
    return to_html(report);
  };
  const std::string small = page_of(3, 200);
  EXPECT_NE(small.find("[-120,[0,7],70000,null,100000],[-120,[0,8],140000,null,100000]"),
            std::string::npos);
  const std::string large = page_of(60, 500);  // 30,000 cells get one element each
  EXPECT_NE(large.find("[-120,[0,7],"), std::string::npos);
  EXPECT_EQ(large.find("[-120,[0,8],"), std::string::npos);
  EXPECT_LT(large.size(), size_t{4} << 20);
  const std::string none = page_of(60, 700);
  EXPECT_EQ(none.find("[-120,[0,7],"), std::string::npos);
  EXPECT_NE(none.find("too large for the elements"), std::string::npos);
}

}  // namespace
}  // namespace binade::train::lens_page_test
