// Layer norm and RMS norm (without a mean) against naive f64 references.
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/norm/norm_provider.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::layer_norm_test {
namespace {

constexpr double kEps = 1e-5;

struct Case {
  DType dtype;
  int64_t rows, cols;
  ArrayLayout layout;
  bool affine;
  bool centred = true;  // false: RMS norm

  DType compute() const { return compute_dtype(dtype); }
  size_t count() const { return static_cast<size_t>(rows * cols); }
  std::string name() const {
    return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "] " + layout.name +
           (affine ? " affine" : "") + (centred ? "" : " without a mean");
  }
};

// All arrays of one case, with random inputs.
struct Arrays {
  StridedArray x, y, dy, dx, weight, bias, dweight, dbias, mean, rstd;

  explicit Arrays(const Case& c)
      : x(matrix(c, random_values(c.count(), 1, 0.5, 2))),
        y(c.dtype, {c.rows, c.cols}, c.layout.order, c.layout.gap),
        dy(matrix(c, random_values(c.count(), 2))),
        dx(y),
        weight(make_array(c.compute(), {c.cols}, random_values(static_cast<size_t>(c.cols), 3, 1))),
        bias(make_array(c.compute(), {c.cols}, random_values(static_cast<size_t>(c.cols), 4))),
        dweight(c.compute(), {c.cols}),
        dbias(c.compute(), {c.cols}),
        mean(c.compute(), {c.rows}),
        rstd(c.compute(), {c.rows}) {}
  static StridedArray matrix(const Case& c, const Values& values) {
    return make_array(c.dtype, {c.rows, c.cols}, values, c.layout.order, c.layout.gap);
  }
  void forward(const Case& c) {
    layer_norm_forward({x.view(), c.affine ? weight.view() : kNoView,
                        c.affine && c.centred ? bias.view() : kNoView, y.view(),
                        c.centred ? mean.view() : kNoView, rstd.view(), kEps});
  }
  void backward(const Case& c) {
    layer_norm_backward({x.view(), dy.view(), c.affine ? weight.view() : kNoView,
                         c.centred ? mean.view() : kNoView, rstd.view(), dx.view(), dweight.view(),
                         c.centred ? dbias.view() : kNoView});
  }
};

struct Reference {
  Values y, mean, rstd, dx, dweight, dbias;
};

Reference reference(const Case& c, const Arrays& t) {
  const size_t rows = static_cast<size_t>(c.rows), cols = static_cast<size_t>(c.cols);
  const Values x = values_of(t.x), dy = values_of(t.dy);
  const Values weight = c.affine ? values_of(t.weight) : Values(cols, 1);
  const Values bias = c.affine && c.centred ? values_of(t.bias) : Values(cols, 0);
  const double n = static_cast<double>(cols);
  Reference r{Values(x.size()), Values(rows), Values(rows),
              Values(x.size()), Values(cols), Values(cols)};
  for (size_t row = 0; row < rows; ++row) {
    const double* xs = x.data() + row * cols;
    long double sum = 0, squares = 0, g_sum = 0, gu_sum = 0;
    for (size_t i = 0; i < cols; ++i) {
      sum += c.centred ? xs[i] : 0;
    }
    const double mean = r.mean[row] = static_cast<double>(sum / n);
    for (size_t i = 0; i < cols; ++i) {
      squares += (xs[i] - mean) * (xs[i] - mean);
    }
    const double rstd = r.rstd[row] = 1 / std::sqrt(static_cast<double>(squares) / n + kEps);
    for (size_t i = 0; i < cols; ++i) {
      const double u = (xs[i] - mean) * rstd, d = dy[row * cols + i];
      r.y[row * cols + i] = u * weight[i] + bias[i];
      r.dweight[i] += d * u;
      r.dbias[i] += d;
      g_sum += c.centred ? d * weight[i] : 0;
      gu_sum += d * weight[i] * u;
    }
    for (size_t i = 0; i < cols; ++i) {
      const double u = (xs[i] - mean) * rstd, g = dy[row * cols + i] * weight[i];
      r.dx[row * cols + i] =
          rstd * (g - static_cast<double>(g_sum) / n - u * static_cast<double>(gu_sum) / n);
    }
  }
  return r;
}

void check_case(const Case& c) {
  Arrays t(c);
  const Reference r = reference(c, t);
  const double units = 8 + std::sqrt(static_cast<double>(c.cols)) / 4;
  t.forward(c);
  expect_close(t.y, c.dtype, r.y, units, c.name() + " y");
  if (c.centred) {
    expect_close(t.mean, c.compute(), r.mean, units, c.name() + " mean", 1);
  }
  expect_close(t.rstd, c.compute(), r.rstd, units, c.name() + " rstd");
  t.backward(c);
  const double sum_units = units + 2 * std::sqrt(static_cast<double>(c.rows));
  // With one column dx is 0, but terms of size rstd leave a rounding error.
  const double scale = *std::max_element(r.rstd.begin(), r.rstd.end());
  expect_close(t.dx, c.dtype, r.dx, units, c.name() + " dx", scale);
  expect_close(t.dweight, c.compute(), r.dweight, sum_units, c.name() + " dweight", 1);
  if (c.centred) {
    expect_close(t.dbias, c.compute(), r.dbias, sum_units, c.name() + " dbias", 1);
  }
}

const ArrayLayout kRowMajor{"row-major", {}, 0};

TEST(LayerNorm, MatchesReferenceForAllLayoutsAndDTypes) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout :
         {kRowMajor, ArrayLayout{"with a gap", {}, 3}, ArrayLayout{"transposed", {1, 0}, 2}}) {
      for (int64_t cols : {1, 2, 24, 37}) {
        for (bool affine : {false, true}) {
          check_case({dtype, 5, cols, layout, affine});
        }
        check_case({dtype, 5, cols, layout, true, false});
      }
    }
  }
}

