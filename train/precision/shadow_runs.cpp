#include <binade/core/autograd/op.h>
#include <binade/core/observe/label.h>
#include <binade/train/precision/shadow_runs_internal.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace binade::train {
namespace {

constexpr double kShake = 4 * 0x1p-53;  // relative

bool is_result_view(const OpEvent& event, const Tensor& y) {
  return std::any_of(event.inputs.begin(), event.inputs.end(), [&y](const Tensor* x) {
    return x->defined() && x->handle()->storage.get() == y.handle()->storage.get();
  });
}

// A number from -1 to 1.
double draw(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;  // splitmix64
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>(static_cast<int64_t>(z ^ (z >> 31))) * 0x1p-63;
}

std::string call_text(const char* op, uint32_t module) {
  const std::string path = label_text(module);
  return path.empty() ? op : text(op, " in module ", path);
}

// a - b, of the same number of elements.
Tensor difference(const Tensor& a, const Tensor& b) {
  Tensor d = empty(a.sizes(), DType::f64);
  const double *x = a.data<double>(), *y = b.data<double>();
  double* out = d.data<double>();
  for (int64_t i = 0; i < d.numel(); ++i) {
    out[i] = x[i] - y[i];
  }
  return d;
}

}  // namespace

bool is_cast(const char* op) {
  const std::string_view name = op;
  return name == "cast" || name == "policy_cast";
}

void ResultIndex::add(const Tensor& result, Place place) {
  held_.push_back(result);
  places_[result.handle().get()] = place;
}

const ResultIndex::Place* ResultIndex::find(const TensorData* data) const {
  const auto found = places_.find(data);
  return found == places_.end() ? nullptr : &found->second;
}

// the low run -------------------------------------------------------------------------------------

void LowRun::result(const OpEvent& event) {
  if (event.in_backward) {
    return;
  }
  if (is_cast(event.op.name)) {
    index_.hold(event.outputs[0]);
    return;
  }
  ShadowOpCall call{.op = event.op.name, .module = event.module};
  call.skipped =
      !event.recording || std::none_of(event.inputs.begin(), event.inputs.end(),
                                       [](const Tensor* x) { return x->requires_grad(); });
  for (const Tensor& y : event.outputs) {
    ShadowResult result{.sizes = y.sizes(), .stored = y.dtype()};
    result.floating = is_floating(y.dtype());
    result.low = result.floating && !call.skipped ? on_host_f64(y) : Tensor();
    index_.add(y, {calls_.size(), call.results.size()});
    call.results.push_back(std::move(result));
  }
  calls_.push_back(std::move(call));
}

void LowRun::upstream(const GradientEvent& event) {
  const ResultIndex::Place* place = event.node.leaf ? nullptr : index_.find(event.node.output);
  if (place && event.upstream.defined()) {
    calls_[place->call].results[place->result].low_gradient = on_host_f64(event.upstream, scale_);
  }
}

void LowRun::gradients(const GradientEvent& event) {
  const ResultIndex::Place* place = event.node.part ? nullptr : index_.find(event.node.output);
  if (!place) {
    return;
  }
  std::vector<Tensor>& all = calls_[place->call].low_gradients;
  for (int i = 0; i < event.node.edge_count; ++i) {
    all.push_back(on_host_f64((*event.gradients)[i], scale_));
  }
}

// the f64 runs ------------------------------------------------------------------------------------

void ExactRun::add_input(const Tensor& t, double relative_squared) {
  held_.push_back(t);
  relative_[t.handle().get()] = relative_squared;
}

double ExactRun::error_of_inputs(const OpEvent& event) const {
  double sum = 0;
  for (const Tensor* x : event.inputs) {
    const auto found = relative_.find(x->handle().get());
    sum += found == relative_.end() ? 0 : found->second;
  }
  return sum;
}

ShadowOpCall& ExactRun::next_call(const OpEvent& event) {
  check(next_ < calls_.size(), "shadow: got ", call_text(event.op.name, event.module),
        " in the f64 run after the last op of the step, expected the same ops; a step that chooses "
        "by dtype has no shadow");
  ShadowOpCall& call = calls_[next_];
  bool same = std::string_view(call.op) == event.op.name && call.module == event.module &&
              call.results.size() == event.outputs.size();
  for (size_t k = 0; same && k < call.results.size(); ++k) {
    same = call.results[k].sizes == event.outputs[k].sizes() &&
           call.results[k].floating == is_floating(event.outputs[k].dtype());
  }
  check(same, "shadow: got ", call_text(event.op.name, event.module), " as op ", next_,
        " of the f64 run, where the step has ", call_text(call.op, call.module),
        ", expected the same ops and shapes; a step that chooses by dtype has no shadow");
  ++next_;
  return call;
}

