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

// The gradient of batch norm at x, whose squares exceed f32: relative to rstd it is of size 1.
void expect_gradient(StridedArray& x, const Statistics& s, StridedArray& mean, StridedArray& rstd) {
  const std::vector<size_t> channel = channels_of(x.sizes());
  StridedArray dx(x), dy = make_array(DType::f32, x.sizes(), random_values(channel.size(), 9));
  batch_norm_backward({.x = x.view(),
                       .dy = dy.view(),
                       .weight = kNoView,
                       .mean = mean.view(),
                       .rstd = rstd.view(),
                       .dx = dx.view(),
                       .dweight = kNoView,
                       .dbias = kNoView});
  const Values in = values_of(x), g = values_of(dy), got = values_of(dx);
  const size_t channels = s.mean.size();
  const double count = static_cast<double>(in.size() / channels);
  const auto normal = [&](size_t i) {
    return (in[i] - s.mean[channel[i]]) / std::sqrt(s.variance[channel[i]]);
  };
  Values g_mean(channels), gu_mean(channels);
  for (size_t i = 0; i < in.size(); ++i) {
    g_mean[channel[i]] += g[i] / count;
    gu_mean[channel[i]] += g[i] * normal(i) / count;
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t c = channel[i];
    ASSERT_NEAR(got[i] * std::sqrt(s.variance[c]), g[i] - g_mean[c] - normal(i) * gu_mean[c], 1e-4);
  }
}

// Squares that exceed f32 are summed in double; the result is that of x / 1e25 without eps.
TEST(BatchNormVariance, SquaresMayExceedFloat) {
  for (const ArrayLayout& layout : image_layouts()) {
    for (const int64_t n : {2, 64}) {
      const Dims sizes{n, 21, 5, 6};
      const Values values = random_values(static_cast<size_t>(n * 21 * 5 * 6), 8);
      Values huge(values);
      for (size_t i = 0; i < values.size(); ++i) {
        huge[i] *= i % 3 ? 1e25 : 1e26;
      }
      StridedArray x = make_array(DType::f32, sizes, huge, layout.order, layout.gap);
      StridedArray y(x), mean(DType::f32, {21}), rstd(mean), variance(mean);
      batch_norm_forward({.x = x.view(),
                          .weight = kNoView,
                          .bias = kNoView,
                          .y = y.view(),
                          .mean = mean.view(),
                          .rstd = rstd.view(),
                          .eps = kEps,
                          .variance = variance.view()});
      const std::vector<size_t> channel = channels_of(sizes);
      const Values in = values_of(x), out = values_of(y);
      const Statistics s = statistics(in, channel, 21);
      for (size_t i = 0; i < in.size(); ++i) {
        const size_t c = channel[i];
        ASSERT_NEAR(out[i], (in[i] - s.mean[c]) / std::sqrt(s.variance[c]), 1e-5) << layout.name;
        EXPECT_EQ(values_of(variance)[c], std::numeric_limits<double>::infinity());
      }
      expect_gradient(x, s, mean, rstd);
    }
  }
}

TEST(BatchNormVariance, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::batch_norm_variance_test
