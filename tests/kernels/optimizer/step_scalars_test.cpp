// Tests that a step's scalars in device memory have the values that the rules give.
#include <binade/kernels/optimizer/optimizer.h>
#include <binade/kernels/optimizer/step_scalars.h>
#include <tests/kernels/support/array_values.h>

#include <limits>

namespace binade::kernels::step_scalars_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Scalars in a vector of f64 on the test device.
template <class S>
class DeviceScalars {
 public:
  explicit DeviceScalars(const S& values = {}) : array_(DType::f64, {kScalarsOf<S>}) {
    *array_.host_as<S>() = values;
  }
  View view() { return array_.view(); }
  S& operator*() { return *array_.host_as<S>(); }
  S* operator->() { return &**this; }

 private:
  StridedArray array_;
};

constexpr ScaleRule kRule{.growth_interval = 2, .min_scale = 1, .max_scale = 0x1p24};

TEST(LossSeed, IsScaleTimesWeightAndLeavesATag) {
  for (DType dtype : floating_dtypes()) {
    DeviceScalars<ScalerScalars> scaler({.scale = 64});
    StridedArray loss = make_array(dtype, {}, {1.5}), seed(dtype, {}), tag(DType::f64, {1});
    loss_seed({.loss = loss.view(),
               .scaler = scaler.view(),
               .tag = tag.view(),
               .seed = seed.view(),
               .weight = 0.25});
    EXPECT_EQ(values_of(seed)[0], 16);
    EXPECT_EQ(values_of(tag)[0], 64);
    EXPECT_EQ(scaler->loss, 1.5);
  }
}

TEST(UnscaleGradient, DividesByScaleAndTag) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t count : {0, 1, 31, 257}) {
      const Values values = random_values(static_cast<size_t>(count), 3);
      StridedArray x = make_array(dtype, {count}, values), y(compute_dtype(dtype), {count});
      StridedArray tag = make_array(DType::f64, {1}, {32});
      unscale_gradient({.x = x.view(), .y = y.view(), .scale = 2, .tag = tag.view()});
      Values expected = values_of(x);
      for (double& value : expected) {
        value /= 64;
      }
      EXPECT_EQ(values_of(y), expected);
    }
  }
}

TEST(StepStats, AddUpTrueGradientsAndFindTheFirstBadElement) {
  for (DType dtype : floating_dtypes()) {
    for (size_t count : {1, 255, 5000}) {
      Values first = random_values(count, 1), second = random_values(count, 2);
      second[count / 2] = kInf;
      second[count - 1] = std::nan("");
      const auto size = static_cast<int64_t>(count);
      StridedArray a = make_array(dtype, {size}, first), b = make_array(dtype, {size}, second);
      StridedArray tag = make_array(DType::f64, {1}, {4});
      DeviceScalars<OptimizerScalars> step_scalars(
          {.squares = 7, .non_finite = 9, .first_position = 1});
      step_stats({a.view(), 2, kNoView, 100, true, step_scalars.view()});
      EXPECT_EQ(step_scalars->non_finite, 0);
      EXPECT_EQ(step_scalars->mixed, 0);
      EXPECT_EQ(step_scalars->first_position, -1);
      step_stats({b.view(), 2, tag.view(), 20000, false, step_scalars.view()});
      double squares = 0;
      const Values in_a = values_of(a), in_b = values_of(b);
      for (size_t i = 0; i < count; ++i) {
        const double x = in_a[i] / 2, y = in_b[i] / 8;
        squares += x * x + (std::isfinite(y) ? y * y : 0);
      }
      EXPECT_NEAR(step_scalars->squares, squares, 1e-12 * squares);
      EXPECT_EQ(step_scalars->non_finite, count == 1 ? 1 : 2);
      EXPECT_EQ(step_scalars->mixed, 1);
      EXPECT_EQ(step_scalars->first_position, 20000 + static_cast<double>(count / 2));
      step_stats({b.view(), 2, kNoView, 50, false, step_scalars.view()});
      EXPECT_EQ(step_scalars->first_position, 50 + static_cast<double>(count / 2));
    }
  }
}

