// Cross entropy against naive f64 references.
#include <binade/kernels/loss/cross_entropy.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::cross_entropy_test {
namespace {

struct Case {
  DType dtype;
  int64_t rows, classes;
  bool weighted;
  double smoothing;
  ArrayLayout layout;
  double mean = 0;

  DType compute() const { return compute_dtype(dtype); }
};

struct Results {
  StridedArray logits, weight, loss, row_weight, lse, scale, dlogits;
  StridedArray fused_loss, fused_row_weight, fused_lse, fused_dlogits;  // dlogits over the logits
  std::vector<int64_t> target;
};

Results run_case(const Case& c) {
  const size_t count = static_cast<size_t>(c.rows * c.classes);
  const Dims sizes{c.rows, c.classes}, rows{c.rows};
  Results run{
      make_array(c.dtype, sizes, random_values(count, 1, c.mean, 2), c.layout.order, c.layout.gap),
      make_array(c.compute(), {c.classes},
                 random_values(static_cast<size_t>(c.classes), 2, 1, 0.2)),
      StridedArray(c.compute(), rows),
      StridedArray(c.compute(), rows),
      StridedArray(c.compute(), rows),
      make_array(c.compute(), rows, random_values(static_cast<size_t>(c.rows), 3)),
      StridedArray(c.dtype, sizes, c.layout.order, c.layout.gap),
      StridedArray(c.compute(), rows),
      StridedArray(c.compute(), rows),
      StridedArray(c.compute(), rows),
      StridedArray(c.dtype, sizes),
      {}};
  run.fused_dlogits = run.logits;
  for (int64_t row = 0; row < c.rows; ++row) {
    run.target.push_back(row % 5 == 3 ? -100 : row * 7 % c.classes);
  }
  TestValues<int64_t> targets(run.target);
  const View target = targets.view(DType::i64, rows);
  const View weight = c.weighted ? run.weight.view() : kNoView;
  const View logits = run.logits.view(), lse = run.lse.view();
  cross_entropy_forward({.logits = logits,
                         .target = target,
                         .weight = weight,
                         .row_loss = run.loss.view(),
                         .row_weight = run.row_weight.view(),
                         .lse = lse,
                         .label_smoothing = c.smoothing});
  cross_entropy_backward({.logits = logits,
                          .target = target,
                          .weight = weight,
                          .lse = lse,
                          .row_scale = run.scale.view(),
                          .dlogits = run.dlogits.view(),
                          .label_smoothing = c.smoothing});
  const View in_place = run.fused_dlogits.view();
  cross_entropy_forward_backward({.logits = in_place,
                                  .target = target,
                                  .weight = weight,
                                  .row_scale = run.scale.view(),
                                  .row_loss = run.fused_loss.view(),
                                  .row_weight = run.fused_row_weight.view(),
                                  .lse = run.fused_lse.view(),
                                  .dlogits = in_place,
                                  .label_smoothing = c.smoothing});
  return run;
}

struct Reference {
  Values loss, row_weight, lse, dlogits;
};

Reference reference(const Case& c, const Results& run) {
  const Values x = values_of(run.logits), scale = values_of(run.scale);
  Values w = values_of(run.weight);
  if (!c.weighted) {
    w.assign(w.size(), 1);
  }
  const size_t classes = w.size();
  Reference out;
  for (size_t row = 0; row < run.target.size(); ++row) {
    const double* logits = x.data() + row * classes;
    const double largest = *std::max_element(logits, logits + classes);
    double sum = 0, smooth = 0, total_weight = 0;
    for (size_t i = 0; i < classes; ++i) {
      sum += std::exp(logits[i] - largest);
    }
    const double lse = largest + std::log(sum), s = c.smoothing, n = static_cast<double>(classes);
    for (size_t i = 0; i < classes; ++i) {
      smooth += w[i] * (largest - logits[i] + std::log(sum));
      total_weight += w[i];
    }
    const bool ignored = run.target[row] < 0;
    const size_t t = ignored ? 0 : static_cast<size_t>(run.target[row]);
    const double wt = ignored ? 0 : w[t];
    out.lse.push_back(lse);
    out.row_weight.push_back(wt);
    out.loss.push_back(
        ignored ? 0 : (1 - s) * wt * (largest - logits[t] + std::log(sum)) + s / n * smooth);
    for (size_t i = 0; i < classes; ++i) {
      const double p = std::exp(logits[i] - largest) / sum;
      const double d =
          p * ((1 - s) * wt + s / n * total_weight) - (i == t ? (1 - s) * wt : 0) - s / n * w[i];
      out.dlogits.push_back(ignored ? 0 : d * scale[row]);
    }
  }
  return out;
}

void check_case(const Case& c) {
  const std::string what = "[" + std::to_string(c.rows) + ", " + std::to_string(c.classes) + "] " +
                           c.layout.name + (c.weighted ? " weighted" : "") + " smoothing " +
                           std::to_string(c.smoothing);
  const Results run = run_case(c);
  const Reference expected = reference(c, run);
  const double units = 8 + std::sqrt(static_cast<double>(c.classes)) / 4;
  expect_close(run.loss, c.compute(), expected.loss, units, what + " loss");
  expect_close(run.row_weight, c.compute(), expected.row_weight, 0, what + " weight");
  expect_close(run.lse, c.compute(), expected.lse, units, what + " lse");
  expect_close(run.dlogits, c.dtype, expected.dlogits, units, what + " dlogits", 1);
  EXPECT_EQ(run.fused_loss.bytes(), run.loss.bytes()) << what;
  EXPECT_EQ(run.fused_row_weight.bytes(), run.row_weight.bytes()) << what;
  EXPECT_EQ(run.fused_lse.bytes(), run.lse.bytes()) << what;
  expect_close(run.fused_dlogits, c.dtype, expected.dlogits, units, what + " fused dlogits", 1);
}

TEST(CrossEntropy, MatchesReference) {
  const std::vector<ArrayLayout> layouts{
      {"row-major", {}, 0}, {"with a gap", {}, 3}, {"transposed", {1, 0}, 2}};
  for (DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : layouts) {
      for (int64_t classes : {1, 10, 33, 130}) {
        for (bool weighted : {false, true}) {
          for (double smoothing : {0.0, 0.1, 1.0}) {
            check_case({dtype, 11, classes, weighted, smoothing, layout});
          }
        }
      }
    }
  }
}

