#include <binade/core/io/named_tensors.h>
#include <binade/core/observe/timeline.h>
#include <binade/core/ops.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/create.h>
#include <binade/optim/lbfgs.h>
#include <binade/optim/line_search_internal.h>

#include <algorithm>
#include <cmath>

namespace binade::optim {
namespace {

// The policy of the caller is for the closure, not for the arithmetic here.
struct Plain {
  NoGradGuard guard;
  PrecisionScope scope{Precision::full()};
};

double dot(const Tensor& a, const Tensor& b) {
  const Plain plain;
  return sum(mul(a, b)).item();
}
double largest(const Tensor& x) {
  const Plain plain;
  return max(abs(x)).item();
}
double sum_of_sizes(const Tensor& x) {
  const Plain plain;
  return sum(abs(x)).item();
}
Tensor scaled(const Tensor& x, double factor) {
  const Plain plain;
  return mul(x, factor);
}

const ParameterList& only_group(const std::vector<ParamGroup>& groups) {
  check(groups.size() == 1, "LBFGS: got ", groups.size(),
        " groups, expected one, for there is one direction for all parameters; pass "
        "model.parameters()");
  const ParamGroup& g = groups[0];
  check(!g.lr && !g.weight_decay && !g.momentum && !g.betas && !g.eps && !g.dampening &&
            !g.nesterov && !g.amsgrad && !g.alpha && !g.centered && !g.lr_decay &&
            !g.initial_accumulator_value && !g.trust_coefficient && !g.decay_norms_and_biases &&
            !g.maximize,
        "LBFGS: got a group with options, expected a group of parameters alone; set them in "
        "LBFGSOptions");
  return g.parameters;
}

std::string numbered(const char* name, size_t i) { return name + std::to_string(i); }

double number_of(const NamedScalars& scalars, const std::string& name) {
  const auto found = scalars.find(name);
  check(found != scalars.end() && std::isfinite(found->second), "LBFGS load_state: got ",
        found == scalars.end() ? "no" : "an impossible", " number ", name,
        ", expected the state of an LBFGS; nothing was changed");
  return found->second;
}
int64_t count_of(const NamedScalars& scalars, const char* name) {
  const double value = number_of(scalars, name);
  check(value >= 0 && value <= 0x1p53 && value == std::floor(value), "LBFGS load_state: got ", name,
        " = ", value, ", expected a whole number; nothing was changed");
  return static_cast<int64_t>(value);
}

}  // namespace

LBFGS::LBFGS(const std::vector<ParamGroup>& groups, const LBFGSOptions& options)
    : LBFGS(only_group(groups), options) {}

LBFGS::LBFGS(const ParameterList& parameters, const LBFGSOptions& options)
    : parameters_(parameters), arena_(parameters.arena()), options_(options), dtype_(DType::f32) {
  check(parameters.size() > 0 && parameters.numel() > 0,
        "LBFGS: got no parameters, expected at least one; are the layers registered?");
  check(!arena_->abandoned,
        "LBFGS: got parameters from before the model was moved, converted or built into another; "
        "call parameters() after that");
  check(arena_->sharding() == Sharding::none,
        "LBFGS: got parameters that are sharded over ranks, expected whole ones; leave shard() "
        "out");
  set_lr(options.lr);
  check(options.max_iter >= 1, "LBFGS: got max_iter = ", options.max_iter,
        ", expected a number >= 1");
  check(!options.max_eval || *options.max_eval >= 1,
        "LBFGS: got max_eval = ", options.max_eval.value_or(0), ", expected a number >= 1");
  check(options.history_size >= 1, "LBFGS: got history_size = ", options.history_size,
        ", expected a number >= 1");
  check(options.tolerance_grad >= 0 && options.tolerance_change >= 0,
        "LBFGS: got tolerance_grad = ", options.tolerance_grad,
        " and tolerance_change = ", options.tolerance_change, ", expected numbers >= 0");
  for (const Parameter& parameter : parameters_) {
    dtype_ = parameter.value.dtype() == DType::f64 ? DType::f64 : dtype_;
  }
  arena_->follow_values();
  ++arena_->optimizers;
}

LBFGS::~LBFGS() { --arena_->optimizers; }

void LBFGS::set_lr(double lr) {
  check(std::isfinite(lr) && lr >= 0, "LBFGS: got lr = ", lr, ", expected a number >= 0");
  options_.lr = lr;
}

void LBFGS::zero_grad() {
  for (const Parameter& parameter : parameters_) {
    if (parameter.value.requires_grad()) {
      parameter.value.zero_grad();
    }
  }
}

Tensor LBFGS::flat(const std::vector<Tensor>& parts) const {
  std::vector<Tensor> lines;
  for (const Tensor& part : parts) {
    lines.push_back(reshape(cast(part, dtype_), {part.numel()}));
  }
  return cat(lines, 0);
}

// Parameters without a gradient stay where they are.
LBFGS::Evaluation LBFGS::evaluate(const std::function<Tensor()>& closure) {
  zero_grad();
  Tensor loss;
  {
    const GradGuard guard;
    loss = closure();
  }
  const Plain plain;
  ++evaluations_;
  check(loss.defined() && loss.numel() == 1, "LBFGS: got a closure that returned ",
        loss.defined() ? text("shape ", loss.sizes()) : "an undefined tensor",
        ", expected the loss, one number");
  std::vector<Tensor> gradients;
  bool any = false;
  for (const Parameter& parameter : parameters_) {
    const Tensor gradient = parameter.value.requires_grad() ? parameter.value.grad() : Tensor();
    any = any || gradient.defined();
    gradients.push_back(
        gradient.defined() ? gradient : zeros(parameter.value.sizes(), dtype_, arena_->device()));
  }
  check(any,
        "LBFGS: got no gradient after the closure, expected that of a parameter; call "
        "loss.backward() in it");
  const double sign = options_.maximize ? -1 : 1;
  return {sign * loss.item(), scaled(flat(gradients), sign)};
}

std::vector<Tensor> LBFGS::exact_values() const {
  std::vector<Tensor> values;
  for (const Parameter& parameter : parameters_) {
    values.push_back(clone(arena_->exact_value(parameter).detach()));
  }
  return values;
}

void LBFGS::move_to(const std::vector<Tensor>& from, double t) {
  const Plain plain;
  int64_t at = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const int64_t numel = from[i].numel();
    const Tensor part = reshape(slice(direction_, 0, at, at + numel), from[i].sizes());
    arena_->set_value(parameters_[i],
                      cast(add(cast(from[i], dtype_), scaled(part, t)), from[i].dtype()));
    at += numel;
  }
}

