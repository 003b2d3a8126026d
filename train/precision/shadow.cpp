#include <binade/core/autograd/autograd.h>
#include <binade/core/io/file_system.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/observer.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/nn/stored_as.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/precision/shadow_report.h>
#include <binade/train/precision/shadow_runs_internal.h>
#include <binade/train/precision/step_undo_internal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace binade::train {
namespace {

constexpr double kGoodResidual = 0.02;
constexpr int kMostIntervals = 8;  // of the path from the f64 run to the low run

data::Batch batch_in_f64(const data::Batch& batch) {
  data::Batch wide = batch;
  for (const std::string& name : batch.names()) {
    const Tensor& field = batch[name];
    if (is_floating(field.dtype())) {
      wide.set(name, field.to(DType::f64));
    }
  }
  return wide;
}

// The step's other observers, such as a lens, do not see the runs of a shadow.
class OthersAway {
 public:
  OthersAway() : before_(std::exchange(binade::detail::thread_state.observers, nullptr)) {}
  ~OthersAway() { binade::detail::thread_state.observers = before_; }
  OthersAway(const OthersAway&) = delete;
  OthersAway& operator=(const OthersAway&) = delete;

 private:
  ObserverScope* before_;
};

// Reading a loss from a device is no op of the step.
double value_of(const Tensor& loss) {
  const UnobservedGuard unobserved;
  return loss.item();
}

// The budgets of an f64 run: of its ops, and of the roundings of the weights.
struct Budgets {
  std::vector<double> ops, weights;
};

class ShadowMaker {
 public:
  explicit ShadowMaker(const StepToDiagnose& step)
      : step_(step), micro_(step.batches[0]), wide_(batch_in_f64(micro_.batch)) {}

  ShadowStep make() {
    run_low();
    run_exact();
    run_forced();
    found_.noise = noise();
    if (!std::isfinite(found_.loss)) {
      found_.text = "the loss is not finite: its budget is not known";
    } else if (!std::isfinite(found_.explained)) {
      found_.text = "the result of an op is not finite: the budget is not known";
    } else if (found_.resolved()) {
      integrate();
    }
    fill();
    return std::move(found_);
  }

 private:
  Tensor loss_of(const data::Batch& batch) {
    generator() = micro_.random;
    Tensor loss = step_.step(step_.model, batch).loss;
    check_mean_loss("training", loss);
    return loss;
  }

  // A model in f64 whose weights are rounded by this share, until the scope ends.
  nn::StoredAs in_f64(double share) {
    return {step_.model, Precision::full(), {.wide = DType::f64, .rounding = share}};
  }

  void run_low() {
    const StepUndo undo(step_);
    StepUndo::clear(step_.parameters);
    const double scale = step_.scale * micro_.weight;
    LowRun run(calls_, scale);
    {
      const ObserverScope scope(run);
      const Tensor loss = loss_of(micro_.batch);
      found_.loss = value_of(loss);
      found_.scale = step_.scale;
      binade::backward(loss, full(loss.sizes(), scale, loss.dtype(), loss.device()),
                       {.scale = step_.scale});
    }
    for (const auto& [name, gradient] : stored_gradients(step_.parameters)) {
      low_gradients_[name] = on_host_f64(gradient, scale);
    }
  }

  // Forward and backward in f64; `after` may go backward again.
  template <class F>
  Budgets run(ExactRun& run, double share, double& loss, F&& after) {
    const StepUndo undo(step_);
    const nn::StoredAs stored = in_f64(share);
    for (const auto& weight : stored.parameters()) {
      const Tensor value = on_host_f64(weight.value), rounding = on_host_f64(weight.rounding);
      const double size = norm_squared(value);
      run.add_input(weight.value, size > 0 ? norm_squared(rounding) / size : 0);
    }
    const ObserverScope scope(run);
    const Tensor result = loss_of(wide_);
    loss = value_of(result);
    check(run.ops() == calls_.size(), "shadow: got ", run.ops(), " ops in f64 and ", calls_.size(),
          " in the step, expected the same ops; a step that chooses by dtype has no shadow");
    backward(result, ones(result.sizes(), result.dtype(), result.device()), {.retain_graph = true});
    Budgets budgets{.ops = run.budgets(), .weights = {}};
    for (const auto& weight : stored.parameters()) {
      const Tensor gradient = weight.value.grad();
      budgets.weights.push_back(
          gradient.defined() ? dot(on_host_f64(gradient), on_host_f64(weight.rounding)) : 0);
    }
    after(result, stored);
    return budgets;
  }

