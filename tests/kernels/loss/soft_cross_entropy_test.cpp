// Compares cross entropy with probability targets with a naive f64 reference.
#include <binade/kernels/loss/soft_cross_entropy.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::soft_cross_entropy_test {
namespace {

struct Case {
  DType dtype;
  int64_t rows, classes;
  bool weighted;
  double smoothing;
  ArrayLayout layout;
  double mean = 0;
};

void check_case(const Case& c) {
  const DType compute = compute_dtype(c.dtype);
  const Dims sizes{c.rows, c.classes};
  const auto classes = static_cast<size_t>(c.classes), rows = static_cast<size_t>(c.rows);
  const size_t count = rows * classes;
  Values shares = random_values(count, 2);
  for (double& share : shares) {
    share = std::abs(share) / static_cast<double>(classes);
  }
  StridedArray z =
      make_array(c.dtype, sizes, random_values(count, 1, c.mean, 2), c.layout.order, c.layout.gap);
  StridedArray t = make_array(c.dtype, sizes, shares);
  StridedArray w = make_array(compute, {c.classes}, random_values(classes, 3, 1, 0.2));
  StridedArray loss(compute, {c.rows}),
      scale = make_array(compute, {c.rows}, random_values(rows, 4));
  StridedArray dz(c.dtype, sizes, c.layout.order, c.layout.gap);
  const View weight = c.weighted ? w.view() : kNoView;
  soft_cross_entropy_forward({.logits = z.view(),
                              .target = t.view(),
                              .weight = weight,
                              .row_loss = loss.view(),
                              .label_smoothing = c.smoothing});
  soft_cross_entropy_backward({.logits = z.view(),
                               .target = t.view(),
                               .weight = weight,
                               .row_scale = scale.view(),
                               .dlogits = dz.view(),
                               .label_smoothing = c.smoothing});
  const Values zs = values_of(z), ts = values_of(t), ws = values_of(w), scales = values_of(scale);
  Values want_loss, want_dz;
  for (size_t r = 0; r < rows; ++r) {
    const double* x = zs.data() + r * classes;
    const double top = *std::max_element(x, x + classes);
    double sum = 0, share = 0, value = 0;
    for (size_t i = 0; i < classes; ++i) {
      sum += std::exp(x[i] - top);
    }
    Values q;
    for (size_t i = 0; i < classes; ++i) {
      q.push_back((c.weighted ? ws[i] : 1) * ((1 - c.smoothing) * ts[r * classes + i] +
                                              c.smoothing / static_cast<double>(classes)));
      share += q[i];
      value += q[i] * (top - x[i] + std::log(sum));
    }
    want_loss.push_back(value);
    for (size_t i = 0; i < classes; ++i) {
      want_dz.push_back(scales[r] * (std::exp(x[i] - top) / sum * share - q[i]));
    }
  }
  const std::string what = to_string(sizes) + " " + c.layout.name +
                           (c.weighted ? " weighted" : "") + " smoothing " +
                           std::to_string(c.smoothing);
  const double units = 8 + std::sqrt(static_cast<double>(classes)) / 4;
  expect_close(loss, compute, want_loss, units, what);
  expect_close(dz, c.dtype, want_dz, units, what + " gradient", 1);
}

TEST(SoftCrossEntropy, MatchesReference) {
  const std::vector<ArrayLayout> layouts{
      {"row-major", {}, 0}, {"with a gap", {}, 3}, {"transposed", {1, 0}, 2}};
  for (const DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : layouts) {
      for (const int64_t classes : {1, 10, 33, 130}) {
        check_case({dtype, 11, classes, false, 0, layout});
        check_case({dtype, 11, classes, true, 0.1, layout});
      }
    }
  }
}

// Covers sizes where a device changes from part of a warp to whole warps to blocks.
TEST(SoftCrossEntropy, MatchesReferenceAroundTeamSizes) {
  for (const DType dtype : floating_dtypes()) {
    for (const int64_t classes : {8, 31, 257, 1000, 8193}) {
      check_case({dtype, 2, classes, classes == 257, 0, {"row-major", {}, 0}});
    }
    check_case({dtype, 2, 8200, true, 0.1, {"with a gap", {}, 3}});
  }
}

TEST(SoftCrossEntropy, LargeLogitsKeepTheirDigits) {
  check_case({DType::f32, 7, 50, true, 0.1, {"row-major", {}, 0}, 1e4});
  check_case({DType::f32, 7, 50, true, 0.1, {"row-major", {}, 0}, -1e4});
}

TEST(SoftCrossEntropy, Empty) {
  check_case({DType::f32, 0, 5, false, 0, {"row-major", {}, 0}});
  StridedArray none(DType::f32, {2, 0}), loss = make_array(DType::f32, {2}, {1, 1});
  soft_cross_entropy_forward(
      {.logits = none.view(), .target = none.view(), .weight = kNoView, .row_loss = loss.view()});
  EXPECT_EQ(values_of(loss), (Values{0, 0}));
}

TEST(SoftCrossEntropy, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    StridedArray z = make_array(DType::f32, {501, 103}, random_values(501 * 103, 1));
    StridedArray loss(DType::f32, {501});
    soft_cross_entropy_forward(
        {.logits = z.view(), .target = z.view(), .weight = kNoView, .row_loss = loss.view()});
    std::vector<std::byte> all;
    append(all, loss);
    return all;
  });
}

TEST(SoftCrossEntropy, ErrorsNameTheProblem) {
  StridedArray z(DType::f32, {2, 3}), t(DType::f32, {2, 4}), loss(DType::f32, {2});
  const auto run = [&](StridedArray& target, double smoothing) {
    return error_of([&] {
      soft_cross_entropy_forward({.logits = z.view(),
                                  .target = target.view(),
                                  .weight = kNoView,
                                  .row_loss = loss.view(),
                                  .label_smoothing = smoothing});
    });
  };
  EXPECT_EQ(run(t, 0), "cross_entropy: got target f32 [2, 4], expected probabilities f32 [2, 3]");
  EXPECT_EQ(run(z, 2), "cross_entropy: got label_smoothing 2, expected 0 to 1");
}

TEST(SoftCrossEntropy, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::soft_cross_entropy_test