// The two loops over the history: the direction is -H gradient, with an estimate H of the inverse
// of the second derivatives.
void LBFGS::update_direction(const Tensor& gradient) {
  const Plain plain;
  if (iterations_ == 1) {
    direction_ = scaled(gradient, -1);
    history_.clear();
    scale_ = 1;
    return;
  }
  const Tensor change = sub(gradient, previous_), step = scaled(direction_, t_);
  const double curvature = dot(change, step);
  if (curvature > 1e-10) {
    if (history_.size() == static_cast<size_t>(options_.history_size)) {
      history_.erase(history_.begin());
    }
    history_.push_back({step, change, 1 / curvature});
    scale_ = curvature / dot(change, change);
  }
  Tensor q = scaled(gradient, -1);
  std::vector<double> along(history_.size());
  for (size_t i = history_.size(); i-- > 0;) {
    along[i] = dot(history_[i].step, q) * history_[i].curvature;
    q = add(q, scaled(history_[i].change, -along[i]));
  }
  q = scaled(q, scale_);
  for (size_t i = 0; i < history_.size(); ++i) {
    const double back = dot(history_[i].change, q) * history_[i].curvature;
    q = add(q, scaled(history_[i].step, along[i] - back));
  }
  direction_ = q;
}

// One step along the direction; `now` is left as it was after the last iteration without a line
// search. Returns the number of evaluations.
int64_t LBFGS::advance(const std::function<Tensor()>& closure, const std::vector<Tensor>& start,
                       double slope, const Budget& budget, Evaluation& now) {
  if (options_.line_search == LineSearch::none) {
    move_to(start, t_);
    if (budget.is_last) {
      return 0;
    }
    now = evaluate(closure);
    return 1;
  }
  const auto trial = [&](double t) -> Trial {
    move_to(start, t);
    const Evaluation at = evaluate(closure);
    return {t, at.loss, dot(at.gradient, direction_), at.gradient};
  };
  const WolfeResult found =
      strong_wolfe(trial, {0, now.loss, slope, now.gradient},
                   {t_, largest(direction_), options_.tolerance_change, budget.evaluations});
  t_ = found.best.t;
  now = {found.best.loss, found.best.gradient};
  move_to(start, t_);
  return found.evaluations;
}