// Covers sizes where a device changes from part of a warp to whole warps to blocks, and from one
// read to two.
TEST(LayerNorm, MatchesReferenceForAllSizes) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t cols : {8, 9, 31, 255, 256, 257, 768, 2049, 4097}) {
      check_case({dtype, 3, cols, kRowMajor, true});
      check_case({dtype, 3, cols, kRowMajor, true, false});
    }
    check_case({dtype, 1, 64, kRowMajor, true});
    check_case({dtype, 257, 16, kRowMajor, true});
    check_case({dtype, 600, 3, kRowMajor, true});
    check_case({dtype, 67, 520, kRowMajor, true});
  }
  check_case({DType::f16, 67, 4104, kRowMajor, false});  // two chunks of rows
  check_case({DType::f16, 2, 8193, kRowMajor, true});
  check_case({DType::f16, 2, 8193, kRowMajor, true, false});
}

TEST(LayerNorm, ManyRows) {
  check_case({DType::f32, test_device().is_cpu() ? 20000 : 2500, 20, kRowMajor, true});
  check_case({DType::f16, 1100, 130, kRowMajor, true});
}

// A mean of 1e4 leaves 10 bits for the deviations.
TEST(LayerNorm, VarianceFarFromZeroIsAccurate) {
  for (int64_t cols : {300, 9000}) {
    for (double first : {1e4, 0.0, -1e4}) {  // the first element may be an outlier
      const Case c{DType::f32, 2, cols, kRowMajor, false};
      Arrays t(c);
      Values values = random_values(c.count(), 1, 1e4, 1);
      values[0] = values[static_cast<size_t>(cols)] = first;
      assign(t.x, values);
      t.forward(c);
      const Reference r = reference(c, t);
      for (size_t row = 0; row < 2; ++row) {
        EXPECT_NEAR(values_of(t.mean)[row], r.mean[row], 2e-3);
        EXPECT_NEAR(values_of(t.rstd)[row], r.rstd[row], 2e-4 * r.rstd[row]);
      }
    }
  }
}

