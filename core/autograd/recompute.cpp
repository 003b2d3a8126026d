#include <binade/core/autograd/recompute.h>

#include <binade/core/autograd/grad_internal.h>
#include <binade/core/autograd/op.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/observer.h>
#include <binade/core/precision/format_calls_internal.h>
#include <binade/core/tensor/create.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace binade {
namespace {

constexpr Op kRecompute{"recompute", OpClass::movement, true};
constexpr Op kArgument{"recompute_argument", OpClass::movement, true};

// The state that the first run depended on, besides its inputs.
struct Circumstances {
  Generator random = generator();
  Precision precision = detail::thread_state.precision ? detail::thread_state.precision->precision
                                                       : Precision::full();
  uint32_t label = detail::thread_state.label;
  std::optional<FormatCalls> calls = calls_now();
  std::shared_ptr<ScaleTape> scales = std::make_shared<ScaleTape>();  // of the first run

 private:
  static std::optional<FormatCalls> calls_now() {
    const PrecisionScope* scope = detail::thread_state.precision;
    return scope ? FormatCalls::of(*scope) : std::nullopt;
  }
};

class Again {
 public:
  explicit Again(const Circumstances& then)
      : random_(std::exchange(generator(), then.random)),
        again_(std::exchange(detail::thread_state.recomputing, true)),
        precision_(then.precision),
        label_(then.label),
        scales_(*then.scales) {
    if (then.calls) {
      FormatCalls::in(precision_) = then.calls->resumed();
    }
  }
  ~Again() {
    generator() = random_;
    detail::thread_state.recomputing = again_;
  }
  Again(const Again&) = delete;
  Again& operator=(const Again&) = delete;

 private:
  Generator random_;
  bool again_;
  PrecisionScope precision_;
  LabelScope label_;
  GradGuard record_;
  TakenScales scales_;
};

// Collects the tensors with a history that ops read while nothing is recorded: the tensors that a
// function captured.
class CaptureCollector final : public OpObserver {
 public:
  void result(const OpEvent& event) override {
    for (const Tensor* input : event.inputs) {
      if (!event.recording && input->history() && !knows(*input)) {
        tensors_.push_back(*input);
      }
    }
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  bool knows(const Tensor& t) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&t](const Tensor& known) {
      return known.history().get() == t.history().get();
    });
  }
  std::vector<Tensor> tensors_;
};

// The argument of the second run: a new value, so that its gradient is separate from the gradient
// of the tensor it was computed from. Under double backward x has a history, and the gradient goes
// on into it.
Tensor argument(const Tensor& x, bool wanted) {
  Tensor y = x.detach();
  if (!x.requires_grad()) {
    if (wanted) {
      y.require_grad();
      y.history()->op = &kArgument;  // no parameter
    }
    return y;
  }
  return kArgument.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy}; });
}

std::vector<Tensor> run(const ManyToMany& function, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs = function(inputs);
  for (const Tensor& y : outputs) {
    check(y.defined(), "recompute: the function gave an undefined tensor");
  }
  return outputs;
}

struct Form {
  Dims sizes;
  DType dtype;
};

void check_same(const std::vector<Tensor>& outputs, const std::vector<Form>& first) {
  check(outputs.size() == first.size(), "recompute: the function gave ", outputs.size(),
        " tensors in backward and ", first.size(), " before, expected the same both times");
  for (size_t i = 0; i < outputs.size(); ++i) {
    check(outputs[i].sizes() == first[i].sizes && outputs[i].dtype() == first[i].dtype,
          "recompute: the function gave shape ", outputs[i].sizes(), ", ", outputs[i].dtype(),
          " in backward and ", first[i].sizes, ", ", first[i].dtype,
          " before, expected the same both times");
  }
}

// One segment of a model. Its node's inputs are the arguments, then the captured tensors.
struct Segment {
  ManyToMany function;
  Circumstances then = {};
  size_t arguments = 0;
  std::vector<Tensor> captured = {};
  std::vector<Form> results = {};  // of the first run
  std::vector<int> recorded = {};  // for each of them its number among the node's outputs, or -1

  Grads backward(std::span<const Tensor> dys, Needs needs, std::span<const Tensor> saved) const {
    const bool twice = grad_enabled();
    std::vector<Tensor> inputs, targets, results_again, outputs, upstream;
    {
      const Again again(then);
      for (size_t i = 0; i < arguments; ++i) {
        inputs.push_back(argument(saved[i], needs[static_cast<int>(i)]));
      }
      results_again = run(function, inputs);
    }
    check_same(results_again, results);
    for (size_t i = 0; i < results.size(); ++i) {
      if (recorded[i] >= 0 && dys[static_cast<size_t>(recorded[i])].defined() &&
          results_again[i].requires_grad()) {
        outputs.push_back(std::move(results_again[i]));
        upstream.push_back(dys[static_cast<size_t>(recorded[i])]);
      }
    }
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    std::vector<size_t> places;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (needs[static_cast<int>(i)]) {
        targets.push_back(inputs[i]);
        places.push_back(i);
      }
    }
    const std::vector<Tensor> found =
        detail::grad_of(outputs, targets, {.upstream = upstream, .create_graph = twice}, inputs);
    std::vector<Tensor> gradients(inputs.size());
    for (size_t k = 0; k < places.size(); ++k) {
      gradients[places[k]] = found[k];
    }
    return Grads(std::move(gradients));
  }
};

}  // namespace

std::vector<Tensor> recompute_many(ManyToMany function, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    check(inputs[i].defined(), "recompute: input ", i, " is undefined");
  }
  if (!grad_enabled()) {
    return run(function, inputs);
  }
  Segment segment{.function = std::move(function), .arguments = inputs.size()};
  std::vector<Tensor> outputs, detached, all = inputs;
  for (const Tensor& x : inputs) {
    detached.push_back(x.detach());
  }
  {
    const NoGradGuard no_grad;
    CaptureCollector captured;
    const ObserverScope scope(captured);
    const KeptScales scales(*segment.then.scales);
    outputs = run(segment.function, detached);
    segment.captured = captured.tensors();
  }
  all.insert(all.end(), segment.captured.begin(), segment.captured.end());
  std::vector<Tensor> floating;
  for (Tensor& y : outputs) {
    y = y.detach();
    segment.results.push_back({y.sizes(), y.dtype()});
    segment.recorded.push_back(is_floating(y.dtype()) ? static_cast<int>(floating.size()) : -1);
    if (is_floating(y.dtype())) {
      floating.push_back(y);
    }
  }
  const std::vector<int> recorded = segment.recorded;
  kRecompute.record_many(all, floating, all,
                         [segment = std::move(segment)](std::span<const Tensor> dys, Needs needs,
                                                        std::span<const Tensor> saved) {
                           return segment.backward(dys, needs, saved);
                         });
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (recorded[i] >= 0) {
      outputs[i] = floating[static_cast<size_t>(recorded[i])];
    }
  }
  return outputs;
}

}  // namespace binade
