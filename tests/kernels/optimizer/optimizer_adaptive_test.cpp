// RMSprop and Adagrad against f64 trajectories written from the formulas.
#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/kernels/optimizer/step_rule.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::optimizer_adaptive_test {
namespace {

constexpr int kSteps = 8;
constexpr size_t kCount = 1037;
constexpr double kMultiplier = 0.25;

struct RMSprop {
  double lr = 0.01, alpha = 0.9, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};

struct Adagrad {
  double lr = 0.05, lr_decay = 0, eps = 1e-10, weight_decay = 0, initial = 0;
};

Values gradient(int step) { return random_values(kCount, static_cast<uint32_t>(100 + step)); }

// Parameters and state in the form that the kernels take.
struct State {
  StridedArray param, master, squares, means, buffer;
  bool with_master;

  State(DType dtype, bool master_wanted, double initial = 0)
      : param(make_array(dtype, {kCount}, random_values(kCount, 1))),
        master(make_array(compute_dtype(dtype), {kCount}, values_of(param))),
        squares(make_array(compute_dtype(dtype), {kCount}, Values(kCount, initial))),
        means(make_array(compute_dtype(dtype), {kCount}, Values(kCount))),
        buffer(means),
        with_master(master_wanted) {}
  View master_view() { return with_master ? master.view() : kNoView; }
};

double initial_of(const RMSprop&) { return 0; }
double initial_of(const Adagrad& o) { return o.initial; }

void step_kernel(State& s, StridedArray& g, const RMSprop& o, int,
                 const View& step_scalars = kNoView) {
  const View means = o.centered ? s.means.view() : kNoView;
  const View buffer = o.momentum > 0 ? s.buffer.view() : kNoView;
  rmsprop_step({.param = s.param.view(),
                .master = s.master_view(),
                .grad = g.view(),
                .square_avg = s.squares.view(),
                .lr = o.lr,
                .alpha = o.alpha,
                .eps = o.eps,
                .weight_decay = o.weight_decay,
                .momentum = o.momentum,
                .grad_multiplier = kMultiplier,
                .grad_avg = means,
                .momentum_buffer = buffer,
                .step_scalars = step_scalars});
}

void step_kernel(State& s, StridedArray& g, const Adagrad& o, int step,
                 const View& step_scalars = kNoView) {
  adagrad_step({.param = s.param.view(),
                .master = s.master_view(),
                .grad = g.view(),
                .sum = s.squares.view(),
                .lr = o.lr,
                .lr_decay = o.lr_decay,
                .eps = o.eps,
                .weight_decay = o.weight_decay,
                .step = step,
                .grad_multiplier = kMultiplier,
                .step_scalars = step_scalars});
}

struct Scalars {
  double p, squares, mean = 0, buffer = 0;
};

void step_reference(Scalars& s, double g, const RMSprop& o, int) {
  g = g * kMultiplier + o.weight_decay * s.p;
  s.squares = o.alpha * s.squares + (1 - o.alpha) * g * g;
  s.mean = o.alpha * s.mean + (1 - o.alpha) * g;
  double u = g / (std::sqrt(s.squares - (o.centered ? s.mean * s.mean : 0)) + o.eps);
  s.buffer = o.momentum * s.buffer + u;
  s.p -= o.lr * (o.momentum > 0 ? s.buffer : u);
}

void step_reference(Scalars& s, double g, const Adagrad& o, int step) {
  g = g * kMultiplier + o.weight_decay * s.p;
  s.squares += g * g;
  s.p -= o.lr / (1 + (step - 1) * o.lr_decay) * g / (std::sqrt(s.squares) + o.eps);
}

template <class Options>
void check_trajectory(const Options& options) {
  for (DType dtype : floating_dtypes()) {
    for (bool with_master : {false, true}) {
      if (with_master && !is_half(dtype)) {
        continue;
      }
      State state(dtype, with_master, initial_of(options));
      std::vector<Scalars> expected;
      for (double p : values_of(state.param)) {
        expected.push_back({p, initial_of(options)});
      }
      for (int step = 1; step <= kSteps; ++step) {
        StridedArray g = make_array(dtype, {kCount}, gradient(step));
        step_kernel(state, g, options, step);
        const Values values = values_of(g);
        for (size_t i = 0; i < kCount; ++i) {
          step_reference(expected[i], values[i], options, step);
        }
      }
      Values p, squares;
      for (const Scalars& s : expected) {
        p.push_back(s.p);
        squares.push_back(s.squares);
      }
      const bool rounds_often = is_half(dtype) && !with_master;
      const double units = rounds_often ? 8 * kSteps * epsilon(dtype) / epsilon(DType::f32) : 16;
      expect_close(state.param, dtype, p, units, with_master ? "param, with master" : "param");
      if (!rounds_often) {
        expect_close(state.squares, compute_dtype(dtype), squares, 64, "state");
      }
      if (with_master) {
        expect_close(state.master, DType::f32, p, 16, "master");
        EXPECT_EQ(values_of(state.param),
                  values_of(make_array(dtype, {kCount}, values_of(state.master))));
      }
    }
  }
}

TEST(OptimizerAdaptive, RmspropFollowsItsFormula) {
  check_trajectory(RMSprop{});
  check_trajectory(RMSprop{.weight_decay = 0.05});
  check_trajectory(RMSprop{.momentum = 0.9});
  check_trajectory(RMSprop{.eps = 1e-3, .centered = true});
  check_trajectory(RMSprop{.eps = 1e-3, .weight_decay = 0.02, .momentum = 0.5, .centered = true});
}

TEST(OptimizerAdaptive, AdagradFollowsItsFormula) {
  check_trajectory(Adagrad{});
  check_trajectory(Adagrad{.lr_decay = 0.1});
  check_trajectory(Adagrad{.weight_decay = 0.1, .initial = 0.5});
}

// With equal gradients, cancellation makes the radicand of a centered step negative.
TEST(OptimizerAdaptive, CenteredStepsOfAConstantGradientStayFinite) {
  for (DType dtype : {DType::f32, DType::f16}) {
    State state(dtype, false);
    StridedArray g = make_array(dtype, {kCount}, Values(kCount, 0.7));
    for (int step = 1; step <= 40; ++step) {
      step_kernel(state, g, RMSprop{.lr = 1e-6, .alpha = 0.5, .centered = true}, step);
    }
    for (double value : values_of(state.param)) {
      ASSERT_TRUE(std::isfinite(value));
    }
  }
}

TEST(OptimizerAdaptive, ReadTheirNumbersFromWords) {
  const auto run = [](const View& step_scalars, double other, const auto& options) {
    State state(DType::f16, true);
    StridedArray g = make_array(DType::f16, {kCount}, gradient(1));
    auto changed = options;
    changed.lr *= other;
    step_kernel(state, g, changed, other == 1 ? 3 : 9, step_scalars);
    std::vector<std::byte> all;
    for (const StridedArray* array : {&state.param, &state.master, &state.squares, &state.buffer}) {
      append(all, *array);
    }
    return all;
  };
  const auto compare = [&](const auto& options, double momentum) {
    for (double apply : {0.0, 1.0}) {
      StridedArray step_scalars(DType::f64, {kScalarsOf<RangeScalars>});
      *step_scalars.host_as<RangeScalars>() = {.apply = apply,
                                               .multiplier = kMultiplier,
                                               .lr = options.lr,
                                               .momentum = momentum,
                                               .update = 3};
      EXPECT_EQ(run(step_scalars.view(), 5, options) == run(kNoView, 1, options), apply == 1);
    }
  };
  compare(RMSprop{.momentum = 0.9}, 0.9);
  compare(Adagrad{.lr_decay = 0.5}, 0);
}

// Covers odd lengths and views at odd offsets: the surrounding memory must not change.
TEST(OptimizerAdaptive, AnyLengthAndAlignment) {
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
        StridedArray v = make_array(compute_dtype(dtype), {kMost}, Values(kMost)), sum = v;
        rmsprop_step({part(p), kNoView, part(g), part(v), 0.1, 0, 0, 0, 0, 1.0});
        adagrad_step({part(p), kNoView, part(g), part(sum), 0.1, 0, 0, 0, 1, 1.0});
        const Values old = values_of(before), now = values_of(p), grad = values_of(g);
        for (int64_t k = 0; k < kMost; ++k) {
          const auto i = static_cast<size_t>(k);
          const bool inside = k >= start && k < start + count;
          const double step = inside ? (grad[i] > 0 ? 0.2 : -0.2) : 0;  // lr sign(g) each
          ASSERT_NEAR(now[i], old[i] - step, inside ? 4 * epsilon(dtype) + 1e-5 : 0)
              << to_string(dtype) << " " << count << " from " << start << " element " << k;
        }
      }
    }
  }
}

