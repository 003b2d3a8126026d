// Group norm against naive f64 references.
#include <binade/kernels/norm/group_norm.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::group_norm_test {
namespace {

constexpr double kEps = 1e-5;

struct Case {
  DType dtype;
  int64_t n, c, h, w, groups;
  ArrayLayout layout = {"row-major", {}, 0};
  bool affine = true;

  DType compute() const { return compute_dtype(dtype); }
  Dims sizes() const { return {n, c, h, w}; }
  int64_t pixels() const { return h * w; }
  size_t count() const { return static_cast<size_t>(n * c * h * w); }
  size_t group_of(size_t plane) const { return plane / static_cast<size_t>(c / groups); }
  std::string name() const {
    return std::string(to_string(dtype)) + " [" + std::to_string(n) + ", " + std::to_string(c) +
           ", " + std::to_string(h) + ", " + std::to_string(w) + "] groups " +
           std::to_string(groups) + " " + layout.name + (affine ? " affine" : "");
  }
};

// All arrays of one case, with random inputs. Values are in row-major order.
struct Arrays {
  StridedArray x, y, dy, dx, weight, bias, dweight, dbias, mean, rstd;

  explicit Arrays(const Case& c)
      : x(image(c, random_values(c.count(), 1, 0.5, 2))),
        y(c.dtype, c.sizes(), c.layout.order, c.layout.gap),
        dy(image(c, random_values(c.count(), 2))),
        dx(y),
        weight(make_array(c.compute(), {c.c}, random_values(static_cast<size_t>(c.c), 3, 1))),
        bias(make_array(c.compute(), {c.c}, random_values(static_cast<size_t>(c.c), 4))),
        dweight(c.compute(), {c.c}),
        dbias(c.compute(), {c.c}),
        mean(c.compute(), {c.n, c.groups}),
        rstd(c.compute(), {c.n, c.groups}) {}
  static StridedArray image(const Case& c, const Values& values) {
    return make_array(c.dtype, c.sizes(), values, c.layout.order, c.layout.gap);
  }
  void forward(const Case& c) {
    group_norm_forward({x.view(), c.affine ? weight.view() : kNoView,
                        c.affine ? bias.view() : kNoView, y.view(), mean.view(), rstd.view(),
                        kEps});
  }
  void backward(const Case& c) {
    group_norm_backward({x.view(), dy.view(), c.affine ? weight.view() : kNoView, mean.view(),
                         rstd.view(), dx.view(), dweight.view(), dbias.view()});
  }
};

struct Reference {
  Values y, mean, rstd, dx, dweight, dbias;
};

Reference reference(const Case& c, const Arrays& t) {
  const size_t planes = static_cast<size_t>(c.n * c.c), channels = static_cast<size_t>(c.c),
               pixels = static_cast<size_t>(c.pixels()),
               groups = static_cast<size_t>(c.n * c.groups);
  const Values x = values_of(t.x), dy = values_of(t.dy);
  const Values weight = c.affine ? values_of(t.weight) : Values(channels, 1);
  const Values bias = c.affine ? values_of(t.bias) : Values(channels, 0);
  const double count = static_cast<double>(c.c / c.groups * c.pixels());
  Reference r{Values(x.size()), Values(groups),   Values(groups),
              Values(x.size()), Values(channels), Values(channels)};
  const auto each = [&](auto&& f) {
    for (size_t plane = 0; plane < planes; ++plane) {
      for (size_t i = 0; i < pixels; ++i) {
        f(c.group_of(plane), plane % channels, plane * pixels + i);
      }
    }
  };
  each([&](size_t g, size_t, size_t i) { r.mean[g] += x[i] / count; });
  each([&](size_t g, size_t, size_t i) {
    r.rstd[g] += (x[i] - r.mean[g]) * (x[i] - r.mean[g]) / count;
  });
  for (double& rstd : r.rstd) {
    rstd = 1 / std::sqrt(rstd + kEps);
  }
  Values g_mean(groups), gu_mean(groups);
  each([&](size_t g, size_t channel, size_t i) {
    const double u = (x[i] - r.mean[g]) * r.rstd[g];
    r.y[i] = u * weight[channel] + bias[channel];
    r.dweight[channel] += dy[i] * u;
    r.dbias[channel] += dy[i];
    g_mean[g] += dy[i] * weight[channel] / count;
    gu_mean[g] += dy[i] * weight[channel] * u / count;
  });
  each([&](size_t g, size_t channel, size_t i) {
    const double u = (x[i] - r.mean[g]) * r.rstd[g];
    r.dx[i] = r.rstd[g] * (dy[i] * weight[channel] - g_mean[g] - u * gu_mean[g]);
  });
  return r;
}

void check_case(const Case& c) {
  Arrays t(c);
  const Reference r = reference(c, t);
  t.forward(c);
  expect_close(t.y, c.dtype, r.y, 16, c.name() + " y");
  expect_close(t.mean, c.compute(), r.mean, 16, c.name() + " mean", 1);
  expect_close(t.rstd, c.compute(), r.rstd, 16, c.name() + " rstd");
  t.backward(c);
  const double terms = std::sqrt(static_cast<double>(c.n * c.pixels()));
  const double scale = *std::max_element(r.rstd.begin(), r.rstd.end());
  expect_close(t.dx, c.dtype, r.dx, 24, c.name() + " dx", scale);
  expect_close(t.dweight, c.compute(), r.dweight, 16 + 2 * terms, c.name() + " dweight", 1);
  expect_close(t.dbias, c.compute(), r.dbias, 16 + 2 * terms, c.name() + " dbias", 1);
}

const ArrayLayout kRowMajor{"row-major", {}, 0}, kChannelsLast{"channels-last", {0, 2, 3, 1}, 0};

TEST(GroupNorm, NaNIsNotHidden) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout :
         {ArrayLayout{"row-major", {}, 0}, ArrayLayout{"last", {0, 2, 3, 1}, 0}}) {
      for (int64_t h : {1, 3, 20}) {
        const Case c{dtype, 2, 6, h, h, 2, layout};
        Arrays t(c);
        t.x.set({1, 2, h - 1, 0}, std::nan(""));
        t.forward(c);
        t.backward(c);
        const Values y = values_of(t.y), dx = values_of(t.dx), rstd = values_of(t.rstd);
        for (size_t group = 0; group < 4; ++group) {
          EXPECT_EQ(std::isnan(rstd[group]), group == 2) << c.name();
        }
        for (size_t i = 0; i < y.size(); ++i) {
          const size_t group = i / static_cast<size_t>(3 * h * h);
          ASSERT_EQ(std::isnan(y[i]), group == 2) << c.name();
          ASSERT_EQ(std::isnan(dx[i]), group == 2) << c.name();
        }
      }
    }
  }
}

