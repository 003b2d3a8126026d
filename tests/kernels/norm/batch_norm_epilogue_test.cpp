// Compares batch norm with a fused residual and relu with batch norm in f64 and plain loops.
#include <binade/kernels/norm/batch_norm.h>
#include <tests/kernels/support/array_values.h>

#include <limits>

namespace binade::kernels::batch_norm_epilogue_test {
namespace {

constexpr double kEps = 1e-3;

struct Case {
  DType dtype;
  Dims sizes;
  ArrayLayout layout;
  bool residual, relu;

  StridedArray array(DType type, const Values& values) const {
    return make_array(type, sizes, values, layout.order, layout.gap);
  }
  Values draw(uint32_t seed) const {
    return random_values(static_cast<size_t>(element_count(sizes)), seed);
  }
  StridedArray vector(DType type, uint32_t seed) const {
    Values values = random_values(static_cast<size_t>(sizes[1]), seed);
    for (double& v : values) {
      v = v * v + 0.25;
    }
    return make_array(type, {sizes[1]}, values);
  }
  DType compute() const { return compute_dtype(dtype); }
  std::string name() const {
    return text(to_string(dtype), " ", sizes, " ", layout.name, residual ? " residual" : "",
                relu ? " relu" : "");
  }
};

// Adds the residual to batch norm's output and applies relu.
Values finished(const Case& c, Values y, const StridedArray& residual) {
  const Values r = values_of(residual);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] += c.residual ? r[i] : 0;
    y[i] = c.relu && y[i] < 0 ? 0 : y[i];
  }
  return y;
}

// The same case in f64 without an epilogue.
struct Plain {
  StridedArray x, weight, bias, y, mean, rstd;
  Plain(const Case& c, const StridedArray& like, const StridedArray& w, const StridedArray& b)
      : x(make_array(DType::f64, c.sizes, values_of(like))),
        weight(make_array(DType::f64, {c.sizes[1]}, values_of(w))),
        bias(make_array(DType::f64, {c.sizes[1]}, values_of(b))),
        y(DType::f64, c.sizes),
        mean(DType::f64, {c.sizes[1]}),
        rstd(mean) {}
};

void check_forward(const Case& c) {
  StridedArray x = c.array(c.dtype, c.draw(1)), residual = c.array(c.dtype, c.draw(2));
  StridedArray weight = c.vector(c.compute(), 3), bias = c.vector(c.compute(), 4);
  StridedArray y = c.array(c.dtype, c.draw(5)), mean = c.vector(c.compute(), 6), rstd = mean;
  const View added = c.residual ? residual.view() : kNoView;
  Plain plain(c, x, weight, bias);
  batch_norm_forward({x.view(), weight.view(), bias.view(), y.view(), mean.view(), rstd.view(),
                      kEps, added, c.relu});
  batch_norm_forward({plain.x.view(), plain.weight.view(), plain.bias.view(), plain.y.view(),
                      plain.mean.view(), plain.rstd.view(), kEps});
  expect_close(y, c.dtype, finished(c, values_of(plain.y), residual), 24, c.name());

  batch_norm_inference({x.view(), weight.view(), bias.view(), bias.view(), weight.view(), y.view(),
                        kEps, added, c.relu});
  batch_norm_inference({plain.x.view(), plain.weight.view(), plain.bias.view(), plain.bias.view(),
                        plain.weight.view(), plain.y.view(), kEps});
  expect_close(y, c.dtype, finished(c, values_of(plain.y), residual), 24,
               c.name() + " in evaluation");
}

