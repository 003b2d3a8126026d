// Optimizer steps against f64 trajectories written from the formulas.
#include <binade/kernels/optimizer/optimizer.h>
#include <tests/kernels/support/array_values.h>

#include <limits>

namespace binade::kernels::optimizer_test {
namespace {

constexpr int kSteps = 12;
constexpr size_t kCount = 1037;

Values gradient(int step) { return random_values(kCount, static_cast<uint32_t>(100 + step)); }

struct SGD {
  double lr = 0.1, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

struct Adam {
  double lr = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, amsgrad = false;
};

constexpr double kMultiplier = 0.25;

// Parameters and state in the form that the kernels take.
struct State {
  StridedArray param, master, first, second, largest;
  bool with_master;

  State(DType dtype, bool master_wanted)
      : param(make_array(dtype, {kCount}, random_values(kCount, 1))),
        master(make_array(compute_dtype(dtype), {kCount}, values_of(param))),
        first(make_array(compute_dtype(dtype), {kCount}, Values(kCount))),
        second(first),
        largest(first),
        with_master(master_wanted) {}
  View master_view() { return with_master ? master.view() : kNoView; }
};

void step_kernel(State& state, StridedArray& g, const SGD& o, int step) {
  const View buffer = o.momentum > 0 ? state.first.view() : kNoView;
  sgd_step({.param = state.param.view(),
            .master = state.master_view(),
            .grad = g.view(),
            .momentum_buffer = buffer,
            .lr = o.lr,
            .momentum = o.momentum,
            .dampening = o.dampening,
            .weight_decay = o.weight_decay,
            .nesterov = o.nesterov,
            .first_step = step == 1,
            .grad_multiplier = kMultiplier});
}

void step_kernel(State& state, StridedArray& g, const Adam& o, int step) {
  const View largest = o.amsgrad ? state.largest.view() : kNoView;
  adam_step({.param = state.param.view(),
             .master = state.master_view(),
             .grad = g.view(),
             .exp_avg = state.first.view(),
             .exp_avg_sq = state.second.view(),
             .lr = o.lr,
             .beta1 = o.beta1,
             .beta2 = o.beta2,
             .eps = o.eps,
             .weight_decay = o.weight_decay,
             .decoupled = o.decoupled,
             .step = step,
             .grad_multiplier = kMultiplier,
             .max_exp_avg_sq = largest});
}

struct Scalars {
  double p, first = 0, second = 0, largest = 0;
};

void step_reference(Scalars& s, double g, const SGD& o, int step) {
  g = g * kMultiplier + o.weight_decay * s.p;
  if (o.momentum > 0) {
    s.first = step == 1 ? g : o.momentum * s.first + (1 - o.dampening) * g;
    g = o.nesterov ? g + o.momentum * s.first : s.first;
  }
  s.p -= o.lr * g;
}

void step_reference(Scalars& s, double g, const Adam& o, int step) {
  g *= kMultiplier;
  if (o.decoupled) {
    s.p *= 1 - o.lr * o.weight_decay;
  } else {
    g += o.weight_decay * s.p;
  }
  s.first = o.beta1 * s.first + (1 - o.beta1) * g;
  s.second = o.beta2 * s.second + (1 - o.beta2) * g * g;
  s.largest = std::max(s.largest, s.second);
  const double v = (o.amsgrad ? s.largest : s.second) / (1 - std::pow(o.beta2, step));
  s.p -= o.lr * s.first / (1 - std::pow(o.beta1, step)) / (std::sqrt(v) + o.eps);
}

template <class Options>
State run_kernel(const Options& options, DType dtype, bool with_master) {
  State state(dtype, with_master);
  for (int step = 1; step <= kSteps; ++step) {
    StridedArray g = make_array(dtype, {kCount}, gradient(step));
    step_kernel(state, g, options, step);
  }
  return state;
}

template <class Options>
void check_trajectory(const Options& options) {
  for (DType dtype : floating_dtypes()) {
    for (bool with_master : {false, true}) {
      if (with_master && !is_half(dtype)) {
        continue;
      }
      const State state = run_kernel(options, dtype, with_master);
      const Values start = values_of(State(dtype, false).param);
      std::vector<Scalars> expected;
      for (double p : start) {
        expected.push_back({p});
      }
      for (int step = 1; step <= kSteps; ++step) {
        const Values g = values_of(make_array(dtype, {kCount}, gradient(step)));
        for (size_t i = 0; i < kCount; ++i) {
          step_reference(expected[i], g[i], options, step);
        }
      }
      Values p, first;
      for (const Scalars& s : expected) {
        p.push_back(s.p);
        first.push_back(s.first);
      }
      const bool rounds_often = is_half(dtype) && !with_master;
      const double units = rounds_often ? 8 * kSteps * epsilon(dtype) / epsilon(DType::f32) : 8;
      expect_close(state.param, dtype, p, units, with_master ? "param, with master" : "param");
      if (!rounds_often) {
        expect_close(state.first, compute_dtype(dtype), first, 64, "state");
      }
      if (with_master) {
        expect_close(state.master, DType::f32, p, 8, "master");
        Values rounded = values_of(make_array(dtype, {kCount}, values_of(state.master)));
        EXPECT_EQ(values_of(state.param), rounded);
      }
    }
  }
}

TEST(Optimizer, SgdFollowsItsFormula) {
  check_trajectory(SGD{});
  check_trajectory(SGD{.weight_decay = 0.05});
  check_trajectory(SGD{.momentum = 0.9});
  check_trajectory(SGD{.momentum = 0.9, .dampening = 0.3});
  check_trajectory(SGD{.momentum = 0.8, .weight_decay = 0.01, .nesterov = true});
}

TEST(Optimizer, AdamAndAdamWFollowTheirFormulas) {
  for (bool decoupled : {false, true}) {
    check_trajectory(Adam{.decoupled = decoupled});
    check_trajectory(Adam{.weight_decay = 0.1, .decoupled = decoupled});
    check_trajectory(Adam{.beta2 = 0.9, .decoupled = decoupled, .amsgrad = true});
    check_trajectory(Adam{.lr = 1, .beta1 = 0.5, .eps = 1e-3, .decoupled = decoupled});
  }
}

// Covers lengths near warps, vectors and blocks, and views at odd offsets: each element gets the
// same bits as in the whole arrays.
TEST(Optimizer, AnyLengthAndAlignment) {
  constexpr int64_t kMost = 1100;
  for (DType dtype : floating_dtypes()) {
    for (int64_t count : {1, 7, 31, 33, 255, 257, 1025}) {
      for (int64_t start : {0, 1, 3}) {
        const auto part = [&](StridedArray& array) {
          View view = array.view();
          view.data += start * static_cast<int64_t>(size_of(view.dtype));
          view.numel = count;
          view.sizes = {count};
          return view;
        };
        StridedArray p = make_array(dtype, {kMost}, random_values(kMost, 1)), untouched = p;
        StridedArray g = make_array(dtype, {kMost}, random_values(kMost, 2));
        StridedArray m = make_array(compute_dtype(dtype), {kMost}, Values(kMost)), v = m;
        adam_step(
            {part(p), kNoView, part(g), part(m), part(v), 0.1, 0.9, 0.99, 1e-8, 0.1, true, 1, 1.0});
        StridedArray stats(DType::f64, {2});
        gradient_stats({.grad = part(g), .result = stats.view()});
        const Values before = values_of(untouched), after = values_of(p), grad = values_of(g);
        double squares = 0;
        for (int64_t k = 0; k < kMost; ++k) {
          const auto i = static_cast<size_t>(k);
          const bool inside = k >= start && k < start + count;
          squares += inside ? grad[i] * grad[i] : 0;
          const double step = grad[i] > 0 ? 0.1 : -0.1;  // Adam's first step has the size lr
          const double expected = inside ? before[i] * 0.99 - step : before[i];
          ASSERT_NEAR(after[i], expected, inside ? 4 * epsilon(dtype) + 1e-5 : 0)
              << to_string(dtype) << " " << count << " from " << start << " element " << k;
        }
        EXPECT_NEAR(values_of(stats)[0], squares, 1e-12 * squares);
      }
    }
  }
}

TEST(Optimizer, GradientStatsSkipAndCountWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : floating_dtypes()) {
    for (size_t count : {0, 1, 5, 16, 1000, 40001}) {
      Values values = random_values(count, 5);
      size_t bad = 0;
      for (size_t i = 2; i < count; i += 37) {
        values[i] = i % 3 == 0 ? inf : i % 3 == 1 ? -inf : std::nan("");
        ++bad;
      }
      StridedArray g = make_array(dtype, {static_cast<int64_t>(count)}, values);
      StridedArray result(DType::f64, {2});
      gradient_stats({.grad = g.view(), .result = result.view()});
      double sum = 0;
      for (double value : values_of(g)) {
        sum += std::isfinite(value) ? value * value : 0;
      }
      EXPECT_NEAR(values_of(result)[0], sum, 1e-12 * sum) << to_string(dtype) << " " << count;
      EXPECT_EQ(values_of(result)[1], static_cast<double>(bad)) << to_string(dtype);
    }
  }
}

TEST(Optimizer, SquaresOfLargeGradientsDoNotOverflow) {
  StridedArray g = make_array(DType::f32, {3}, {1e30, -1e30, 1e-30}), result(DType::f64, {2});
  gradient_stats({.grad = g.view(), .result = result.view()});
  EXPECT_NEAR(values_of(result)[0], 2e60, 1e54);
  EXPECT_EQ(values_of(result)[1], 0);
}

TEST(Optimizer, SameBitsForAnyThreadCount) {
  constexpr int64_t kMany = 100003;
  for (DType dtype : {DType::f32, DType::bf16}) {
    expect_thread_invariant([dtype] {
      StridedArray p = make_array(dtype, {kMany}, random_values(kMany, 1));
      StridedArray g = make_array(dtype, {kMany}, random_values(kMany, 2));
      StridedArray m = make_array(DType::f32, {kMany}, Values(kMany)), v = m, b = m;
      StridedArray stats(DType::f64, {2});
      gradient_stats({.grad = g.view(), .result = stats.view()});
      adam_step({p.view(), kNoView, g.view(), m.view(), v.view(), 0.01, 0.9, 0.99, 1e-8, 0.1, true,
                 1, 1.0});
      sgd_step({p.view(), kNoView, g.view(), b.view(), 0.1, 0.9, 0, 0.1, true, true, 1.0});
      std::vector<std::byte> all;
      for (const StridedArray* array : {&p, &m, &v, &b, &stats}) {
        append(all, *array);
      }
      return all;
    });
  }
}

TEST(Optimizer, ErrorsNameTheProblem) {
  StridedArray p(DType::f32, {4}), g(DType::f32, {3}), h(DType::f16, {4});
  const auto sgd = [](StridedArray& param, const View& master, StridedArray& grad,
                      double momentum) {
    return error_of([&] {
      sgd_step({param.view(), master, grad.view(), kNoView, 0.1, momentum, 0, 0, false, true, 1.0});
    });
  };
  EXPECT_EQ(sgd(p, kNoView, g, 0),
            "sgd_step: got grad f32 [3], expected a contiguous f32 vector like param [4]");
  EXPECT_EQ(sgd(p, kNoView, h, 0),
            "sgd_step: got grad f16 [4], expected a contiguous f32 vector like param [4]");
  EXPECT_EQ(sgd(p, p.view(), p, 0),
            "sgd_step: got a master for f32 param, expected one for f16 and bf16 only");
  EXPECT_EQ(sgd(p, kNoView, p, 0.9),
            "sgd_step: got momentum 0.9 without a momentum_buffer, expected both or neither");
  EXPECT_EQ(error_of([&] {
              adam_step({p.view(), kNoView, p.view(), p.view(), p.view(), 0.1, 0.9, 0.99, 1e-8, 0,
                         false, 0, 1.0});
            }),
            "adam_step: got step 0, expected 1 or more");
  EXPECT_EQ(error_of([&] { gradient_stats({.grad = p.view(), .result = p.view()}); }),
            "gradient_stats: got result f32 [4], expected a contiguous f64 [2]");
}

TEST(Optimizer, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::optimizer_test
