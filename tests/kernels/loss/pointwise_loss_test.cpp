// Pointwise losses against naive f64 references.
#include <binade/kernels/loss/pointwise_loss.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::pointwise_loss_test {
namespace {

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double value_of(PointwiseLoss op, double x, double t, double p, double alpha) {
  const double d = std::abs(x - t);
  switch (op) {
    case PointwiseLoss::mse: return d * d;
    case PointwiseLoss::l1: return d;
    case PointwiseLoss::smooth_l1: return d < alpha ? d * d / (2 * alpha) : d - alpha / 2;
    case PointwiseLoss::huber: return d <= alpha ? d * d / 2 : alpha * (d - alpha / 2);
    case PointwiseLoss::bce:
      return -(t * std::max(std::log(x), -100.0) + (1 - t) * std::max(std::log1p(-x), -100.0));
    case PointwiseLoss::bce_with_logits: return (1 - t) * softplus(x) + p * t * softplus(-x);
    case PointwiseLoss::kl_div: return t == 0 ? 0 : t * (std::log(t) - x);
    case PointwiseLoss::kl_div_log_target: return std::exp(t) * (t - x);
  }
  return 0;
}

// A central difference quotient, taken far from kinks.
double slope_of(PointwiseLoss op, double x, double t, double p, double alpha, bool of_target) {
  const double h = 1e-5;
  const double up = of_target ? value_of(op, x, t + h, p, alpha) : value_of(op, x + h, t, p, alpha);
  const double down =
      of_target ? value_of(op, x, t - h, p, alpha) : value_of(op, x - h, t, p, alpha);
  return (up - down) / (2 * h);
}

struct Case {
  PointwiseLoss op;
  DType dtype;
  Dims sizes;
  ArrayLayout layout;
  bool weighted = false;
};

Values drawn(PointwiseLoss op, size_t count, uint32_t seed) {
  const bool unit = op == PointwiseLoss::bce || op == PointwiseLoss::kl_div;
  Values values = random_values(count, seed);
  for (double& v : values) {
    v = unit ? 0.1 + 0.8 / (1 + std::exp(-v)) : v;
  }
  return values;
}

double alpha_of(PointwiseLoss op) { return op == PointwiseLoss::huber ? 0.7 : 0.5; }

void check_case(const Case& c) {
  const auto count = static_cast<size_t>(element_count(c.sizes));
  const DType compute = compute_dtype(c.dtype);
  const Dims row = c.sizes.empty() ? Dims{} : Dims{c.sizes.back()};
  const bool positive = c.weighted && c.op == PointwiseLoss::bce_with_logits;
  StridedArray x =
      make_array(c.dtype, c.sizes, drawn(c.op, count, 1), c.layout.order, c.layout.gap);
  StridedArray t = make_array(c.dtype, c.sizes, drawn(c.op, count, 2));
  const Values ones(static_cast<size_t>(element_count(row)), 1.25);
  StridedArray w = make_array(c.dtype, row, ones);
  StridedArray p = make_array(c.dtype, c.sizes, drawn(PointwiseLoss::bce, count, 3));
  StridedArray dy = make_array(compute, c.sizes, random_values(count, 4));
  StridedArray each(compute, c.sizes, c.layout.order, c.layout.gap), sum(compute, {});
  StridedArray dx(c.dtype, c.sizes, c.layout.order, c.layout.gap), dt(c.dtype, c.sizes);
  const double alpha = alpha_of(c.op);
  const View weight = c.weighted ? w.view() : kNoView, pos = positive ? p.view() : kNoView;
  const View xv = x.view(), tv = t.view();
  const auto forward = [&](const View& y, bool separate) {
    pointwise_loss_forward({.op = c.op,
                            .x = xv,
                            .t = tv,
                            .weight = weight,
                            .pos_weight = pos,
                            .y = y,
                            .each = separate,
                            .divisor = separate ? 1.0 : 4.0,
                            .alpha = alpha});
  };
  forward(each.view(), true);
  forward(sum.view(), false);
  pointwise_loss_backward({.op = c.op,
                           .x = xv,
                           .t = tv,
                           .weight = weight,
                           .pos_weight = pos,
                           .dy = dy.view(),
                           .dx = dx.view(),
                           .dt = dt.view(),
                           .divisor = 4,
                           .alpha = alpha});
  const Values xs = values_of(x), ts = values_of(t), ps = values_of(p), up = values_of(dy);
  Values want, want_dx, want_dt;
  double total = 0, magnitude = 0;
  for (size_t i = 0; i < count; ++i) {
    const double factor = c.weighted ? 1.25 : 1, q = positive ? ps[i] : 1;
    want.push_back(factor * value_of(c.op, xs[i], ts[i], q, alpha));
    total += want.back() / 4;
    magnitude += std::abs(want.back()) / 4;
    const auto slope = [&](bool of_target) {
      return factor * slope_of(c.op, xs[i], ts[i], q, alpha, of_target) * up[i] / 4;
    };
    want_dx.push_back(slope(false));
    want_dt.push_back(slope(true));
  }
  const std::string what = std::string(to_string(c.op)) + " " + to_string(c.sizes) + " " +
                           c.layout.name + (c.weighted ? " weighted" : "");
  expect_close(each, compute, want, 16, what);
  expect_close(sum, compute, {total}, 8, what + " sum", magnitude);
  const double differences = c.dtype == DType::f64 ? 1e7 : 64;  // the error of the reference
  expect_close(dx, c.dtype, want_dx, differences, what + " dx", 1);
  expect_close(dt, c.dtype, want_dt, differences, what + " dt", 1);
}

PointwiseLoss loss_at(int i) { return static_cast<PointwiseLoss>(i); }

TEST(PointwiseLoss, MatchesReference) {
  const std::vector<ArrayLayout> layouts{
      {"row-major", {}, 0}, {"with a gap", {}, 3}, {"transposed", {1, 0}, 2}};
  for (int i = 0; i < kPointwiseLossCount; ++i) {
    for (const DType dtype : floating_dtypes()) {
      for (const ArrayLayout& layout : layouts) {
        for (const bool weighted : {false, true}) {
          check_case({loss_at(i), dtype, {7, 33}, layout, weighted});
        }
      }
      check_case({loss_at(i), dtype, {}, {"scalar", {}, 0}});
      check_case({loss_at(i), dtype, {0, 3}, {"empty", {}, 0}});
      check_case({loss_at(i), dtype, {4, 16}, {"whole vectors", {}, 0}, true});
    }
  }
}

// Uses more than one unit of work on the CPU, more than one block, and rows longer than a unit.
TEST(PointwiseLoss, MatchesReferenceOfManyElements) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    check_case({PointwiseLoss::mse, dtype, {131, 77}, {"row-major", {}, 0}, true});
    check_case({PointwiseLoss::bce_with_logits, dtype, {2, 4999}, {"row-major", {}, 0}, true});
    check_case({PointwiseLoss::kl_div, dtype, {4999, 2}, {"with a gap", {}, 1}});
  }
}