  void run_exact() {
    ExactRun watch(calls_, 0);
    run(watch, 0, found_.exact, [&](const Tensor&, const nn::StoredAs& stored) {
      for (const auto& weight : stored.parameters()) {
        weights_.push_back(weight_of(weight));
      }
    });
  }

  ShadowWeight weight_of(const nn::StoredAs::Parameter& parameter) {
    ShadowWeight weight{.name = parameter.path};
    const double size = norm_squared(on_host_f64(parameter.value));
    weight.rounding =
        size > 0 ? std::sqrt(norm_squared(on_host_f64(parameter.rounding)) / size) : 0;
    const Tensor gradient = on_host_f64(parameter.value.grad());
    exact_gradients_.push_back(gradient);
    const auto low = low_gradients_.find(parameter.path);
    if (low != low_gradients_.end() && gradient.defined()) {
      ShadowSums sums;
      sums.add({.low = low->second,
                .introduced = zeros(low->second.sizes(), DType::f64),
                .exact = gradient,
                .stored = DType::f64});
      const ShadowErrors errors = sums.errors();
      weight.gradient_error = errors.total;
      weight.gradient_cosine = errors.cosine;
    }
    return weight;
  }

  // Runs every op on the inputs of the low run, forward and then backward. This gives the adjoints
  // of the low end of the path; those of the f64 end were noted before.
  void run_forced() {
    ExactRun watch(calls_, 1);
    double loss = 0;
    Budgets low = run(watch, 1, loss, [&](const Tensor& result, const nn::StoredAs& stored) {
      for (size_t i = 0; i < stored.parameters().size(); ++i) {
        const Tensor rounding = on_host_f64(stored.parameters()[i].rounding);
        exact_.weights.push_back(exact_gradients_[i].defined() ? dot(exact_gradients_[i], rounding)
                                                               : 0);
      }
      watch.force_gradients();
      backward(result, ones(result.sizes(), result.dtype(), result.device()));
    });
    rest_ = found_.loss - loss;  // a cast of the loss itself
    forward_ = watch.forward();
    backward_ = watch.backward();
    accumulation_ = watch.accumulation();
    for (const ShadowOpCall& call : calls_) {
      double sum = 0;
      for (const ShadowResult& result : call.results) {
        if (result.gradient.defined() && result.introduced.defined()) {
          sum += dot(result.gradient, result.introduced);
        }
      }
      exact_.ops.push_back(sum);
    }
    budgets_ = {{0, exact_}, {1, std::move(low)}};
    weigh(1);
  }

  double noise() {
    double most = std::abs(found_.exact) * 0x1p-52;
    for (const uint64_t seed : {1, 2, 3}) {
      const StepUndo undo(step_);
      const nn::StoredAs stored = in_f64(0);
      ExactRun watch(calls_, 0);
      watch.shake(seed);
      const ObserverScope scope(watch);
      most = std::max(most, std::abs(value_of(loss_of(wide_)) - found_.exact));
    }
    return most;
  }

  // Adds points on the path until the budget explains the difference.
  void integrate() {
    for (int intervals = 2; intervals <= kMostIntervals; intervals *= 2) {
      if (found_.residual() <= kGoodResidual) {
        return;
      }
      for (int i = 1; i < intervals; i += 2) {
        const double share = static_cast<double>(i) / intervals;
        ExactRun watch(calls_, share);
        double loss = 0;
        budgets_[share] = run(watch, share, loss, [](const Tensor&, const nn::StoredAs&) {});
      }
      weigh(intervals);
    }
  }