// A mean of 1e6 leaves 4 bits for the deviations.
TEST(LayerNorm, RstdBesideAMeanOfAMillion) {
  for (int64_t cols : {37, 300, 2500, 9000}) {
    for (double first : {1e6, 1e6 + 1000}) {
      const Case c{DType::f32, 2, cols, kRowMajor, false};
      Arrays t(c);
      Values values = random_values(c.count(), 1, 1e6, 40);
      values[0] = values[static_cast<size_t>(cols)] = first;
      assign(t.x, values);
      t.forward(c);
      const Reference r = reference(c, t);
      for (size_t row = 0; row < 2; ++row) {
        EXPECT_NEAR(values_of(t.rstd)[row], r.rstd[row], 1e-5 * r.rstd[row]) << cols;
      }
      expect_close(t.y, c.dtype, r.y, 100, c.name() + " y");
    }
  }
}

// Rows whose squares, or even sums, overflow the dtype give the results of the same rows scaled by
// a power of two.
TEST(LayerNorm, RowsOfHugeElementsAreScaled) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const bool centred : {true, false}) {
      for (const int64_t cols : {7, 130, 1025, 4100, 9001}) {
        const Case c{dtype, 5, cols, kRowMajor, true, centred};
        Arrays plain(c), huge(c);
        const auto factor = [&](size_t i) {  // every other row is huge
          return i / static_cast<size_t>(cols) % 2 == 1
                     ? std::ldexp(1, dtype == DType::f64 ? 1013 : 115)
                     : 1;
        };
        Values x = values_of(plain.x);
        for (double& value : x) {
          value *= 8;  // eps becomes small compared with the variance
        }
        assign(plain.x, x);
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] *= factor(i);
        }
        assign(huge.x, x);
        for (Arrays* t : {&plain, &huge}) {
          t->forward(c);
          t->backward(c);
        }
        const Values y = values_of(plain.y), dx = values_of(plain.dx), y_huge = values_of(huge.y),
                     dx_huge = values_of(huge.dx);
        for (size_t i = 0; i < x.size(); ++i) {
          const double tolerance = 1e-4 + 8 * epsilon(dtype);
          ASSERT_NEAR(y_huge[i], y[i], tolerance * (1 + std::fabs(y[i]))) << c.name() << " " << i;
          ASSERT_NEAR(dx_huge[i] * factor(i), dx[i], 10 * tolerance) << c.name() << " " << i;
        }
        const Values mean = values_of(plain.mean), mean_huge = values_of(huge.mean);
        for (size_t row = 0; centred && row < mean.size(); ++row) {
          ASSERT_NEAR(mean_huge[row] / factor(row * static_cast<size_t>(cols)), mean[row], 1e-4)
              << c.name() << " row " << row;
        }
      }
    }
  }
}

// A NaN makes all of its row NaN, and no other row.
TEST(LayerNorm, NaNIsNotHidden) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t cols : {3, 40, 300, 2500, 9000}) {
      for (bool centred : {true, false}) {
        const Case c{dtype, 3, cols, kRowMajor, true, centred};
        Arrays t(c);
        t.x.set({1, cols * 2 / 3}, std::nan(""));
        t.forward(c);
        t.backward(c);
        for (int64_t row = 0; row < 3; ++row) {
          EXPECT_EQ(std::isnan(t.rstd.get({row})), row == 1) << c.name();
          for (int64_t i = 0; i < cols; ++i) {
            ASSERT_EQ(std::isnan(t.y.get({row, i})), row == 1) << c.name() << " column " << i;
            ASSERT_EQ(std::isnan(t.dx.get({row, i})), row == 1) << c.name() << " column " << i;
          }
        }
      }
    }
  }
}

TEST(LayerNorm, MemoryMayBeginAnywhere) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t cols : {16, 4112}) {
      const Case c{dtype, 2, cols, kRowMajor, true};
      Arrays t(c);
      t.forward(c);
      t.backward(c);
      Values x = values_of(t.x), dy = values_of(t.dy);
      x.insert(x.begin(), 0);
      dy.insert(dy.begin(), 0);
      const Dims flat{2 * cols + 1};
      StridedArray xs = make_array(dtype, flat, x), dys = make_array(dtype, flat, dy);
      StridedArray ys = make_array(dtype, flat, Values(x.size())), dxs = ys;
      const auto shifted = [&](StridedArray& array) {
        View view = array.view();
        return test_view(view.data + size_of(dtype), dtype, {2, cols});
      };
      Arrays u(c);
      layer_norm_forward({shifted(xs), t.weight.view(), t.bias.view(), shifted(ys), u.mean.view(),
                          u.rstd.view(), kEps});
      layer_norm_backward({shifted(xs), shifted(dys), t.weight.view(), u.mean.view(), u.rstd.view(),
                           shifted(dxs), u.dweight.view(), u.dbias.view()});
      for (auto [whole, part] : {std::pair(&ys, &t.y), std::pair(&dxs, &t.dx)}) {
        Values expected = values_of(*part);
        expected.insert(expected.begin(), 0);
        expect_close(*whole, dtype, expected, 16, "shifted");
      }
      expect_close(u.dweight, c.compute(), values_of(t.dweight), 16, "shifted dweight");
    }
  }
}