void ExactRun::result(const OpEvent& event) {
  if (event.in_backward) {
    return;
  }
  if (is_cast(event.op.name)) {  // in the step's own code; its result has the error of its input
    add_input(event.outputs[0], error_of_inputs(event));
    return;
  }
  ShadowOpCall& call = next_call(event);
  const size_t index = next_ - 1;
  if (forward_.size() < calls_.size()) {
    forward_.resize(calls_.size());
    backward_.resize(calls_.size());
    accumulation_.resize(calls_.size());
    budgets_.resize(calls_.size());
  }
  for (size_t k = 0; k < event.outputs.size(); ++k) {
    const Tensor& y = event.outputs[k];
    index_.add(y, {index, k});
    ShadowResult& result = call.results[k];
    if (!result.floating) {
      continue;
    }
    if (call.skipped) {
      relative_[y.handle().get()] = error_of_inputs(event);
    } else if (shaken_ != 0) {
      if (!is_result_view(event, y)) {
        shake_values(y);
      }
    } else if (share_ == 0) {
      result.exact = on_host_f64(y);
    } else if (share_ == 1) {
      compare(event, index, k);
    } else if (!is_result_view(event, y)) {
      const Tensor values = on_host_f64(y);
      double* at = values.data<double>();
      const double* introduced = result.introduced.data<double>();
      for (int64_t i = 0; i < values.numel(); ++i) {
        at[i] += share_ * introduced[i];
      }
      write_from_host(values, y);
    }
  }
}

// Compares the op's f64 result with the low run's result, and then replaces it by the low result.
void ExactRun::compare(const OpEvent& event, size_t call, size_t k) {
  const Tensor& y = event.outputs[k];
  ShadowResult& result = calls_[call].results[k];
  const bool view = is_result_view(event, y);
  result.introduced =
      view ? zeros(result.sizes, DType::f64) : difference(result.low, on_host_f64(y));
  result.relative = forward_[call].add({.low = result.low,
                                        .introduced = result.introduced,
                                        .exact = result.exact,
                                        .stored = result.stored,
                                        .inputs = error_of_inputs(event)});
  relative_[y.handle().get()] = result.relative;
  if (!view) {
    write_from_host(result.low, y);
  }
}

void ExactRun::shake_values(const Tensor& y) {
  const Tensor values = on_host_f64(y);
  double* at = values.data<double>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    at[i] *= 1 + kShake * draw(shaken_);
  }
  write_from_host(values, y);
}

void ExactRun::upstream(const GradientEvent& event) {
  const ResultIndex::Place* place = event.node.leaf ? nullptr : index_.find(event.node.output);
  if (!place || !event.upstream.defined()) {
    return;
  }
  ShadowResult& result = calls_[place->call].results[place->result];
  const Tensor gradient = on_host_f64(event.upstream);
  if (!forced_) {
    if (share_ == 0) {
      result.gradient = gradient;
    }
    if (result.introduced.defined()) {
      budgets_[place->call] += dot(gradient, result.introduced);
    }
    return;
  }
  if (!result.low_gradient.defined() || !event.replaceable) {
    return;
  }
  const double size = norm_squared(result.low_gradient);
  if (size > 0) {
    const double error = norm_squared(difference(result.low_gradient, gradient)) / size;
    accumulation_[place->call] = std::max(accumulation_[place->call], std::sqrt(error));
  }
  Tensor replacement =
      empty(event.upstream.sizes(), event.upstream.dtype(), event.upstream.device());
  write_from_host(result.low_gradient, replacement);
  *event.replaceable = std::move(replacement);
}

void ExactRun::gradients(const GradientEvent& event) {
  const ResultIndex::Place* place = event.node.part ? nullptr : index_.find(event.node.output);
  if (!place) {
    return;
  }
  ShadowOpCall& call = calls_[place->call];
  if (!forced_) {
    for (int i = 0; share_ == 0 && i < event.node.edge_count; ++i) {
      call.gradients.push_back(on_host_f64((*event.gradients)[i]));
    }
    return;
  }
  double arriving = 0;  // the squared relative error of the gradient of its result
  for (const ShadowResult& result : call.results) {
    const double size = result.gradient.defined() ? norm_squared(result.gradient) : 0;
    if (result.low_gradient.defined() && size > 0) {
      arriving += norm_squared(difference(result.low_gradient, result.gradient)) / size;
    }
  }
  const auto count = static_cast<size_t>(event.node.edge_count);
  for (size_t i = 0; i < std::min({count, call.low_gradients.size(), call.gradients.size()}); ++i) {
    Tensor& own = (*event.gradients)[static_cast<int>(i)];
    const Tensor &low = call.low_gradients[i], &exact = call.gradients[i];
    if (!own.defined() || !low.defined() || !exact.defined() || !(own.sizes() == low.sizes())) {
      continue;
    }
    const Tensor introduced = difference(low, on_host_f64(own));
    backward_[place->call].add({.low = low,
                                .introduced = introduced,
                                .exact = exact,
                                .stored = call.results[0].stored,
                                .inputs = arriving});
    Tensor replacement = empty(own.sizes(), own.dtype(), own.device());
    write_from_host(low, replacement);
    own = std::move(replacement);
  }
}

}  // namespace binade::train