double LBFGS::step(const std::function<Tensor()>& closure) {
  const PhaseSpan phase("optimizer");
  const NoGradGuard guard;
  arena_->follow_values();
  const int64_t max_eval = options_.max_eval.value_or(options_.max_iter * 5 / 4);
  Evaluation now = evaluate(closure);
  const double first = options_.maximize ? -now.loss : now.loss;
  const double size = largest(now.gradient);
  check(std::isfinite(now.loss) && std::isfinite(size), "LBFGS: got a loss of ", first,
        " and a gradient whose largest element is ", size,
        ", expected finite numbers; look for the first NaN with AnomalyMode");
  int64_t evaluations = 1;
  bool done = size <= options_.tolerance_grad;
  for (int64_t i = 1; !done && i <= options_.max_iter; ++i) {
    ++iterations_;
    update_direction(now.gradient);
    previous_ = now.gradient;
    const double previous_loss = now.loss;
    t_ = iterations_ == 1 ? std::min(1.0, 1 / sum_of_sizes(now.gradient)) * options_.lr
                          : options_.lr;
    const double slope = dot(now.gradient, direction_);
    if (slope > -options_.tolerance_change) {
      break;
    }
    const std::vector<Tensor> start = exact_values();
    try {
      evaluations +=
          advance(closure, start, slope, {max_eval - evaluations, i == options_.max_iter}, now);
    } catch (...) {
      move_to(start, 0);
      history_.clear();
      direction_ = previous_ = Tensor();
      iterations_ = 0;
      throw;
    }
    done = evaluations >= max_eval || largest(now.gradient) <= options_.tolerance_grad ||
           largest(scaled(direction_, t_)) <= options_.tolerance_change ||
           std::abs(now.loss - previous_loss) < options_.tolerance_change;
  }
  zero_grad();
  return first;
}

// saving and loading ------------------------------------------------------------------------------

NamedTensors LBFGS::state_tensors() const {
  arena_->follow_values();
  NamedTensors state;
  for (const Parameter& parameter : parameters_) {
    if (arena_->segments()[static_cast<size_t>(parameter.segment)].masters.defined()) {
      state.emplace_back("master." + parameter.name, arena_->exact_value(parameter));
    }
  }
  if (direction_.defined()) {
    state.emplace_back("direction", direction_);
    state.emplace_back("previous_gradient", previous_);
  }
  for (size_t i = 0; i < history_.size(); ++i) {
    state.emplace_back(numbered("step.", i), history_[i].step);
    state.emplace_back(numbered("change.", i), history_[i].change);
  }
  return state;
}

NamedScalars LBFGS::state_scalars() const {
  NamedScalars scalars = {{"lr", options_.lr},
                          {"iterations", static_cast<double>(iterations_)},
                          {"evaluations", static_cast<double>(evaluations_)},
                          {"history", static_cast<double>(history_.size())},
                          {"t", t_},
                          {"scale", scale_}};
  for (size_t i = 0; i < history_.size(); ++i) {
    scalars[numbered("curvature.", i)] = history_[i].curvature;
  }
  return scalars;
}

void LBFGS::load_state(const NamedTensors& tensors, const NamedScalars& scalars) {
  const int64_t iterations = count_of(scalars, "iterations"),
                evaluations = count_of(scalars, "evaluations"),
                pairs = count_of(scalars, "history");
  const double lr = number_of(scalars, "lr"), t = number_of(scalars, "t"),
               scale = number_of(scalars, "scale");
  check(lr >= 0, "LBFGS load_state: got lr = ", lr, ", expected a number >= 0");
  check(pairs <= options_.history_size, "LBFGS load_state: got ", pairs,
        " pairs, expected at most history_size = ", options_.history_size,
        "; make the optimizer with a longer history; nothing was changed");
  const Dims all = {parameters_.numel()};
  std::vector<LoadTarget> targets;
  for (const Parameter& parameter : parameters_) {
    if (arena_->segments()[static_cast<size_t>(parameter.segment)].masters.defined()) {
      targets.push_back({{"master." + parameter.name}, parameter.value.sizes()});
    }
  }
  const size_t masters = targets.size();
  if (iterations > 0) {
    targets.push_back({{"direction"}, all});
    targets.push_back({{"previous_gradient"}, all});
  }
  std::vector<double> curvatures;
  for (size_t i = 0; i < static_cast<size_t>(pairs); ++i) {
    targets.push_back({{numbered("step.", i)}, all});
    targets.push_back({{numbered("change.", i)}, all});
    curvatures.push_back(number_of(scalars, numbered("curvature.", i)));
  }
  const std::vector<Tensor> sources = match_named("LBFGS load_state", targets, tensors);
  const NoGradGuard guard;
  size_t next = 0;
  for (const Parameter& parameter : parameters_) {
    if (next < masters &&
        arena_->segments()[static_cast<size_t>(parameter.segment)].masters.defined()) {
      arena_->set_value(parameter, sources[next++]);
    }
  }
  const auto vector = [&] { return clone(cast(sources[next++].to(arena_->device()), dtype_)); };
  direction_ = iterations > 0 ? vector() : Tensor();
  previous_ = iterations > 0 ? vector() : Tensor();
  history_.clear();
  for (double curvature : curvatures) {
    Tensor step = vector(), change = vector();
    history_.push_back({std::move(step), std::move(change), curvature});
  }
  options_.lr = lr;
  t_ = t;
  scale_ = scale;
  iterations_ = iterations;
  evaluations_ = evaluations;
  zero_grad();
}

}  // namespace binade::optim