// Covers sizes where a device changes from part of a warp to whole warps to blocks.
TEST(CrossEntropy, MatchesReferenceAroundTeamSizes) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t classes : {8, 31, 255, 256, 257, 1000, 8192, 8193}) {
      check_case({dtype, 3, classes, classes == 257, 0, {"row-major", {}, 0}});
    }
    check_case({dtype, 2, 8200, true, 0.1, {"row-major", {}, 0}});
    check_case({dtype, 2, 8200, false, 0.1, {"with a gap", {}, 3}});
    check_case({dtype, 300, 10, false, 0, {"row-major", {}, 0}});
  }
  if (!test_device().is_cpu()) {
    check_case({DType::f16, 1, 50257, false, 0, {"row-major", {}, 0}});
  }
}

// The ignored index may be a class. For an invalid target a device writes NaN and the CPU throws.
TEST(CrossEntropy, IgnoredClassAndTargetsThatAreNoClass) {
  for (int64_t classes : {3, 9000}) {
    const size_t count = static_cast<size_t>(3 * classes);
    StridedArray logits = make_array(DType::f32, {3, classes}, random_values(count, 1));
    StridedArray scale = make_array(DType::f32, {3}, {1, 1, 1}), loss = scale, weight = scale,
                 lse = scale, dlogits = logits;
    TestValues<int64_t> target{1, 0, test_device().is_cpu() ? 0 : classes};
    cross_entropy_forward_backward({.logits = logits.view(),
                                    .target = target.view(DType::i64, {3}),
                                    .weight = kNoView,
                                    .row_scale = scale.view(),
                                    .row_loss = loss.view(),
                                    .row_weight = weight.view(),
                                    .lse = lse.view(),
                                    .dlogits = dlogits.view(),
                                    .ignore_index = 1});
    EXPECT_EQ(values_of(loss)[0], 0);
    EXPECT_EQ(values_of(weight)[0], 0);
    EXPECT_EQ(dlogits.get({0, 1}), 0);
    EXPECT_GT(values_of(loss)[1], 0);
    EXPECT_LT(dlogits.get({1, 0}), 0);
    if (!test_device().is_cpu()) {
      EXPECT_TRUE(std::isnan(values_of(loss)[2]));
      EXPECT_TRUE(std::isnan(dlogits.get({2, 2})));
    }
  }
}

