// Batch norm against naive f64 references.
#include <tests/kernels/norm/batch_norm_statistics.h>

namespace binade::kernels::batch_norm_test {
namespace {

// dx, dweight and dbias; statistics are constants in evaluation and depend on x in training.
struct Gradients {
  Values dx, dweight, dbias;
};

Gradients gradients(const Values& x, const Values& dy, const Values& weight, const Statistics& s,
                    const std::vector<size_t>& channel, bool training) {
  const size_t channels = weight.size();
  const double count = static_cast<double>(x.size() / channels);
  Gradients g{Values(x.size()), Values(channels), Values(channels)};
  const auto rstd = [&](size_t c) { return 1 / std::sqrt(s.variance[c] + kEps); };
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = channel[i];
    g.dbias[c] += dy[i];
    g.dweight[c] += dy[i] * (x[i] - s.mean[c]) * rstd(c);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = channel[i];
    const double u = (x[i] - s.mean[c]) * rstd(c);
    const double through = training ? (g.dbias[c] + u * g.dweight[c]) / count : 0;
    g.dx[i] = weight[c] * rstd(c) * (dy[i] - through);
  }
  return g;
}

struct Case {
  DType dtype;
  Dims sizes;
  ArrayLayout layout;
  bool affine;

  DType compute() const { return compute_dtype(dtype); }
  std::string name() const {
    return to_string(sizes) + " " + layout.name + (affine ? " affine" : "");
  }
};

// All arrays of one case, with random inputs.
struct Arrays {
  StridedArray x, y, dy, dx, weight, bias, mean, rstd, dweight, dbias;

  explicit Arrays(const Case& c)
      : x(make_array(c.dtype, c.sizes, random_values(size(c), 1, 0.5, 2), c.layout.order,
                     c.layout.gap)),
        y(c.dtype, c.sizes, c.layout.order, c.layout.gap),
        dy(make_array(c.dtype, c.sizes, random_values(size(c), 2), c.layout.order, c.layout.gap)),
        dx(c.dtype, c.sizes, c.layout.order, c.layout.gap),
        weight(vector(c, random_values(channels(c), 3, 1))),
        bias(vector(c, random_values(channels(c), 4))),
        mean(vector(c, Values(channels(c)))),
        rstd(mean),
        dweight(mean),
        dbias(mean) {}
  static size_t size(const Case& c) { return static_cast<size_t>(element_count(c.sizes)); }
  static size_t channels(const Case& c) { return static_cast<size_t>(c.sizes[1]); }
  static StridedArray vector(const Case& c, const Values& values) {
    return make_array(c.compute(), {c.sizes[1]}, values);
  }
};

Values affine_reference(const Case& c, Arrays& t, const Statistics& s) {
  const Values x = values_of(t.x), weight = values_of(t.weight), bias = values_of(t.bias);
  const std::vector<size_t> channel = channels_of(c.sizes);
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t k = channel[i];
    const double u = (x[i] - s.mean[k]) / std::sqrt(s.variance[k] + kEps);
    y[i] = c.affine ? u * weight[k] + bias[k] : u;
  }
  return y;
}

double units(const Case& c) {
  return 8 + std::sqrt(static_cast<double>(element_count(c.sizes) / c.sizes[1]));
}

void check_training(const Case& c) {
  Arrays t(c);
  const View weight = c.affine ? t.weight.view() : kNoView,
             bias = c.affine ? t.bias.view() : kNoView;
  batch_norm_forward({t.x.view(), weight, bias, t.y.view(), t.mean.view(), t.rstd.view(), kEps});
  const std::vector<size_t> channel = channels_of(c.sizes);
  const Statistics s = statistics(values_of(t.x), channel, Arrays::channels(c));
  Values rstd;
  for (double variance : s.variance) {
    rstd.push_back(1 / std::sqrt(variance + kEps));
  }
  expect_close(t.mean, c.compute(), s.mean, units(c), c.name() + " mean");
  expect_close(t.rstd, c.compute(), rstd, 2 * units(c), c.name() + " rstd");
  expect_close(t.y, c.dtype, affine_reference(c, t, s), units(c), c.name() + " y");

  batch_norm_backward({t.x.view(), t.dy.view(), weight, t.mean.view(), t.rstd.view(), t.dx.view(),
                       t.dweight.view(), t.dbias.view()});
  const Values ones(Arrays::channels(c), 1);
  const Gradients g = gradients(values_of(t.x), values_of(t.dy),
                                c.affine ? values_of(t.weight) : ones, s, channel, true);
  expect_close(t.dx, c.dtype, g.dx, 2 * units(c), c.name() + " dx");
  expect_close(t.dweight, c.compute(), g.dweight, 2 * units(c), c.name() + " dweight");
  expect_close(t.dbias, c.compute(), g.dbias, 2 * units(c), c.name() + " dbias");
}