TEST(PointwiseLoss, SumOfManyIsAccurate) {
  const int64_t n = test_device().is_cpu() ? 3000001 : 60001;
  StridedArray x = make_array(DType::f32, {n}, Values(static_cast<size_t>(n), 0.1));
  StridedArray t(DType::f32, {n}), y(DType::f32, {});
  assign(t, Values(static_cast<size_t>(n), 0));
  pointwise_loss_forward({.op = PointwiseLoss::l1,
                          .x = x.view(),
                          .t = t.view(),
                          .y = y.view(),
                          .divisor = static_cast<double>(n)});
  EXPECT_NEAR(values_of(y)[0], 0.1, 1e-7);
}

TEST(PointwiseLoss, OperandsMayBeRepeatedAndStartAnywhere) {
  StridedArray x = make_array(DType::f32, {9}, random_values(9, 1));
  StridedArray t = make_array(DType::f32, {5}, random_values(5, 2)), y(DType::f32, {8, 5});
  View column = x.view(), row = t.view();
  column.data += 4;
  column.sizes = {8, 5};
  column.strides = {1, 0};
  row.sizes = {8, 5};
  row.strides = {0, 1};
  column.numel = row.numel = 40;
  column.contiguous = row.contiguous = false;
  pointwise_loss_forward(
      {.op = PointwiseLoss::mse, .x = column, .t = row, .y = y.view(), .each = true});
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      const double d = x.get({i + 1}) - t.get({j});
      EXPECT_NEAR(y.get({i, j}), d * d, 1e-6);
    }
  }
}