double decide(const StepRequest& request, DeviceScalars<ScalerScalars>* scaler,
              DeviceScalars<OptimizerScalars>& step_scalars) {
  StridedArray outcome(DType::f64, {1});
  step_decide({.request = request,
               .scaler = scaler ? scaler->view() : kNoView,
               .step_scalars = step_scalars.view(),
               .outcome = outcome.view()});
  return values_of(outcome)[0];
}

TEST(StepDecide, WithoutAScaler) {
  DeviceScalars<OptimizerScalars> step_scalars({.squares = 100, .applied_steps = 3});
  const StepRequest clipped{.divisor = 2, .clip_norm = 2.5, .measured = true};
  EXPECT_EQ(decide(clipped, nullptr, step_scalars), kStepApplied);
  EXPECT_EQ(step_scalars->norm, 5);
  EXPECT_EQ(step_scalars->factor, 0.5);
  EXPECT_NEAR(step_scalars->clip, 0.5, 1e-6);
  EXPECT_EQ(step_scalars->apply, 1);
  EXPECT_EQ(step_scalars->applied_steps, 4);
  step_scalars->non_finite = 1;
  EXPECT_EQ(decide(clipped, nullptr, step_scalars), kStepApplied);
  EXPECT_EQ(step_scalars->clip, 0);
  EXPECT_EQ(decide({.check_finite = true, .measured = true}, nullptr, step_scalars), kStepOverflow);
  EXPECT_EQ(step_scalars->apply, 0);
  EXPECT_EQ(step_scalars->applied_steps, 5);
  EXPECT_EQ(decide({.divisor = 4}, nullptr, step_scalars), kStepApplied);
  EXPECT_EQ(step_scalars->factor, 0.25);
  EXPECT_EQ(step_scalars->norm, -1);
}

TEST(StepDecide, MovesTheScaleAsTheRuleSays) {
  const std::string steps = "..x....xx";
  DeviceScalars<ScalerScalars> scaler({.scale = 8});
  ScalerScalars expected{.scale = 8};
  double applied = 0;
  for (char step : steps) {
    DeviceScalars<OptimizerScalars> step_scalars(
        {.non_finite = step == 'x' ? 3.0 : 0.0, .applied_steps = applied});
    const bool overflow = step == 'x';
    EXPECT_EQ(decide({.measured = true, .rule = kRule}, &scaler, step_scalars),
              overflow ? kStepOverflow : kStepApplied);
    applied += !overflow;
    EXPECT_EQ(step_scalars->applied_steps, applied);
    update_scale(kRule, overflow, scale_numbers(expected));
    EXPECT_EQ(scaler->scale, expected.scale);
    EXPECT_EQ(scaler->growth_tracker, expected.growth_tracker);
    EXPECT_EQ(scaler->skipped_steps, expected.skipped_steps);
    EXPECT_EQ(scaler->overflows, expected.overflows);
  }
}

TEST(StepDecide, AtTheFloor) {
  for (AtFloor policy : {AtFloor::error, AtFloor::skip, AtFloor::fp32, AtFloor::clip}) {
    StepRequest request{.measured = true, .stale = true, .rule = kRule};
    request.rule.at_floor = policy;
    DeviceScalars<ScalerScalars> scaler({.scale = 1, .growth_tracker = 1, .loss = 5});
    DeviceScalars<OptimizerScalars> step_scalars({.non_finite = 2, .first_position = 70});
    step_replaces(
        {.rule = request.rule, .scaler = scaler.view(), .step_scalars = step_scalars.view()});
    EXPECT_EQ(step_scalars->replaces, policy == AtFloor::clip);
    const double outcome = decide(request, &scaler, step_scalars);
    EXPECT_EQ(outcome, policy == AtFloor::clip    ? kStepApplied
                       : policy == AtFloor::error ? kStepHalted
                                                  : kStepOverflow);
    EXPECT_EQ(scaler->scale, 1);
    EXPECT_EQ(scaler->needs_full_precision, policy == AtFloor::fp32);
    EXPECT_EQ(scaler->growth_tracker, policy == AtFloor::error ? 1 : 0);
    EXPECT_EQ(scaler->overflow_position, 70);
    if (policy == AtFloor::error) {  // nothing is applied until the host has seen it
      EXPECT_EQ(scaler->halted, 2);
      EXPECT_EQ(scaler->halted_loss, 5);
      step_scalars->non_finite = 0;
      EXPECT_EQ(decide(request, &scaler, step_scalars), kStepHalted);
      EXPECT_EQ(scaler->halted_after, 1);
      EXPECT_EQ(step_scalars->apply, 0);
    }
  }
}