TEST(OptimizerAdaptive, SameBitsForAnyThreadCount) {
  constexpr int64_t kMany = 40003;
  expect_thread_invariant([] {
    StridedArray p = make_array(DType::f32, {kMany}, random_values(kMany, 1));
    StridedArray g = make_array(DType::f32, {kMany}, random_values(kMany, 2));
    StridedArray v = make_array(DType::f32, {kMany}, Values(kMany)), sum = v, m = v, b = v;
    rmsprop_step(
        {p.view(), kNoView, g.view(), v.view(), 0.1, 0.9, 1e-3, 0.1, 0.9, 1.0, m.view(), b.view()});
    adagrad_step({p.view(), kNoView, g.view(), sum.view(), 0.1, 0.1, 0, 0.1, 2, 1.0});
    std::vector<std::byte> all;
    for (const StridedArray* array : {&p, &v, &sum, &m, &b}) {
      append(all, *array);
    }
    return all;
  });
}

TEST(OptimizerAdaptive, ErrorsNameTheProblem) {
  StridedArray p(DType::f32, {4}), g(DType::f32, {3});
  EXPECT_EQ(error_of([&] {
              rmsprop_step({p.view(), kNoView, p.view(), g.view(), 0.1, 0.9, 0, 0, 0, 1.0});
            }),
            "rmsprop_step: got square_avg f32 [3], expected a contiguous f32 vector like param "
            "[4]");
  EXPECT_EQ(error_of([&] {
              rmsprop_step({p.view(), kNoView, p.view(), p.view(), 0.1, 0.9, 0, 0, 0.5, 1.0});
            }),
            "rmsprop_step: got momentum 0.5 without a momentum_buffer, expected both or neither");
  EXPECT_EQ(error_of([&] {
              adagrad_step({p.view(), kNoView, p.view(), p.view(), 0.1, 0, 0, 0, 0, 1.0});
            }),
            "adagrad_step: got step 0, expected 1 or more");
}

TEST(OptimizerAdaptive, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::optimizer_adaptive_test
