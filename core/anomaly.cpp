// A check is one kernel, the largest magnitude with NaN winning, and a look at its result. Only
// what is found is copied to the host and counted.
#include <binade/core/anomaly.h>
#include <binade/core/autograd.h>
#include <binade/core/create.h>
#include <binade/core/graph.h>
#include <binade/core/label.h>
#include <binade/core/op.h>
#include <binade/core/watch.h>
#include <binade/kernels/copy.h>
#include <binade/kernels/gradient_values.h>

#include <cmath>
#include <limits>

namespace binade {
namespace {

// While the guard computes, nobody watches it.
class Unwatched {
 public:
  Unwatched()
      : watched_(std::exchange(detail::thread_state.watched, false)),
        syncs_(std::exchange(detail::thread_state.syncs, nullptr)),
        precision_(std::exchange(detail::thread_state.precision, nullptr)) {}
  ~Unwatched() {
    detail::thread_state.watched = watched_;
    detail::thread_state.syncs = syncs_;
    detail::thread_state.precision = precision_;
  }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;

 private:
  NoGradGuard no_grad_;
  bool watched_;
  HostSyncGuard* syncs_;
  const PrecisionScope* precision_;
};

Tensor packed(const Tensor& t, DType dtype) {
  Tensor y = empty(t.sizes(), dtype, t.device());
  kernels::copy({.x = t, .y = y});
  return y;
}

double largest_magnitude(const Tensor& t) {
  const Tensor dense = is_dense(t.sizes(), t.strides()) ? t.detach() : packed(t, t.dtype());
  const Tensor result = zeros({1}, DType::f64, t.device());
  kernels::gradient_norm({.grad = make_view(dense, {t.numel()}, {1}),
                          .scale = 1,
                          .tag = kNoView,
                          .p = std::numeric_limits<double>::infinity(),
                          .result = result});
  return result.item();
}

// Counts the values and finds the first in row-major order.
void count(const Tensor& t, bool infinities, Anomaly& anomaly) {
  const Tensor values = packed(t, DType::f64).to(Device{});
  const double* data = values.data<double>();
  int64_t first = -1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const bool nan = std::isnan(data[i]), infinite = std::isinf(data[i]);
    anomaly.nan += nan;
    anomaly.infinite += infinite;
    first = first < 0 && (nan || (infinite && infinities)) ? i : first;
  }
  anomaly.sizes = anomaly.first = t.sizes();
  for (int d = t.dim() - 1; d >= 0 && first >= 0; --d) {
    anomaly.first[d] = first % t.sizes()[d];
    first /= t.sizes()[d];
  }
}

std::string place(const Anomaly& anomaly) {
  if (!anomaly.in_backward) {
    return anomaly.module.empty() ? "" : text(" (in module ", anomaly.module, ")");
  }
  return text(" (in backward of ", anomaly.op, anomaly.module.empty() ? "" : ", module ",
              anomaly.module, ")");
}

}  // namespace

AnomalyGuard::AnomalyGuard(const AnomalyOptions& options)
    : options_(options), outer_(std::exchange(detail::thread_state.anomaly, this)) {
  detail::update_watched();
}

AnomalyGuard::~AnomalyGuard() {
  detail::thread_state.anomaly = outer_;
  detail::update_watched();
}

AnomalyGuard::Worst AnomalyGuard::worst_of(const Tensor& t) const {
  const bool over = found_ && !options_.throws;
  if (over || !t.defined() || t.numel() == 0 || !is_floating(t.dtype()) ||
      is_capturing(t.device())) {
    return Worst::finite;
  }
  const Unwatched unwatched;
  const double largest = largest_magnitude(t);
  return std::isnan(largest) ? Worst::nan : std::isinf(largest) ? Worst::infinite : Worst::finite;
}

bool AnomalyGuard::is_bad(const Tensor& t) const {
  const Worst worst = worst_of(t);
  return worst == Worst::nan || (worst == Worst::infinite && options_.infinities);
}

void AnomalyGuard::report(Anomaly anomaly, const Tensor& bad, const std::string& what,
                          const std::string& remark) {
  {
    const Unwatched unwatched;
    count(bad, options_.infinities, anomaly);
  }
  anomaly.text = text("anomaly: ", what, ", of shape ", anomaly.sizes, ", has ", anomaly.nan,
                      " NaN and ", anomaly.infinite, " infinite values, the first at ",
                      anomaly.first, "; ", remark, place(anomaly));
  found_ = std::move(anomaly);
  if (options_.throws) {
    throw Error(found_->text);
  }
  detail::thread_state.anomaly = nullptr;  // what follows is a consequence
  detail::update_watched();
}

// Infinities of the inputs may be meant, as those of a mask: then only a NaN is news.
void AnomalyGuard::check_result(const Op& op, std::span<const Tensor* const> inputs,
                                const Tensor& y, size_t output) {
  const Worst worst = worst_of(y);
  if (worst == Worst::finite || (worst == Worst::infinite && !options_.infinities)) {
    return;
  }
  const Anomaly anomaly{.op = op.name, .module = label_text(detail::thread_state.label)};
  bool infinite = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Worst input = worst_of(*inputs[i]);
    infinite |= input == Worst::infinite;
    if (input == Worst::nan) {
      report(anomaly, *inputs[i], text("input ", i, " of ", op.name),
             "no op under the guard made it so: it is data, a parameter or an older result");
      return;
    }
  }
  if (worst == Worst::nan || !infinite) {
    report(anomaly, y,
           output ? text("output ", output, " of ", op.name) : text("the result of ", op.name),
           infinite ? "its inputs hold infinities, but no NaN" : "its inputs are finite");
  }
}

void AnomalyGuard::check_upstream(const Node& node, const Tensor& dy) {
  if (is_bad(dy)) {
    report(
        {.op = node.name(), .module = label_text(node.label), .in_backward = true}, dy,
        node.leaf ? "the gradient of a leaf" : text("the gradient of the result of ", node.name()),
        "no op's backward made it so: it is a seed, a sum of finite gradients, or from a hook");
  }
}

void AnomalyGuard::check_gradients(const Node& node, Grads& gradients) {
  for (int i = 0; i < node.edge_count && !node.part; ++i) {
    if (node.edges[i] && is_bad(gradients[i])) {
      report({.op = node.name(), .module = label_text(node.label), .in_backward = true},
             gradients[i], text("the gradient that ", node.name(), " gives its input ", i),
             "the gradient of its result is finite");
      return;
    }
  }
}

}  // namespace binade