TEST(StepPrepare, MovesCountersAndFillsTheScalarsOfEachRange) {
  constexpr size_t kMany = 70;
  for (double apply : {0.0, 1.0}) {
    DeviceScalars<OptimizerScalars> step_scalars({.apply = apply, .factor = 0.5});
    StridedArray lr = make_array(DType::f64, {2, 2}, {0.1, 0.9, 0.2, 0.8});
    StridedArray tag = make_array(DType::f64, {1}, {16});
    StridedArray counters = make_array(DType::f64, {kMany + 1}, Values(kMany + 1, 4));
    double* counter = counters.view().as<double>();
    std::vector<UpdateCounter> moves;
    std::vector<RangeSource> parameter_ranges;
    for (size_t i = 0; i < kMany; ++i) {
      moves.push_back({i == 0 ? counter + kMany : counter + i, counter + i});
      parameter_ranges.push_back({.scale = 2,
                                  .tag = i % 3 ? tag.view().as<double>() : nullptr,
                                  .lr = lr.view().as<double>() + i % 2 * 2,
                                  .momentum = lr.view().as<double>() + i % 2 * 2 + 1,
                                  .counter = counter + i,
                                  .beta2 = 0.99});
    }
    StridedArray result(DType::f64, {kMany, kScalarsOf<RangeScalars>});
    step_prepare({.counters = moves,
                  .parameter_ranges = parameter_ranges,
                  .step_scalars = step_scalars.view(),
                  .result = result.view()});
    for (size_t i = 0; i < kMany; ++i) {
      const RangeScalars& w = result.host_as<RangeScalars>()[i];
      EXPECT_EQ(w.apply, apply);
      EXPECT_EQ(w.update, 4 + apply);
      EXPECT_EQ(w.multiplier, i % 3 ? 0.5 / 32 : 0.25);
      EXPECT_EQ(w.lr, i % 2 ? 0.2 : 0.1);
      EXPECT_EQ(w.momentum, i % 2 ? 0.8 : 0.9);
      EXPECT_DOUBLE_EQ(w.first_scale, 1 / (1 - std::pow(w.momentum, w.update)));
      EXPECT_DOUBLE_EQ(w.second_scale, 1 / std::sqrt(1 - std::pow(0.99, w.update)));
    }
    EXPECT_EQ(values_of(counters)[kMany], 4);
  }
}