  // The mean of the budgets over the path: Simpson's rule, or the trapezoidal rule at two points.
  void weigh(int intervals) {
    total_ = {std::vector<double>(calls_.size()), std::vector<double>(weights_.size())};
    for (const auto& [share, budgets] : budgets_) {
      const auto at = std::lround(share * intervals);
      const bool end = at == 0 || at == intervals;
      const double weight = intervals == 1 ? 0.5
                                           : (end           ? 1.0
                                              : at % 2 == 1 ? 4.0
                                                            : 2.0) /
                                                 (3.0 * intervals);
      for (size_t i = 0; i < total_.ops.size(); ++i) {
        total_.ops[i] += weight * budgets.ops[i];
      }
      for (size_t i = 0; i < total_.weights.size(); ++i) {
        total_.weights[i] += weight * budgets.weights[i];
      }
    }
    found_.points = intervals + 1;
    found_.explained = rest_;
    for (const std::vector<double>* part : {&total_.ops, &total_.weights}) {
      for (const double budget : *part) {
        found_.explained += budget;
      }
    }
  }

  // One row per op and module, in the order of their first call.
  void fill() {
    std::map<std::pair<std::string, std::string>, size_t> index;
    std::vector<std::pair<ShadowSums, ShadowSums>> sums;
    const bool finite = std::isfinite(found_.loss);
    for (size_t i = 0; i < calls_.size(); ++i) {
      const ShadowOpCall& call = calls_[i];
      const bool floats = std::any_of(call.results.begin(), call.results.end(),
                                      [](const ShadowResult& r) { return r.floating; });
      if (!floats || call.skipped) {
        continue;
      }
      const std::pair key(label_text(call.module), std::string(call.op));
      const auto [at, is_new] = index.try_emplace(key, found_.rows.size());
      if (is_new) {
        found_.rows.push_back(
            {.module = key.first, .op = key.second, .stored = text(call.results[0].stored)});
        sums.emplace_back();
      }
      ShadowRow& row = found_.rows[at->second];
      ++row.calls;
      row.budget += finite ? total_.ops[i] : 0;
      row.accumulation = std::max(row.accumulation, accumulation_[i]);
      sums[at->second].first.merge(forward_[i]);
      sums[at->second].second.merge(backward_[i]);
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      found_.rows[i].forward = sums[i].first.errors();
      found_.rows[i].backward = sums[i].second.errors();
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      weights_[i].budget = finite ? total_.weights[i] : 0;
    }
    found_.weights = std::move(weights_);
    if (rest_ != 0 && finite) {
      found_.rows.push_back({.module = "", .op = "cast", .stored = "", .budget = rest_});
    }
  }

  const StepToDiagnose& step_;
  const StepBatch& micro_;
  const data::Batch wide_;
  ShadowStep found_;
  ShadowCalls calls_;
  std::map<std::string, Tensor> low_gradients_;
  std::vector<Tensor> exact_gradients_;
  std::vector<ShadowWeight> weights_;
  std::vector<ShadowSums> forward_, backward_;
  std::vector<double> accumulation_;
  Budgets exact_, total_;
  std::map<double, Budgets> budgets_;  // by the share of the path
  double rest_ = 0;
};

}  // namespace

ShadowStep shadow(const StepToDiagnose& step) {
  check(!step.batches.empty() && step.scale > 0, "shadow: got ", step.batches.size(),
        " batches and a scale of ", step.scale, ", expected at least one and a positive scale");
  const OthersAway away;
  return ShadowMaker(step).make();
}

Shadow::Shadow(const ShadowOptions& options) : options_(options) {
  check(options.every >= 1, "shadow: got every = ", options.every, ", expected at least 1");
  if (!options.file.empty()) {
    append_to_file(options_.file, "", options_.files ? *options_.files : file_system(),
                   !options_.append);
  }
}

void Shadow::look(int64_t step, const StepToDiagnose& what) {
  try {
    last_ = shadow(what);
  } catch (const Error& error) {
    last_ = {};
    last_.text = error.what();
  }
  last_.step = step;
  if (!last_.text.empty() && !std::exchange(warned_, true)) {
    warn(text("shadow of step ", step, ": ", last_.text));
  }
  looked_ = true;
  if (!options_.file.empty()) {
    append_to_file(options_.file, to_json(last_) + "\n",
                   options_.files ? *options_.files : file_system(), false);
  }
}

}  // namespace binade::train
