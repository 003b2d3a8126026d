// The families optim, clip, schedulers, grad_scaler and init, through the public interfaces of
// optim/ and nn/init.h.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/init.h>
#include <binade/optim/clip.h>
#include <binade/optim/plateau.h>
#include <binade/optim/scaler_state.h>
#include <binade/optim/schedule.h>

#include <cmath>
#include <limits>

#include <tests/kernels/support/test_device.h>
#include <tests/op_table/compare.h>
#include <tests/parity/training_support.h>

namespace binade::parity {
namespace {

using op_table::to_array;

// The settings of parameter i: those of the case, changed by its group.
std::vector<optim::ParamGroup> make_groups(const Case& c, const ParameterList& all) {
  std::vector<optim::ParamGroup> groups;
  for (size_t i = 0; i < all.size(); ++i) {
    const Json& change = c.attrs.at("groups").at(i);
    optim::ParamGroup group{all.filter([&](const Parameter& p) { return p.name == all[i].name; })};
    for (const auto& [name, value] : change.items()) {
      if (name == "lr") {
        group.lr = value.get<double>();
      } else if (name == "weight_decay") {
        group.weight_decay = value.get<double>();
      } else {
        throw NotCovered{"a group's own " + name};
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

Tensor state_of(const optim::Optimizer& optimizer, const std::string& name) {
  const size_t dot = name.find('.');  // "p0.exp_avg" in the cases is "exp_avg.p0" here
  const std::string wanted = name.substr(dot + 1) + "." + name.substr(0, dot);
  for (const auto& [key, tensor] : optimizer.state_tensors()) {
    if (key == wanted) {
      return tensor;
    }
  }
  return {};
}

std::string run_optimizer(const CaseFile& file, const Case& c, DType dtype) {
  const ParameterList parameters = make_parameters(file, c, "p", true, dtype);
  const int64_t steps = c.attrs.at("steps");
  const auto optimizer = make_optimizer(c.op, c.attrs.at("hyper"), make_groups(c, parameters));
  std::vector<Array> track(parameters.size());
  for (int64_t t = 0; t < steps; ++t) {
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < parameters.size(); ++i) {
      gradients.push_back(select(file.tensor(c.inputs.at("g" + std::to_string(i)), dtype), 0, t));
    }
    set_gradients(parameters, gradients);
    if (optimizer->step() != optim::StepOutcome::applied) {
      return text("step ", t, " was not applied");
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Array now = to_array(parameters[i].value.detach());
      track[i].sizes = Dims{t + 1};
      for (int64_t size : now.sizes) {
        track[i].sizes.push_back(size);
      }
      track[i].values.insert(track[i].values.end(), now.values.begin(), now.values.end());
    }
  }
  Checker checker(c.len);
  for (const auto& [name, key] : c.outputs) {
    const bool is_f32 = name.ends_with("_f32");
    const std::string plain = is_f32 ? name.substr(0, name.size() - 4) : name;
    if (is_f32 && dtype != DType::f32) {
      continue;
    }
    if (plain.find('.') == std::string::npos) {
      const size_t i = std::stoul(plain.substr(1));
      checker.expect(name, op_table::to_tensor(track.at(i), dtype), file.values(key));
    } else {
      const Tensor state = state_of(*optimizer, plain);
      state.defined() ? checker.expect(name, state, file.values(key), 64)
                      : checker.fail("no optimizer state " + plain);
    }
  }
  return checker.failure();
}

std::string run_clip(const CaseFile& file, const Case& c, DType dtype) {
  const ParameterList parameters = make_parameters(file, c, "g", false, dtype);
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < parameters.size(); ++i) {
    gradients.push_back(file.tensor(c.inputs.at("g" + std::to_string(i)), dtype));
  }
  set_gradients(parameters, gradients);
  double total = 0;
  if (c.op == "clip_grad_norm") {
    total =
        optim::clip_grad_norm(parameters, c.attrs.at("max_norm"), number(c.attrs.at("norm_type")),
                              c.attrs.value("error_if_nonfinite", false));
  } else if (c.op == "clip_grad_value") {
    optim::clip_grad_value(parameters, c.attrs.at("clip_value"));
  } else {
    throw NotCovered{c.op};
  }
  Checker checker(c.len);
  for (const auto& [name, key] : c.outputs) {
    if (name == "total_norm") {
      checker.expect(name, full({}, total, dtype), file.values(key));
    } else {
      checker.expect(name, parameters[std::stoul(name.substr(1))].value.grad(), file.values(key));
    }
  }
  return checker.failure();
}

optim::Schedule make_schedule(const Case& c) {
  const Json& a = c.attrs;
  const double base = a.at("base_lr");
  if (c.op == "step_lr") {
    return optim::StepLR(base, {.step_size = a.at("step_size"), .gamma = a.at("gamma")});
  }
  if (c.op == "multi_step_lr") {
    return optim::MultiStepLR(base, {.milestones = a.at("milestones"), .gamma = a.at("gamma")});
  }
  if (c.op == "exponential_lr") {
    return optim::ExponentialLR(base, {.gamma = a.at("gamma")});
  }
  if (c.op == "cosine_annealing_lr") {
    return optim::CosineAnnealingLR(base, {.t_max = a.at("T_max"), .eta_min = a.at("eta_min")});
  }
  if (c.op == "cosine_annealing_warm_restarts") {
    return optim::CosineAnnealingWarmRestarts(
        base, {.t_0 = a.at("T_0"), .t_mult = a.at("T_mult"), .eta_min = a.at("eta_min")});
  }
  if (c.op == "linear_lr") {
    return optim::LinearLR(base, {.start_factor = a.at("start_factor"),
                                  .end_factor = a.at("end_factor"),
                                  .total_iters = a.at("total_iters")});
  }
  if (c.op == "polynomial_lr") {
    return optim::PolynomialLR(base, {.total_iters = a.at("total_iters"), .power = a.at("power")});
  }
  if (c.op == "warmup_cosine_lr") {
    return optim::WarmupCosine(
        base, {.warmup = a.at("warmup"), .total = a.at("total"), .min_ratio = a.at("min_ratio")});
  }
  if (c.op == "one_cycle_lr") {
    return optim::OneCycleLR(base, {.max_lr = a.at("max_lr"),
                                    .total_steps = a.at("total_steps"),
                                    .pct_start = a.at("pct_start"),
                                    .cosine = a.at("anneal_strategy") == "cos",
                                    .cycle_momentum = a.at("cycle_momentum"),
                                    .base_momentum = a.at("base_momentum"),
                                    .max_momentum = a.at("max_momentum"),
                                    .div_factor = a.at("div_factor"),
                                    .final_div_factor = a.at("final_div_factor"),
                                    .three_phase = a.at("three_phase")});
  }
  throw NotCovered{c.op};
}

// Relative to the largest learning rate: where the curve reaches 0, cos(pi) leaves a rounding
// error.
void expect_curve(const std::string& name, const std::vector<double>& got, const Array& want,
                  Checker& checker) {
  if (got.size() != want.values.size()) {
    checker.fail(text(name, " has ", got.size(), " values, expected ", want.values.size()));
    return;
  }
  for (size_t t = 0; t < got.size(); ++t) {
    const double allowed =
        1e-12 * std::max(std::fabs(want.values[t]), 1e-3 * op_table::largest_magnitude(want));
    if (!op_table::close(got[t], want.values[t], allowed)) {
      checker.fail(text(name, "[", t, "] is ", got[t], ", expected ", want.values[t]));
    }
  }
}

std::string run_plateau(const CaseFile& file, const Case& c) {
  const Json& a = c.attrs;
  optim::ReduceLROnPlateau plateau(a.at("base_lr").get<double>(),
                                   {.larger_is_better = a.at("mode") == "max",
                                    .factor = a.at("factor"),
                                    .patience = a.at("patience"),
                                    .threshold = a.at("threshold"),
                                    .relative = a.at("threshold_mode") == "rel",
                                    .cooldown = a.at("cooldown"),
                                    .min_lr = a.at("min_lr"),
                                    .eps = a.at("eps")});
  std::vector<double> lr;
  for (double metric : file.values(c.inputs.at("metric")).values) {
    lr.push_back(plateau.rate());
    plateau.advance(metric);
  }
  Checker checker(c.len);
  expect_curve("lr", lr, file.values(c.outputs.at("lr")), checker);
  return checker.failure();
}

std::string run_schedule(const CaseFile& file, const Case& c) {
  if (c.op == "reduce_lr_on_plateau") {
    return run_plateau(file, c);
  }
  const optim::Schedule schedule = make_schedule(c);
  Checker checker(c.len);
  for (const auto& [name, key] : c.outputs) {
    std::vector<double> curve;
    for (int64_t t = 0; t < c.attrs.at("steps").get<int64_t>(); ++t) {
      curve.push_back(name == "momentum" ? schedule.momentum(t) : schedule.rate(t));
    }
    expect_curve(name, curve, file.values(key), checker);
  }
  return checker.failure();
}

std::string run_scaler(const CaseFile& file, const Case& c) {
  optim::ScalerState state({.init_scale = c.attrs.at("init_scale"),
                            .growth_factor = c.attrs.at("growth_factor"),
                            .backoff_factor = c.attrs.at("backoff_factor"),
                            .growth_interval = c.attrs.at("growth_interval"),
                            .min_scale = 0,
                            .max_scale = std::numeric_limits<double>::infinity(),
                            .power_of_two = false});
  const Array gradients = file.values(c.inputs.at("grads"));
  const int64_t steps = gradients.sizes[0], width = gradients.sizes[1];
  Array skipped{{steps}, {}}, scale{{steps}, {}}, tracker{{steps}, {}};
  for (int64_t t = 0; t < steps; ++t) {
    bool overflow = false;
    for (int64_t i = 0; i < width; ++i) {
      overflow |= !std::isfinite(gradients.at({t, i}));
    }
    state.update(overflow);
    skipped.values.push_back(overflow);
    scale.values.push_back(state.scale());
    tracker.values.push_back(double(state.growth_tracker()));
  }
  Checker checker(c.len);
  checker.expect_relative("skipped", skipped, file.values(c.outputs.at("skipped")), 0);
  checker.expect_relative("scale", scale, file.values(c.outputs.at("scale")), 1e-12);
  checker.expect_relative("growth_tracker", tracker, file.values(c.outputs.at("growth_tracker")),
                          0);
  return checker.failure();
}

// The drawn values must have the requested moments, within four standard deviations of the
// sample's.
void check_draw(const Tensor& w, const nn::init::Statistics& s, bool uniform, Checker& checker) {
  const Array x = to_array(w);
  const double n = double(x.numel());
  double mean = 0, square = 0;
  for (double value : x.values) {
    mean += value / n;
    square += value * value / n;
  }
  const double std = std::sqrt(square - mean * mean);
  if (std::fabs(mean) > 4 * s.std / std::sqrt(n)) {
    checker.fail(text("the drawn mean is ", mean, ", expected 0"));
  }
  if (std::fabs(std - s.std) > 4 * s.std / std::sqrt(2 * n)) {
    checker.fail(text("the drawn deviation is ", std, ", expected ", s.std));
  }
  if (uniform && op_table::largest_magnitude(x) > s.bound * (1 + 1e-6)) {
    checker.fail(text("a drawn value exceeds the bound ", s.bound));
  }
}

std::string run_init(const CaseFile& file, const Case& c, DType dtype) {
  const Dims shape = dims(c.attrs.at("shape"));
  const bool xavier = c.op.starts_with("xavier"), uniform = c.op.ends_with("uniform");
  const Tensor w = empty(shape, dtype, kernels::test_device());
  nn::init::Statistics s{};
  manual_seed(0);
  if (xavier) {
    const double gain = c.attrs.at("gain");
    s = nn::init::xavier_statistics(shape, gain);
    uniform ? nn::init::xavier_uniform(w, gain) : nn::init::xavier_normal(w, gain);
  } else {
    const std::string nonlinearity = c.attrs.at("nonlinearity");
    const nn::init::KaimingOptions options{
        .a = c.attrs.at("a"),
        .mode =
            c.attrs.at("mode") == "fan_in" ? nn::init::FanMode::fan_in : nn::init::FanMode::fan_out,
        .nonlinearity = nn::init::parse_nonlinearity(nonlinearity)};
    s = nn::init::kaiming_statistics(shape, options);
    uniform ? nn::init::kaiming_uniform(w, options) : nn::init::kaiming_normal(w, options);
  }
  const std::map<std::string, double> got = {{"fan_in", double(s.fan_in)},
                                             {"fan_out", double(s.fan_out)},
                                             {"gain", s.gain},
                                             {"mean", s.mean},
                                             {"std", s.std},
                                             {"bound", s.bound}};
  Checker checker(c.len);
  for (const auto& [name, key] : c.outputs) {
    checker.expect_relative(name, {{}, {got.at(name)}}, file.values(key), 1e-12);
  }
  check_draw(w, s, uniform, checker);
  return checker.failure();
}

}  // namespace

bool is_training_op(const std::string& family) {
  return family == "optim" || family == "clip" || family == "schedulers" ||
         family == "grad_scaler" || family == "init";
}

std::string run_training_case(const CaseFile& file, const Case& c, DType dtype) {
  const auto run = [&]() -> std::string {
    if (file.family() == "optim") {
      return run_optimizer(file, c, dtype);
    }
    if (file.family() == "clip") {
      return run_clip(file, c, dtype);
    }
    if (file.family() == "schedulers") {
      return run_schedule(file, c);
    }
    return file.family() == "init" ? run_init(file, c, dtype) : run_scaler(file, c);
  };
  if (!c.expects_error) {
    return run();
  }
  try {
    run();
  } catch (const Error&) {
    return "";
  }
  return "no error was reported";
}

}  // namespace binade::parity