void check_evaluation(const Case& c) {
  Arrays t(c);
  const View weight = c.affine ? t.weight.view() : kNoView,
             bias = c.affine ? t.bias.view() : kNoView;
  Values variances = random_values(Arrays::channels(c), 6);
  for (double& v : variances) {
    v = v * v + 0.1;
  }
  StridedArray mean = Arrays::vector(c, random_values(Arrays::channels(c), 5));
  StridedArray variance = Arrays::vector(c, variances);
  const Statistics s{values_of(mean), values_of(variance)};
  batch_norm_inference({t.x.view(), weight, bias, mean.view(), variance.view(), t.y.view(), kEps});
  expect_close(t.y, c.dtype, affine_reference(c, t, s), 8, c.name() + " y in evaluation");
  batch_norm_inference_backward({t.x.view(), t.dy.view(), weight, mean.view(), variance.view(),
                                 t.dx.view(), t.dweight.view(), t.dbias.view(), kEps});
  const Values ones(Arrays::channels(c), 1);
  const Gradients g =
      gradients(values_of(t.x), values_of(t.dy), c.affine ? values_of(t.weight) : ones, s,
                channels_of(c.sizes), false);
  expect_close(t.dx, c.dtype, g.dx, 8, c.name() + " dx in evaluation");
  expect_close(t.dweight, c.compute(), g.dweight, 2 * units(c),
               c.name() + " dweight in evaluation");
  expect_close(t.dbias, c.compute(), g.dbias, 2 * units(c), c.name() + " dbias in evaluation");
}

TEST(BatchNorm, MatchesReferenceForAllLayoutsAndDTypes) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : image_layouts()) {
      for (int64_t channels : {1, 37}) {
        for (bool affine : {false, true}) {
          check_training({dtype, {4, channels, 5, 3}, layout, affine});
          check_evaluation({dtype, {4, channels, 5, 3}, layout, affine});
        }
      }
    }
  }
}

TEST(BatchNorm, MatchesReferenceForOtherRanksAndManyRows) {
  const ArrayLayout row_major{"row-major", {}, 0};
  for (DType dtype : floating_dtypes()) {
    check_training({dtype, {50, 70}, row_major, true});
    check_training({dtype, {5, 3, 17}, row_major, true});
    check_training({dtype, {2, 3, 2, 3, 2}, row_major, true});
    check_training({dtype, {2500, 5}, row_major, true});
    check_training({dtype, {test_device().is_cpu() ? 1100 : 300, 130}, row_major, true});
    check_training({dtype, {70, 264}, row_major, true});
    check_evaluation({dtype, {33, 257}, row_major, true});
    check_training({dtype, {3, 2, 31, 33}, row_major, true});
    check_training({dtype, {2, 3, 16, 16}, row_major, false});
  }
}