TEST(PointwiseLoss, FarLogitsAndLimitedLogarithms) {
  const auto each = [](PointwiseLoss op, const Values& xs, const Values& ts) {
    const Dims sizes{static_cast<int64_t>(xs.size())};
    StridedArray x = make_array(DType::f32, sizes, xs), t = make_array(DType::f32, sizes, ts);
    StridedArray y(DType::f32, sizes);
    pointwise_loss_forward({.op = op, .x = x.view(), .t = t.view(), .y = y.view(), .each = true});
    return values_of(y);
  };
  EXPECT_EQ(each(PointwiseLoss::bce_with_logits, {-80, 80, 1e4, -1e4}, {1, 0, 1, 0}),
            (Values{80, 80, 0, 0}));
  EXPECT_EQ(each(PointwiseLoss::bce, {0, 1, 0, 1}, {0, 1, 1, 0}), (Values{0, 0, 100, 100}));
  EXPECT_EQ(each(PointwiseLoss::kl_div, {-3, 5}, {0, 0}), (Values{0, 0}));
}

TEST(PointwiseLoss, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    StridedArray x = make_array(DType::f32, {301, 203}, random_values(301 * 203, 4));
    StridedArray t = make_array(DType::f32, {301, 203}, random_values(301 * 203, 5));
    StridedArray y(DType::f32, {});
    pointwise_loss_forward(
        {.op = PointwiseLoss::huber, .x = x.view(), .t = t.view(), .y = y.view(), .alpha = 1});
    std::vector<std::byte> all;
    append(all, y);
    return all;
  });
}

TEST(PointwiseLoss, ErrorsNameTheProblem) {
  StridedArray x(DType::f32, {2, 3}), t(DType::f32, {3}), h(DType::f16, {2, 3}), y(DType::f32, {});
  const auto run = [&](PointwiseLoss op, const View& input, const View& target, const View& out,
                       const View& pos = kNoView) {
    return error_of([&] {
      pointwise_loss_forward({.op = op, .x = input, .t = target, .pos_weight = pos, .y = out});
    });
  };
  EXPECT_EQ(run(PointwiseLoss::mse, x.view(), t.view(), y.view()),
            "mse: got a target f32 [3], expected f32 [2, 3] as the input");
  EXPECT_EQ(run(PointwiseLoss::mse, x.view(), h.view(), y.view()),
            "mse: got a target f16 [2, 3], expected f32 [2, 3] as the input");
  EXPECT_EQ(run(PointwiseLoss::mse, x.view(), x.view(), x.view()),
            "mse: got a result of sizes [2, 3], expected one element");
  EXPECT_EQ(run(PointwiseLoss::bce, x.view(), x.view(), y.view(), x.view()),
            "bce: got a pos_weight, which bce_with_logits alone has");
  if (test_device().is_cpu()) {
    StridedArray p = make_array(DType::f32, {2, 3}, {0, 1, 0.5, 0.5, 1.5, 0});
    EXPECT_EQ(run(PointwiseLoss::bce, p.view(), p.view(), y.view()),
              "bce: got input 1.5 at element 4, expected 0 to 1, a probability; bce_with_logits "
              "takes any number");
  }
}

TEST(PointwiseLoss, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::pointwise_loss_test