// Compares bits, so it uses our kernels: a library has other bits.
TEST(LayerNorm, UnwantedGradientsAndOutputsOverInputs) {
  const std::string before(norm_provider());
  set_norm_provider("own");
  for (int64_t cols : {40, 4100}) {
    const Case c{DType::f16, 3, cols, kRowMajor, true};
    Arrays t(c), u(c);
    t.forward(c);
    t.backward(c);
    layer_norm_backward({t.x.view(), u.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                         u.dy.view(), kNoView, kNoView});
    EXPECT_EQ(u.dy.bytes(), t.dx.bytes());
    layer_norm_backward({t.x.view(), t.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                         kNoView, u.dweight.view(), kNoView});
    layer_norm_backward({t.x.view(), t.dy.view(), t.weight.view(), t.mean.view(), t.rstd.view(),
                         kNoView, kNoView, u.dbias.view()});
    EXPECT_EQ(u.dweight.bytes(), t.dweight.bytes());
    EXPECT_EQ(u.dbias.bytes(), t.dbias.bytes());
    layer_norm_forward({u.x.view(), t.weight.view(), t.bias.view(), u.x.view(), u.mean.view(),
                        u.rstd.view(), kEps});
    EXPECT_EQ(u.x.bytes(), t.y.bytes());
  }
  set_norm_provider(before);
}

TEST(LayerNorm, EmptyBatch) {
  const Case c{DType::f32, 0, 5, kRowMajor, true};
  Arrays t(c);
  t.forward(c);
  t.backward(c);
  EXPECT_EQ(values_of(t.dweight), Values(5));
  EXPECT_EQ(values_of(t.dbias), Values(5));
}

TEST(LayerNorm, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    const Case c{DType::f32, 301, 203, kRowMajor, true};
    Arrays t(c);
    t.forward(c);
    t.backward(c);
    std::vector<std::byte> all;
    for (const StridedArray* array : {&t.y, &t.mean, &t.rstd, &t.dx, &t.dweight, &t.dbias}) {
      append(all, *array);
    }
    return all;
  });
}

TEST(LayerNorm, ErrorsNameTheProblem) {
  const Case c{DType::f16, 2, 3, kRowMajor, true};
  Arrays t(c);
  StridedArray five(DType::f32, {5}), flat(DType::f16, {4}), half(DType::f16, {3});
  const auto run = [&](StridedArray& x, StridedArray& weight) {
    return error_of([&] {
      layer_norm_forward(
          {x.view(), weight.view(), kNoView, t.y.view(), t.mean.view(), t.rstd.view(), kEps});
    });
  };
  EXPECT_EQ(run(flat, t.weight), "layer_norm: got x f16 [4], expected floating [rows, cols]");
  EXPECT_EQ(run(t.x, five),
            "layer_norm: got weight f32 [5], expected a contiguous f32 [3], one per column");
  EXPECT_EQ(run(t.x, half),
            "layer_norm: got weight f16 [3], expected a contiguous f32 [3], one per column");
  EXPECT_EQ(error_of([&] {
              layer_norm_forward(
                  {t.x.view(), kNoView, t.bias.view(), t.y.view(), kNoView, t.rstd.view(), kEps});
            }),
            "layer_norm: got a bias without a mean, expected none: RMS norm has no bias");
  StridedArray wide(DType::f16, {2, 4});
  EXPECT_EQ(run(wide, five), "layer_norm: got y f16 [2, 3], expected f16 [2, 4] like x");
}

TEST(LayerNorm, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::layer_norm_test
