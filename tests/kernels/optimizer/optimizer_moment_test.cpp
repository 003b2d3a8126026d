// NAdam and RAdam against f64 trajectories written from the formulas.
#include <binade/kernels/optimizer/optimizer_moment.h>
#include <binade/kernels/optimizer/optimizer_moment_internal.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::optimizer_moment_test {
namespace {

constexpr int kSteps = 9;
constexpr size_t kCount = 1037;
constexpr double kMultiplier = 0.25;

struct Options {
  MomentRule rule = MomentRule::nadam;
  double lr = 0.01, beta1 = 0.9, beta2 = 0.9, eps = 1e-3, weight_decay = 0;
  bool decoupled = false;
  double momentum_decay = 4e-3;
};

struct State {
  StridedArray param, master, first, second;
  bool with_master;

  State(DType dtype, bool master_wanted)
      : param(make_array(dtype, {kCount}, random_values(kCount, 1))),
        master(make_array(compute_dtype(dtype), {kCount}, values_of(param))),
        first(make_array(compute_dtype(dtype), {kCount}, Values(kCount))),
        second(first),
        with_master(master_wanted) {}
};

void step_kernel(State& s, StridedArray& g, const Options& o, int step,
                 const View& step_scalars = kNoView) {
  moment_step({.param = s.param.view(),
               .master = s.with_master ? s.master.view() : kNoView,
               .grad = g.view(),
               .exp_avg = s.first.view(),
               .exp_avg_sq = s.second.view(),
               .rule = o.rule,
               .lr = o.lr,
               .beta1 = o.beta1,
               .beta2 = o.beta2,
               .eps = o.eps,
               .weight_decay = o.weight_decay,
               .decoupled = o.decoupled,
               .momentum_decay = o.momentum_decay,
               .step = step,
               .grad_multiplier = kMultiplier,
               .step_scalars = step_scalars});
}

struct Scalars {
  double p, first = 0, second = 0, product = 1;
};

void step_reference(Scalars& s, double g, const Options& o, int t) {
  g = g * kMultiplier + (o.decoupled ? 0 : o.weight_decay * s.p);
  s.p *= o.decoupled ? 1 - o.lr * o.weight_decay : 1;
  s.first = o.beta1 * s.first + (1 - o.beta1) * g;
  s.second = o.beta2 * s.second + (1 - o.beta2) * g * g;
  const double corrected = 1 - std::pow(o.beta2, t);
  if (o.rule == MomentRule::nadam) {
    const auto mu = [&](int i) {
      return o.beta1 * (1 - 0.5 * std::pow(0.96, i * o.momentum_decay));
    };
    s.product *= mu(t);
    const double divisor = std::sqrt(s.second / corrected) + o.eps;
    s.p -= o.lr * (1 - mu(t)) / (1 - s.product) * g / divisor;
    s.p -= o.lr * mu(t + 1) / (1 - s.product * mu(t + 1)) * s.first / divisor;
    return;
  }
  const double limit = 2 / (1 - o.beta2) - 1,
               length = limit - 2 * t * std::pow(o.beta2, t) / corrected;
  const double step = o.lr * s.first / (1 - std::pow(o.beta1, t));
  const double rectified =
      (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length);
  s.p -=
      length > 5 ? step * std::sqrt(rectified * corrected) / (std::sqrt(s.second) + o.eps) : step;
}

void check_trajectory(const Options& options) {
  for (DType dtype : floating_dtypes()) {
    for (bool with_master : {false, true}) {
      if (with_master && !is_half(dtype)) {
        continue;
      }
      State state(dtype, with_master);
      std::vector<Scalars> expected;
      for (double p : values_of(state.param)) {
        expected.push_back({p});
      }
      for (int step = 1; step <= kSteps; ++step) {
        StridedArray g =
            make_array(dtype, {kCount}, random_values(kCount, static_cast<uint32_t>(100 + step)));
        step_kernel(state, g, options, step);
        const Values values = values_of(g);
        for (size_t i = 0; i < kCount; ++i) {
          step_reference(expected[i], values[i], options, step);
        }
      }
      Values p, second;
      for (const Scalars& s : expected) {
        p.push_back(s.p);
        second.push_back(s.second);
      }
      const bool rounds_often = is_half(dtype) && !with_master;
      const double units = rounds_often ? 8 * kSteps * epsilon(dtype) / epsilon(DType::f32) : 16;
      expect_close(state.param, dtype, p, units, with_master ? "param, with master" : "param");
      if (!rounds_often) {
        expect_close(state.second, compute_dtype(dtype), second, 64, "state");
      }
      if (with_master) {
        expect_close(state.master, DType::f32, p, 16, "master");
      }
    }
  }
}

TEST(OptimizerMoment, NadamFollowsItsFormula) {
  check_trajectory({});
  check_trajectory({.beta2 = 0.999, .weight_decay = 0.05});
  check_trajectory({.beta1 = 0.5, .weight_decay = 0.05, .decoupled = true, .momentum_decay = 0.5});
}

TEST(OptimizerMoment, RadamFollowsItsFormula) {  // adaptive from the sixth step on, or never
  check_trajectory({.rule = MomentRule::radam});
  check_trajectory({.rule = MomentRule::radam, .beta2 = 0.5, .weight_decay = 0.05});
  check_trajectory({.rule = MomentRule::radam, .weight_decay = 0.05, .decoupled = true});
}

// The loop over the factors ends early where the rest cannot be seen.
TEST(OptimizerMoment, ManyStepsLater) {
  for (double beta1 : {0.0, 0.9, 0.99}) {
    for (double t : {300.0, 1e3, 1e5}) {
      const RangeScalars w =
          range_scalars({.multiplier = 1, .lr = 1, .momentum = beta1, .update = t, .beta2 = 0.999});
      double product = 1;
      const auto mu = [&](double i) { return beta1 * (1 - 0.5 * std::pow(0.96, i * 4e-3)); };
      for (double i = 1; i <= t; ++i) {
        product *= mu(i);
      }
      const MomentNumbers got = nadam_numbers(w, 4e-3);
      EXPECT_NEAR(got.gradient, (1 - mu(t)) / (1 - product), 1e-12);
      EXPECT_NEAR(got.average, mu(t + 1) / (1 - product * mu(t + 1)), 1e-12);
    }
  }
}

TEST(OptimizerMoment, ReadTheirNumbersFromScalars) {
  for (MomentRule rule : {MomentRule::nadam, MomentRule::radam}) {
    for (double apply : {0.0, 1.0}) {
      const auto run = [&](const View& step_scalars, double other) {
        State state(DType::f16, true);
        StridedArray g = make_array(DType::f16, {kCount}, random_values(kCount, 5));
        step_kernel(state, g, {.rule = rule, .lr = 0.01 * other}, other == 1 ? 7 : 2, step_scalars);
        std::vector<std::byte> all;
        for (const StridedArray* array :
             {&state.param, &state.master, &state.first, &state.second}) {
          append(all, *array);
        }
        return all;
      };
      StridedArray step_scalars(DType::f64, {kScalarsOf<RangeScalars>});
      RangeScalars& w = *step_scalars.host_as<RangeScalars>();
      w = range_scalars(
          {.multiplier = kMultiplier, .lr = 0.01, .momentum = 0.9, .update = 7, .beta2 = 0.9});
      w.apply = apply;
      EXPECT_EQ(run(step_scalars.view(), 5) == run(kNoView, 1), apply == 1);
    }
  }
}

// Covers odd lengths and views at odd offsets: the surrounding memory must not change.
TEST(OptimizerMoment, AnyLengthAndAlignment) {
  constexpr int64_t kMost = 300;
  for (DType dtype : floating_dtypes()) {
    for (int64_t count : {0, 1, 7, 33, 257}) {
      for (int64_t start : {0, 1, 3}) {
        const auto part = [&](StridedArray& array) {
          View view = array.view();
          view.data += start * static_cast<int64_t>(size_of(view.dtype));
          view.numel = count;
          view.sizes = {count};
          return view;
        };
        StridedArray p = make_array(dtype, {kMost}, random_values(kMost, 1)), before = p;
        StridedArray g = make_array(dtype, {kMost}, random_values(kMost, 2));
        StridedArray m = make_array(compute_dtype(dtype), {kMost}, Values(kMost)), v = m;
        moment_step({part(p), kNoView, part(g), part(m), part(v), MomentRule::radam, 0.1, 0, 0.5, 1,
                     0, false, 0, 1, 1.0});
        const Values old = values_of(before), now = values_of(p), grad = values_of(g);
        for (int64_t k = 0; k < kMost; ++k) {
          const auto i = static_cast<size_t>(k);
          const bool inside = k >= start && k < start + count;
          const double step = inside ? 0.1 * grad[i] : 0;
          ASSERT_NEAR(now[i], old[i] - step, inside ? 4 * epsilon(dtype) + 1e-5 : 0)
              << to_string(dtype) << " " << count << " from " << start << " element " << k;
        }
      }
    }
  }
}

TEST(OptimizerMoment, SameBitsForAnyThreadCount) {
  constexpr int64_t kMany = 40003;
  expect_thread_invariant([] {
    StridedArray p = make_array(DType::f32, {kMany}, random_values(kMany, 1));
    StridedArray g = make_array(DType::f32, {kMany}, random_values(kMany, 2));
    StridedArray m = make_array(DType::f32, {kMany}, Values(kMany)), v = m;
    moment_step({p.view(), kNoView, g.view(), m.view(), v.view(), MomentRule::nadam, 0.1, 0.9, 0.99,
                 1e-3, 0.1, true, 0.01, 4, 1.0});
    std::vector<std::byte> all;
    for (const StridedArray* array : {&p, &m, &v}) {
      append(all, *array);
    }
    return all;
  });
}

TEST(OptimizerMoment, ErrorsNameTheProblem) {
  StridedArray p(DType::f32, {4}), g(DType::f32, {3});
  const auto error = [&](const View& first, double beta1, int64_t step) {
    return error_of([&] {
      moment_step({p.view(), kNoView, p.view(), first, p.view(), MomentRule::nadam, 0.1, beta1, 0.9,
                   0, 0, false, 0, step, 1.0});
    });
  };
  EXPECT_EQ(error(g.view(), 0.9, 1),
            "moment_step: got exp_avg f32 [3], expected a contiguous f32 vector like param [4]");
  EXPECT_EQ(error(p.view(), 1, 1), "moment_step: got betas 1 and 0.9, expected 0 to below 1");
  EXPECT_EQ(error(p.view(), 0.9, 0), "moment_step: got step 0, expected 1 or more");
}

TEST(OptimizerMoment, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::optimizer_moment_test