// A crop of a channels-last image: channels are adjacent, but rows do not merge.
TEST(BatchNorm, CroppedChannelsLast) {
  const Case c{DType::f32, {3, 20, 6, 5}, {"channels-last", {0, 2, 3, 1}, 0}, false};
  Arrays t(c);
  View x = t.x.view();
  x = test_view(x.data, x.dtype, {3, 20, 4, 4}, x.strides);
  StridedArray y(DType::f32, {3, 20, 4, 4});
  batch_norm_forward({x, kNoView, kNoView, y.view(), t.mean.view(), t.rstd.view(), kEps});
  Values cropped;
  t.x.each([&](const std::vector<int64_t>& at) {
    if (at[2] < 4 && at[3] < 4) {
      cropped.push_back(t.x.get(at));
    }
  });
  const Dims sizes{3, 20, 4, 4};
  const Statistics s = statistics(cropped, channels_of(sizes), 20);
  for (size_t i = 0; i < cropped.size(); ++i) {
    const size_t k = channels_of(sizes)[i];
    cropped[i] = (cropped[i] - s.mean[k]) / std::sqrt(s.variance[k] + kEps);
  }
  expect_close(y, DType::f32, cropped, 16, "crop");
}

TEST(BatchNorm, VarianceFarFromZeroIsAccurate) {
  const Dims sizes{700, 5};
  const std::vector<size_t> channel = channels_of(sizes);
  for (double first : {1e4, 0.0, -1e4}) {  // the first row may be an outlier
    Values values = random_values(3500, 1, 1e4, 1);
    std::fill(values.begin(), values.begin() + 5, first);
    StridedArray x = make_array(DType::f32, sizes, values), y(DType::f32, sizes);
    StridedArray mean(DType::f32, {5}), rstd(DType::f32, {5});
    batch_norm_forward({x.view(), kNoView, kNoView, y.view(), mean.view(), rstd.view(), kEps});
    const Statistics s = statistics(values_of(x), channel, 5);
    for (size_t c = 0; c < 5; ++c) {
      const double r = values_of(rstd)[c];
      EXPECT_NEAR(1 / (r * r) - kEps, s.variance[c], 2e-4 * s.variance[c]);
      EXPECT_NEAR(values_of(mean)[c], s.mean[c], 1e-3);
    }
  }
}

TEST(BatchNorm, AMeanWhoseSquareOverflows) {
  StridedArray x = make_array(DType::f64, {3000, 2}, Values(6000, 0x1p600));
  StridedArray y(x), mean(DType::f64, {2}), rstd(DType::f64, {2});
  batch_norm_forward({x.view(), kNoView, kNoView, y.view(), mean.view(), rstd.view(), kEps});
  EXPECT_EQ(values_of(mean)[1], 0x1p600);
  EXPECT_NEAR(values_of(rstd)[1], 1 / std::sqrt(kEps), 1e-9);
}

TEST(BatchNorm, NaNIsNotHidden) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : image_layouts()) {
      const Case c{dtype, {2, 21, 3, 5}, layout, true};
      Arrays t(c);
      StridedArray variance(t.mean), running_mean(t.mean), running_var(t.mean);
      t.x.set({1, 17, 2, 0}, std::nan(""));
      batch_norm_forward({.x = t.x.view(),
                          .weight = t.weight.view(),
                          .bias = t.bias.view(),
                          .y = t.y.view(),
                          .mean = t.mean.view(),
                          .rstd = t.rstd.view(),
                          .eps = kEps,
                          .variance = variance.view()});
      batch_norm_running(
          {t.mean.view(), variance.view(), running_mean.view(), running_var.view(), 0.1, 30});
      const Values y = values_of(t.y);
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(std::isnan(y[i]), i / 15 % 21 == 17) << c.name();
      }
      for (StridedArray* array : {&t.mean, &t.rstd, &variance, &running_mean, &running_var}) {
        for (int64_t i = 0; i < 21; ++i) {
          ASSERT_EQ(std::isnan(array->get({i})), i == 17) << c.name();
        }
      }
    }
  }
}

TEST(BatchNorm, RunningStatistics) {
  for (DType dtype : {DType::f32, DType::f64}) {
    StridedArray mean = make_array(dtype, {2}, {1, -2}), biased = make_array(dtype, {2}, {4, 0.25});
    StridedArray running_mean = make_array(dtype, {2}, {0, 3}),
                 running_var = make_array(dtype, {2}, {1, 5});
    const View means = running_mean.view(), variances = running_var.view();
    batch_norm_running({mean.view(), biased.view(), means, variances, 0.1, 6});
    expect_close(running_mean, dtype, {0.1, 2.5}, 4, "running_mean");
    expect_close(running_var, dtype, {0.9 + 0.1 * 4 * 1.2, 4.5 + 0.1 * 0.25 * 1.2}, 4,
                 "running_var");
    EXPECT_EQ(error_of([&] {
                batch_norm_running({mean.view(), biased.view(), means, variances, 0.1, 1});
              }),
              "batch_norm: got 1 value per channel in training, expected 2 or more for an unbiased "
              "variance");
  }
}

