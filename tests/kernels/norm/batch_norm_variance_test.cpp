// Tests the batch's variance where rstd cannot show it: far below eps, beside a large mean.
#include <tests/kernels/norm/batch_norm_statistics.h>

namespace binade::kernels::batch_norm_variance_test {
namespace {

// If the variance is far below eps, rstd has none of its digits.
TEST(BatchNormVariance, VarianceIsExactFarBelowEps) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (double scale : {1e-6, 1.0, 1e4}) {
      for (const ArrayLayout& layout : image_layouts()) {
        Values values = random_values(7 * 5 * 6, 8);
        for (double& value : values) {
          value *= scale;
        }
        StridedArray x = make_array(dtype, {7, 5, 2, 3}, values, layout.order, layout.gap);
        const DType compute = compute_dtype(dtype);
        StridedArray y(x), mean(compute, {5}), rstd(compute, {5}), variance(compute, {5});
        batch_norm_forward({.x = x.view(),
                            .weight = kNoView,
                            .bias = kNoView,
                            .y = y.view(),
                            .mean = mean.view(),
                            .rstd = rstd.view(),
                            .eps = kEps,
                            .variance = variance.view()});
        const Statistics s = statistics(values_of(x), channels_of({7, 5, 2, 3}), 5);
        for (size_t c = 0; c < 5; ++c) {
          EXPECT_NEAR(values_of(variance)[c], s.variance[c], 32 * epsilon(compute) * s.variance[c])
              << to_string(dtype) << " " << layout.name << " " << scale;
        }
      }
    }
  }
}

TEST(BatchNormVariance, VarianceBesideAMeanOfAMillion) {
  for (const ArrayLayout& layout : image_layouts()) {
    const Dims sizes{11, 5, 9, 17};
    StridedArray x = make_array(DType::f32, sizes, random_values(11 * 5 * 9 * 17, 8, 1e6, 40),
                                layout.order, layout.gap);
    StridedArray y(x), mean(DType::f32, {5}), rstd(mean), variance(mean);
    batch_norm_forward({.x = x.view(),
                        .weight = kNoView,
                        .bias = kNoView,
                        .y = y.view(),
                        .mean = mean.view(),
                        .rstd = rstd.view(),
                        .eps = kEps,
                        .variance = variance.view()});
    const Statistics s = statistics(values_of(x), channels_of(sizes), 5);
    for (size_t c = 0; c < 5; ++c) {
      EXPECT_NEAR(values_of(variance)[c], s.variance[c], 1e-5 * s.variance[c]) << layout.name;
    }
  }
}

TEST(BatchNormVariance, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::batch_norm_variance_test