TEST(GroupNorm, RstdBesideAMeanOfAMillion) {
  for (const ArrayLayout& layout :
       {ArrayLayout{"row-major", {}, 0}, ArrayLayout{"last", {0, 2, 3, 1}, 0}}) {
    for (int64_t h : {3, 20, 70}) {
      const Case c{DType::f32, 1, 6, h, h, 2, layout, false};
      Arrays t(c);
      assign(t.x, random_values(c.count(), 1, 1e6, 40));
      t.forward(c);
      const Reference r = reference(c, t);
      for (size_t group = 0; group < 2; ++group) {
        EXPECT_NEAR(values_of(t.rstd)[group], r.rstd[group], 1e-5 * r.rstd[group]) << c.name();
      }
    }
  }
}

TEST(GroupNorm, MatchesReferenceForAllLayoutsAndDTypes) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : {kRowMajor, kChannelsLast, ArrayLayout{"with a gap", {}, 3},
                                      ArrayLayout{"channels-last with a gap", {0, 2, 3, 1}, 2},
                                      ArrayLayout{"transposed", {3, 1, 0, 2}, 0}}) {
      for (int64_t groups : {1, 3, 12}) {
        check_case({dtype, 3, 12, 3, 4, groups, layout, groups != 3});
      }
    }
    check_case({dtype, 2, 6, 1, 1, 2, kRowMajor});
    check_case({dtype, 1, 1, 1, 5, 1, kRowMajor});
  }
}

// Covers sizes with and without vectors, planes and rows of several chunks, tiles of channels, and
// groups with more channels than a warp has lanes.
TEST(GroupNorm, MatchesReferenceForAllSizes) {
  for (DType dtype : {DType::f32, DType::f16}) {
    check_case({dtype, 2, 4, 16, 16, 2, kRowMajor});
    check_case({dtype, 2, 3, 17, 19, 3, kRowMajor});
    check_case({dtype, 1, 2, 70, 80, 1, kRowMajor});
    check_case({dtype, 2, 8, 37, 16, 4, kChannelsLast});
    check_case({dtype, 1, 5, 41, 30, 5, kChannelsLast});
    check_case({dtype, 2, 264, 2, 3, 4, kChannelsLast});
    check_case({dtype, 3, 300, 1, 3, 1, kChannelsLast});
    check_case({dtype, 40, 6, 2, 2, 3, kChannelsLast});
  }
}

// A mean of 1e3 leaves 13 bits for the deviations; the first element may be an outlier.
TEST(GroupNorm, VarianceFarFromZeroIsAccurate) {
  for (const ArrayLayout& layout : {kRowMajor, kChannelsLast}) {
    for (double first : {1e3, 0.0, -1e3}) {
      const Case c{DType::f32, 2, 4, 20, 20, 2, layout, false};
      Arrays t(c);
      Values values = random_values(c.count(), 1, 1e3, 1);
      values[0] = first;
      assign(t.x, values);
      t.forward(c);
      const Reference r = reference(c, t);
      for (size_t group = 0; group < 4; ++group) {
        EXPECT_NEAR(values_of(t.mean)[group], r.mean[group], 2e-4);
        EXPECT_NEAR(values_of(t.rstd)[group], r.rstd[group], 2e-4 * r.rstd[group]);
      }
    }
  }
}

