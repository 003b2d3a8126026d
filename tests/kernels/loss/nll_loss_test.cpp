// nll_loss against a naive f64 reference.
#include <binade/kernels/loss/nll_loss.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::nll_loss_test {
namespace {

void check_case(DType dtype, const Dims& sizes, bool weighted, const ArrayLayout& layout) {
  const int64_t classes = sizes[1], inner = sizes[2];
  const auto count = static_cast<size_t>(element_count(sizes));
  const DType compute = compute_dtype(dtype);
  const Dims rows{sizes[0], inner};
  const auto row_count = static_cast<size_t>(element_count(rows));
  StridedArray x = make_array(dtype, sizes, random_values(count, 1), layout.order, layout.gap);
  StridedArray dx(dtype, sizes, layout.order, layout.gap);
  StridedArray w =
      make_array(compute, {classes}, random_values(static_cast<size_t>(classes), 2, 1));
  StridedArray loss(compute, rows), weight(compute, rows);
  StridedArray scale = make_array(compute, rows, random_values(row_count, 3));
  std::vector<int64_t> targets;
  for (size_t i = 0; i < row_count; ++i) {
    targets.push_back(i % 4 == 2 ? 1 : static_cast<int64_t>(i) * 7 % classes);
  }
  TestValues<int64_t> target(targets);
  const View t = target.view(DType::i64, rows), wv = weighted ? w.view() : kNoView;
  nll_loss_forward({.log_probs = x.view(),
                    .target = t,
                    .weight = wv,
                    .row_loss = loss.view(),
                    .row_weight = weight.view(),
                    .ignore_index = 1});
  nll_loss_backward({.target = t,
                     .weight = wv,
                     .row_scale = scale.view(),
                     .dlog_probs = dx.view(),
                     .ignore_index = 1});
  Values want_loss, want_weight, want_dx(count, 0);
  const Values xs = values_of(x), ws = values_of(w), scales = values_of(scale);
  for (size_t i = 0; i < row_count; ++i) {
    const auto c = static_cast<size_t>(targets[i]);
    const double factor = c == 1 ? 0 : weighted ? ws[c] : 1;
    const size_t n = i / static_cast<size_t>(inner), k = i % static_cast<size_t>(inner);
    const size_t at = (n * static_cast<size_t>(classes) + c) * static_cast<size_t>(inner) + k;
    want_loss.push_back(-factor * xs[at]);
    want_weight.push_back(factor);
    want_dx[at] = -factor * scales[i];
  }
  const std::string what = to_string(sizes) + " " + layout.name + (weighted ? " weighted" : "");
  expect_close(loss, compute, want_loss, 1, what);
  expect_close(weight, compute, want_weight, 0, what + " weight");
  expect_close(dx, dtype, want_dx, 1, what + " gradient");
}

TEST(NllLoss, MatchesReference) {
  const std::vector<ArrayLayout> layouts{{"row-major", {}, 0},
                                         {"classes inner", {0, 2, 1}, 0},
                                         {"transposed with a gap", {2, 1, 0}, 2}};
  for (const DType dtype : floating_dtypes()) {
    for (const ArrayLayout& layout : layouts) {
      for (const Dims& sizes : {Dims{5, 7, 3}, {33, 10, 1}, {1, 2, 1}}) {
        check_case(dtype, sizes, false, layout);
        check_case(dtype, sizes, true, layout);
      }
    }
    check_case(dtype, {0, 3, 2}, false, {"row-major", {}, 0});
  }
}

TEST(NllLoss, TargetsThatAreNoClass) {
  StridedArray x = make_array(DType::f32, {2, 3, 1}, {-1, -2, -3, -4, -5, -6}), dx = x;
  StridedArray loss(DType::f32, {2, 1}), weight = loss;
  StridedArray scale = make_array(DType::f32, {2, 1}, {1, 1});
  TestValues<int64_t> target{2, 3};
  const View t = target.view(DType::i64, {2, 1});
  const auto forward = [&] {
    nll_loss_forward({.log_probs = x.view(),
                      .target = t,
                      .weight = kNoView,
                      .row_loss = loss.view(),
                      .row_weight = weight.view()});
  };
  if (test_device().is_cpu()) {
    EXPECT_EQ(error_of(forward),
              "nll_loss: got target 3 in row 1, expected 0 to 2 or ignore_index -100");
    return;
  }
  forward();
  nll_loss_backward(
      {.target = t, .weight = kNoView, .row_scale = scale.view(), .dlog_probs = dx.view()});
  EXPECT_EQ(values_of(loss)[0], 3);
  EXPECT_TRUE(std::isnan(values_of(loss)[1]));
  EXPECT_EQ(dx.get({0, 2, 0}), -1);
  EXPECT_TRUE(std::isnan(dx.get({1, 0, 0})));
}

TEST(NllLoss, ErrorsNameTheProblem) {
  StridedArray x(DType::f32, {2, 3, 1}), loss(DType::f32, {2, 1}), short_loss(DType::f32, {1, 1});
  TestValues<int64_t> target{0, 1};
  const auto run = [&](const Dims& targets, StridedArray& out) {
    return error_of([&] {
      nll_loss_forward({.log_probs = x.view(),
                        .target = target.view(DType::i64, targets),
                        .weight = kNoView,
                        .row_loss = out.view(),
                        .row_weight = loss.view()});
    });
  };
  EXPECT_EQ(run({2}, loss), "nll_loss: got target i64 [2], expected i64 [2, 1]");
  EXPECT_EQ(run({2, 1}, short_loss),
            "nll_loss: got row_loss f32 [1, 1], expected a contiguous f32 [2, 1]");
}

}  // namespace
}  // namespace binade::kernels::nll_loss_test