TEST(BatchNorm, UnwantedGradientsAndOutputsOverInputs) {
  const Case c{DType::f32, {4, 19, 3, 3}, {"channels-last", {0, 2, 3, 1}, 0}, true};
  Arrays t(c), u(c);
  batch_norm_forward(
      {t.x.view(), t.weight.view(), t.bias.view(), t.y.view(), t.mean.view(), t.rstd.view(), kEps});
  batch_norm_backward({t.x.view(), t.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                       t.dx.view(), kNoView, kNoView});
  batch_norm_backward({t.x.view(), u.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                       u.dy.view(), u.dweight.view(), kNoView});
  EXPECT_EQ(u.dy.bytes(), t.dx.bytes());
  batch_norm_backward({t.x.view(), t.dy.view(), kNoView, t.mean.view(), t.rstd.view(), kNoView,
                       kNoView, u.dbias.view()});
  EXPECT_NE(values_of(u.dbias), Values(19));
  batch_norm_forward(
      {u.x.view(), t.weight.view(), t.bias.view(), u.x.view(), t.mean.view(), t.rstd.view(), kEps});
  EXPECT_EQ(u.x.bytes(), t.y.bytes());
}

TEST(BatchNorm, EmptyBatch) {
  StridedArray x(DType::f32, {0, 3, 2, 2});
  StridedArray mean = make_array(DType::f32, {3}, {1, 1, 1}), sums = mean;
  batch_norm_forward({x.view(), kNoView, kNoView, x.view(), mean.view(), mean.view(), kEps});
  batch_norm_backward(
      {x.view(), x.view(), kNoView, mean.view(), mean.view(), x.view(), sums.view(), kNoView});
  EXPECT_EQ(values_of(sums), Values(3));
}

TEST(BatchNorm, SameBitsForAnyThreadCount) {
  for (const ArrayLayout& layout : image_layouts()) {
    expect_thread_invariant([&layout] {
      const int64_t images = test_device().is_cpu() ? 13 : 2;
      const Case c{DType::f32, {images, 67, 9, 21}, layout, true};
      Arrays t(c);
      batch_norm_forward({t.x.view(), t.weight.view(), t.bias.view(), t.y.view(), t.mean.view(),
                          t.rstd.view(), kEps});
      batch_norm_backward({t.x.view(), t.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                           t.dx.view(), t.dweight.view(), t.dbias.view()});
      std::vector<std::byte> all;
      for (const StridedArray* array : {&t.y, &t.mean, &t.rstd, &t.dx, &t.dweight, &t.dbias}) {
        append(all, *array);
      }
      return all;
    });
  }
}

TEST(BatchNorm, ErrorsNameTheProblem) {
  const Case c{DType::f16, {2, 3, 2, 2}, {"row-major", {}, 0}, true};
  Arrays t(c);
  StridedArray five(DType::f32, {5}), flat(DType::f16, {4});
  const auto run = [&](StridedArray& x, StridedArray& weight) {
    return error_of([&] {
      batch_norm_forward(
          {x.view(), weight.view(), kNoView, t.y.view(), t.mean.view(), t.rstd.view(), kEps});
    });
  };
  EXPECT_EQ(run(t.x, five),
            "batch_norm: got weight f32 [5], expected a contiguous f32 [3], one per channel");
  EXPECT_EQ(run(t.x, flat),
            "batch_norm: got weight f16 [4], expected a contiguous f32 [3], one per channel");
  EXPECT_EQ(run(flat, t.weight),
            "batch_norm: got x f16 [4], expected a floating tensor [N, C, ...]");
}

TEST(BatchNorm, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::batch_norm_test