TEST(GroupNorm, AMeanWhoseSquareOverflows) {
  for (const ArrayLayout& layout : {kRowMajor, kChannelsLast}) {
    const Case c{DType::f64, 2, 4, 20, 20, 2, layout, false};
    Arrays t(c);
    assign(t.x, Values(c.count(), 0x1p600));
    t.forward(c);
    for (size_t group = 0; group < 4; ++group) {
      EXPECT_EQ(values_of(t.mean)[group], 0x1p600);
      EXPECT_NEAR(values_of(t.rstd)[group], 1 / std::sqrt(kEps), 1e-9);
    }
  }
}

// Squares that exceed f32 are summed in double.
TEST(GroupNorm, SquaresMayExceedFloat) {
  for (const ArrayLayout& layout : {kRowMajor, kChannelsLast}) {
    for (const int64_t h : {1, 5, 150}) {
      Case c{DType::f32, 2, 6, h, h, 2, layout};
      c.affine = false;
      Arrays t(c);
      Values x = random_values(c.count(), 1, 0.5, 2);
      for (double& value : x) {
        value *= 1e25;
      }
      t.x = Arrays::image(c, x);
      const Reference r = reference(c, t);
      t.forward(c);
      expect_close(t.y, c.dtype, r.y, 32, c.name() + " y");
    }
  }
}

TEST(GroupNorm, UnwantedGradientsAndOutputsOverInputs) {
  for (const ArrayLayout& layout : {kRowMajor, kChannelsLast}) {
    const Case c{DType::f16, 2, 6, 17, 16, 3, layout};
    Arrays t(c), u(c);
    t.forward(c);
    t.backward(c);
    group_norm_backward({t.x.view(), u.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                         u.dy.view(), kNoView, kNoView});
    EXPECT_EQ(u.dy.bytes(), t.dx.bytes());
    group_norm_backward({t.x.view(), t.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                         kNoView, u.dweight.view(), kNoView});
    group_norm_backward({t.x.view(), t.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                         kNoView, kNoView, u.dbias.view()});
    EXPECT_EQ(u.dweight.bytes(), t.dweight.bytes());
    EXPECT_EQ(u.dbias.bytes(), t.dbias.bytes());
    group_norm_forward({u.x.view(), t.weight.view(), t.bias.view(), u.x.view(), u.mean.view(),
                        u.rstd.view(), kEps});
    EXPECT_EQ(u.x.bytes(), t.y.bytes());
  }
}

// A channel with weight 0 has slope 0 but still affects its group.
TEST(GroupNorm, WeightsMayBeZero) {
  for (const ArrayLayout& layout : {kRowMajor, kChannelsLast}) {
    const Case c{DType::f32, 2, 4, 5, 5, 2, layout};
    Arrays t(c);
    assign(t.weight, {0, 2, 0, 0});
    const Reference r = reference(c, t);
    t.forward(c);
    t.backward(c);
    expect_close(t.dx, c.dtype, r.dx, 24, "dx", 1);
    expect_close(t.y, c.dtype, r.y, 24, "y", 1);
  }
}

TEST(GroupNorm, EmptyBatch) {
  const Case c{DType::f32, 0, 6, 2, 2, 3};
  Arrays t(c);
  t.forward(c);
  t.backward(c);
  EXPECT_EQ(values_of(t.dweight), Values(6));
  EXPECT_EQ(values_of(t.dbias), Values(6));
}

TEST(GroupNorm, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    std::vector<std::byte> all;
    for (const ArrayLayout& layout : {kRowMajor, kChannelsLast}) {
      const Case c{DType::f32, 3, 70, 31, 19, 7, layout};
      Arrays t(c);
      t.forward(c);
      t.backward(c);
      for (const StridedArray* array : {&t.y, &t.mean, &t.rstd, &t.dx, &t.dweight, &t.dbias}) {
        append(all, *array);
      }
    }
    return all;
  });
}

TEST(GroupNorm, ErrorsNameTheProblem) {
  const Case c{DType::f16, 2, 6, 2, 2, 3};
  Arrays t(c);
  StridedArray four(DType::f32, {2, 4}), half(DType::f16, {6}), flat(DType::f16, {6});
  const auto run = [&](StridedArray& x, StridedArray& weight, StridedArray& mean) {
    return error_of([&] {
      group_norm_forward(
          {x.view(), weight.view(), kNoView, t.y.view(), mean.view(), t.rstd.view(), kEps});
    });
  };
  EXPECT_EQ(run(flat, t.weight, t.mean),
            "group_norm: got x f16 [6], expected a floating tensor [N, C, ...]");
  EXPECT_EQ(run(t.x, t.weight, four),
            "group_norm: got x [2, 6, 2, 2] and mean [2, 4], expected mean [N, groups] with groups "
            "that divide C");
  EXPECT_EQ(run(t.x, half, t.mean),
            "group_norm: got weight f16 [6], expected a contiguous f32 [6]");
}

TEST(GroupNorm, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::group_norm_test