TEST(ScheduleStep, TakesTheRowOfThePositionWhereTheStepWasApplied) {
  constexpr int64_t kRows = 3, kGroups = 50;
  for (int64_t k : {1, 2}) {
    Values table;
    for (int64_t i = 0; i < kRows * kGroups * k; ++i) {
      table.push_back(1000 + static_cast<double>(i));
    }
    StridedArray rows = make_array(DType::f64, {kRows, kGroups, k}, table);
    StridedArray rates = make_array(DType::f64, {kGroups, 2}, Values(2 * kGroups, 7));
    DeviceScalars<ScheduleScalars> step_scalars({.position = 10, .first = 10});
    View part = rates.view();
    part.sizes = {kGroups, k};
    part.numel = kGroups * k;
    part.contiguous = k == 2;
    const auto expect_row = [&](double first) {
      for (int64_t group = 0; group < kGroups; ++group) {
        for (int64_t i = 0; i < 2; ++i) {
          const double expected =
              first < 0 || i >= k ? 7 : first + static_cast<double>(group * k + i);
          ASSERT_EQ(values_of(rates)[static_cast<size_t>(2 * group + i)], expected);
        }
      }
    };
    double position = 10;
    for (double outcome : {kStepOverflow, kStepHalted, kStepApplied, kStepApplied, kStepApplied}) {
      StridedArray ended = make_array(DType::f64, {1}, {outcome});
      schedule_step({ended.view(), step_scalars.view(), rows.view(), part});
      position += outcome == kStepApplied;
      EXPECT_EQ(step_scalars->position, position);
      const double row = std::min(position - 10, double(kRows - 1));
      expect_row(position == 10 ? -1 : 1000 + row * double(kGroups * k));
    }
  }
}

TEST(StepScalarsTest, OptimizersReadTheirNumbersThere) {
  for (DType dtype : floating_dtypes()) {
    for (double apply : {0.0, 1.0}) {
      const auto run = [&](const View& step_scalars) {
        StridedArray p = make_array(dtype, {100}, random_values(100, 1));
        StridedArray g = make_array(dtype, {100}, random_values(100, 2));
        StridedArray m = make_array(compute_dtype(dtype), {100}, Values(100)), v = m, b = m;
        const bool given = !step_scalars;
        adam_step({p.view(), kNoView, g.view(), m.view(), v.view(), given ? 0.1 : 9.0,
                   given ? 0.9 : 0.3, 0.99, 1e-8, 0.1, true, given ? 3 : 7, given ? 0.5 : 9.0,
                   kNoView, step_scalars});
        sgd_step({p.view(), kNoView, g.view(), b.view(), given ? 0.1 : 9.0, given ? 0.9 : 0.3, 0.5,
                  0.1, false, false, given ? 0.5 : 9.0, step_scalars});
        std::vector<std::byte> all;
        for (const StridedArray* array : {&p, &m, &v, &b}) {
          append(all, *array);
        }
        return all;
      };
      RangeScalars numbers = range_scalars(
          {.multiplier = 0.5, .lr = 0.1, .momentum = 0.9, .update = 3, .beta2 = 0.99});
      const std::vector<std::byte> expected = run(kNoView);
      numbers.apply = apply;
      DeviceScalars<RangeScalars> step_scalars(numbers);
      EXPECT_EQ(run(step_scalars.view()) == expected, apply == 1);
      if (apply == 0) {
        StridedArray p = make_array(dtype, {100}, random_values(100, 1));
        EXPECT_TRUE(
            std::equal(p.bytes().begin(), p.bytes().end(), run(step_scalars.view()).begin()));
      }
    }
  }
}

TEST(StepScalarsTest, ErrorsNameTheProblem) {
  DeviceScalars<OptimizerScalars> step_scalars;
  DeviceScalars<ScalerScalars> scaler;
  StridedArray g(DType::f32, {4}), outcome(DType::f64, {2});
  EXPECT_EQ(error_of([&] {
              step_stats({g.view(), 1, g.view(), 0, true, step_scalars.view()});
            }),
            "step_stats: got tag f32 [4], expected a contiguous f64 [1]");
  EXPECT_EQ(error_of([&] {
              step_stats({g.view(), 1, kNoView, 0, true, g.view()});
            }),
            "step_stats: got step_scalars f32 [4], expected a contiguous f64 [11]");
  EXPECT_EQ(error_of([&] {
              step_decide({{}, kNoView, step_scalars.view(), outcome.view()});
            }),
            "step_decide: got outcome f64 [2], expected a contiguous f64 [1]");
  EXPECT_EQ(error_of([&] {
              loss_seed({g.view(), scaler.view(), outcome.view(), g.view(), 1});
            }),
            "loss_seed: got a loss f32 [4], expected one floating element");
}

}  // namespace
}  // namespace binade::kernels::step_scalars_test