// dresidual must be the gradient before relu. The other gradients must be batch norm's gradients
// for it, whether dresidual is wanted or not.
void check_backward(const Case& c) {
  StridedArray x = c.array(c.dtype, c.draw(1)), dy = c.array(c.dtype, c.draw(2)),
               y = c.array(c.dtype, c.draw(3));
  StridedArray weight = c.vector(c.compute(), 4), mean = c.vector(c.compute(), 5),
               rstd = c.vector(c.compute(), 6);
  Values gated = values_of(dy);
  const Values gate = values_of(y);
  for (size_t i = 0; i < gated.size(); ++i) {
    gated[i] = gate[i] > 0 ? gated[i] : 0;
  }
  StridedArray through = c.array(c.dtype, gated);
  StridedArray dx = x, dw = mean, db = mean, expected_dx = x, expected_dw = mean,
               expected_db = mean;
  batch_norm_backward({x.view(), through.view(), weight.view(), mean.view(), rstd.view(),
                       expected_dx.view(), expected_dw.view(), expected_db.view()});
  for (bool wanted : {false, true}) {
    StridedArray dresidual = dy;
    batch_norm_backward({x.view(), dy.view(), weight.view(), mean.view(), rstd.view(), dx.view(),
                         dw.view(), db.view(), y.view(), wanted ? dresidual.view() : kNoView});
    const std::string name = c.name() + (wanted ? " with dresidual" : " without dresidual");
    EXPECT_EQ(dx.bytes(), expected_dx.bytes()) << name;
    EXPECT_EQ(dw.bytes(), expected_dw.bytes()) << name;
    EXPECT_EQ(db.bytes(), expected_db.bytes()) << name;
    if (wanted) {
      EXPECT_EQ(values_of(dresidual), gated) << name;
    }
  }
}

TEST(BatchNormEpilogue, ForwardMatchesPlainLoops) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : image_layouts()) {
      for (int64_t channels : {1, 37}) {
        check_forward({dtype, {4, channels, 5, 3}, layout, true, true});
        check_forward({dtype, {4, channels, 5, 3}, layout, true, false});
        check_forward({dtype, {4, channels, 5, 3}, layout, false, true});
      }
    }
    check_forward({dtype, {300, 70}, {"row-major", {}, 0}, true, true});
  }
}

TEST(BatchNormEpilogue, BackwardIsThatOfWhatReluLetsThrough) {
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : image_layouts()) {
      for (int64_t channels : {1, 37}) {
        check_backward({dtype, {4, channels, 5, 3}, layout, true, true});
      }
    }
    check_backward({dtype, {300, 70}, {"row-major", {}, 0}, true, true});
  }
}

TEST(BatchNormEpilogue, KeepsNaN) {
  const Case c{DType::f32, {2, 3, 2, 2}, {"channels-last", {0, 2, 3, 1}, 0}, true, true};
  Values values = c.draw(1);
  values[5] = std::numeric_limits<double>::quiet_NaN();
  StridedArray x = c.array(c.dtype, c.draw(2)), residual = c.array(c.dtype, values),
               vector = c.vector(c.dtype, 3);
  StridedArray y = x;
  batch_norm_inference({x.view(), vector.view(), vector.view(), vector.view(), vector.view(),
                        y.view(), kEps, residual.view(), true});
  EXPECT_TRUE(std::isnan(values_of(y)[5]));
}

TEST(BatchNormEpilogue, ErrorsNameTheProblem) {
  const Case c{DType::f32, {2, 3, 2, 2}, {"row-major", {}, 0}, true, true};
  StridedArray x = c.array(c.dtype, c.draw(1)), vector = c.vector(c.dtype, 2),
               other(DType::f32, {2, 3, 2, 1});
  StridedArray y = x;
  const View v = vector.view();
  EXPECT_EQ(error_of([&] {
              batch_norm_inference({x.view(), v, v, v, v, y.view(), kEps, other.view(), true});
            }),
            "batch_norm: got residual f32 [2, 3, 2, 1], expected f32 [2, 3, 2, 2] like x");
  EXPECT_EQ(error_of([&] {
              batch_norm_backward(
                  {x.view(), x.view(), v, v, v, y.view(), kNoView, kNoView, kNoView, y.view()});
            }),
            "batch_norm backward: got dresidual without y, expected both: without relu it is dy");
}

TEST(BatchNormEpilogue, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::batch_norm_epilogue_test