TEST(CrossEntropy, LargeLogitsKeepTheirDigits) {
  for (double mean : {1e4, -1e4}) {
    const Case c{DType::f32, 7, 50, true, 0.1, {"row-major", {}, 0}, mean};
    const Results run = run_case(c);
    const Reference expected = reference(c, run);
    expect_close(run.loss, c.dtype, expected.loss, 16, "loss");
    expect_close(run.dlogits, c.dtype, expected.dlogits, 16, "dlogits");
  }
}

TEST(CrossEntropy, GradientIsTheSlopeOfTheLoss) {
  Case c{DType::f64, 4, 6, true, 0.2, {"row-major", {}, 0}};
  const Results run = run_case(c);
  const Values scale = values_of(run.scale), gradient = values_of(run.dlogits);
  const double step = 1e-6;
  for (size_t i = 0; i < gradient.size(); ++i) {
    double loss[2];
    for (int side = 0; side < 2; ++side) {
      Results moved = run;
      Values x = values_of(run.logits);
      x[i] += side ? step : -step;
      assign(moved.logits, x);
      loss[side] = reference(c, moved).loss[i / 6] * scale[i / 6];
    }
    EXPECT_NEAR(gradient[i], (loss[1] - loss[0]) / (2 * step), 1e-8);
  }
}

TEST(CrossEntropy, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    const Results run = run_case({DType::f32, 501, 103, true, 0.1, {"row-major", {}, 0}});
    std::vector<std::byte> all;
    append(all, run.loss);
    append(all, run.dlogits);
    return all;
  });
}

TEST(CrossEntropy, EmptyBatchAndStridedTarget) {
  EXPECT_TRUE(run_case({DType::f32, 0, 5, false, 0, {"row-major", {}, 0}}).target.empty());

  StridedArray logits = make_array(DType::f64, {2, 3}, {0, 0, 0, 5, 1, 0});
  StridedArray loss(DType::f64, {2}), weight(DType::f64, {2}), lse(DType::f64, {2});
  TestValues<int64_t> target{1, 99, 0};
  cross_entropy_forward({.logits = logits.view(),
                         .target = target.view(DType::i64, {2}, Dims{2}),
                         .weight = kNoView,
                         .row_loss = loss.view(),
                         .row_weight = weight.view(),
                         .lse = lse.view()});
  EXPECT_NEAR(values_of(loss)[0], std::log(3), 1e-15);
  EXPECT_NEAR(values_of(loss)[1], std::log(std::exp(5) + std::exp(1) + 1) - 5, 1e-15);
}

std::string error_for(TestValues<int64_t> target, const Dims& sizes, double smoothing = 0) {
  StridedArray logits(DType::f32, sizes), loss(DType::f32, {2});
  return error_of([&] {
    cross_entropy_forward({.logits = logits.view(),
                           .target = target.view(DType::i64, {2}),
                           .weight = kNoView,
                           .row_loss = loss.view(),
                           .row_weight = loss.view(),
                           .lse = loss.view(),
                           .label_smoothing = smoothing});
  });
}

TEST(CrossEntropy, ErrorsNameTheProblem) {
  if (test_device().is_cpu()) {
    EXPECT_EQ(error_for({0, 3}, {2, 3}),
              "cross_entropy: got target 3 in row 1, expected 0 to 2 or ignore_index -100");
    EXPECT_EQ(error_for({-1, 0}, {2, 3}),
              "cross_entropy: got target -1 in row 0, expected 0 to 2 or ignore_index -100");
  }
  EXPECT_EQ(error_for({0, 0}, {3, 3}), "cross_entropy: got target i64 [2], expected i64 [3]");
  EXPECT_EQ(error_for({0, 0}, {2}),
            "cross_entropy: got logits f32 [2], expected floating [rows, classes]");
  EXPECT_EQ(error_for({0, 0}, {2, 0}),
            "cross_entropy: got logits [2, 0], expected a class or more");
  EXPECT_EQ(error_for({0, 0}, {2, 3}, 1.5),
            "cross_entropy: got label_smoothing 1.5, expected 0 to 1");
}

TEST(CrossEntropy, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::cross_entropy_test
