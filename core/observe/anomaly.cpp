// A check is one kernel, the largest magnitude with NaN propagated, and a look at its result. Only
// anomalous tensors are copied to the host and counted.
#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/op.h>
#include <binade/core/device/graph.h>
#include <binade/core/observe/anomaly.h>
#include <binade/core/observe/label.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/optimizer/gradient_values.h>

#include <cmath>
#include <limits>
#include <string_view>

namespace binade {
namespace {

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

// The elements of a tensor as the anomaly describes its inputs.
AnomalyInput describe(const Tensor& t, const Dims& sizes, const Dims& index) {
  AnomalyInput input{
      .dtype = t.dtype(), .sizes = t.sizes(), .largest = t.numel() > 0 ? largest_magnitude(t) : 0};
  if (t.sizes() == sizes && t.numel() > 0) {
    int64_t at = 0;
    for (int d = 0; d < t.dim(); ++d) {
      at = at * sizes[d] + index[d];
    }
    input.value = packed(t, DType::f64).to(Device{}).data<double>()[at];
  }
  return input;
}

std::string place(const Anomaly& anomaly) {
  if (!anomaly.in_backward) {
    return anomaly.module.empty() ? "" : text(" (in module ", anomaly.module, ")");
  }
  return text(" (in backward of ", anomaly.op, anomaly.module.empty() ? "" : ", module ",
              anomaly.module, ")");
}

}  // namespace

AnomalyGuard::Worst AnomalyGuard::worst_of(const Tensor& t) const {
  const bool over = found_ && !options_.throws;
  if (over || !t.defined() || t.numel() == 0 || !is_floating(t.dtype()) ||
      is_capturing(t.device())) {
    return Worst::finite;
  }
  const double largest = largest_magnitude(t);
  return std::isnan(largest) ? Worst::nan : std::isinf(largest) ? Worst::infinite : Worst::finite;
}

bool AnomalyGuard::is_bad(const Tensor& t) const {
  const Worst worst = worst_of(t);
  return worst == Worst::nan || (worst == Worst::infinite && options_.infinities);
}

// Casts move data too, but they can overflow. masked_fill and where choose between values.
bool AnomalyGuard::is_intended(const OpEvent& event, Worst worst) const {
  const std::string_view op = event.op.name;
  const bool writes =
      (event.op.op_class == OpClass::movement && op != "cast" && op != "policy_cast") ||
      op == "masked_fill" || op == "where";
  return worst == Worst::infinite &&
         (!options_.infinities || (!options_.written_infinities && writes));
}

void AnomalyGuard::report(Anomaly anomaly, const Finding& finding) {
  count(finding.bad, options_.infinities, anomaly);
  anomaly.dtype = finding.bad.dtype();
  for (const Tensor* input : finding.inputs) {
    if (input->defined() && is_floating(input->dtype())) {
      anomaly.inputs.push_back(describe(*input, anomaly.sizes, anomaly.first));
    }
  }
  anomaly.text = text("anomaly: ", finding.what, ", of shape ", anomaly.sizes, ", has ",
                      anomaly.nan, " NaN and ", anomaly.infinite, " infinite values, the first at ",
                      anomaly.first, "; ", finding.remark, place(anomaly));
  found_ = std::move(anomaly);
  if (options_.throws) {
    throw Error(found_->text);
  }
}

void AnomalyGuard::result(const OpEvent& event) {
  for (size_t i = 0; i < event.outputs.size() && !event.in_backward; ++i) {
    check_result(event, i);  // in backward the gradients are checked instead
  }
}

// Infinities of the inputs may be intended, for example in a mask: then only a NaN is an anomaly.
void AnomalyGuard::check_result(const OpEvent& event, size_t output) {
  const Tensor& y = event.outputs[output];
  const Worst worst = worst_of(y);
  if (worst == Worst::finite || is_intended(event, worst)) {
    return;
  }
  const char* op = event.op.name;
  const Anomaly anomaly{.op = op, .module = label_text(event.module)};
  bool infinite = false;
  for (size_t i = 0; i < event.inputs.size(); ++i) {
    const Worst input = worst_of(*event.inputs[i]);
    infinite |= input == Worst::infinite;
    if (input == Worst::nan) {
      report(anomaly,
             {.bad = *event.inputs[i],
              .inputs = {},
              .what = text("input ", i, " of ", op),
              .remark = "no op under the guard made it so: it is data, a parameter or an older "
                        "result"});
      return;
    }
  }
  if (worst == Worst::nan || !infinite) {
    report(
        anomaly,
        {.bad = y,
         .inputs = event.inputs,
         .what = output ? text("output ", output, " of ", op) : text("the result of ", op),
         .remark = infinite ? "its inputs hold infinities, but no NaN" : "its inputs are finite"});
  }
}

void AnomalyGuard::upstream(const GradientEvent& event) {
  const Node& node = event.node;
  if (is_bad(event.upstream)) {
    report({.op = node.name(), .module = label_text(node.label), .in_backward = true},
           {.bad = event.upstream,
            .inputs = {},
            .what = node.leaf ? "the gradient of a leaf"
                              : text("the gradient of the result of ", node.name()),
            .remark = "no op's backward made it so: it is a seed, a sum of finite gradients, or "
                      "from a hook"});
  }
}

void AnomalyGuard::gradients(const GradientEvent& event) {
  const Node& node = event.node;
  for (int i = 0; i < node.edge_count && !node.part; ++i) {
    const Tensor& gradient = (*event.gradients)[i];
    if (node.edges[i] && is_bad(gradient)) {
      const Tensor* upstream = &event.upstream;
      report({.op = node.name(), .module = label_text(node.label), .in_backward = true},
             {.bad = gradient,
              .inputs = {&upstream, 1},
              .what = text("the gradient that ", node.name(), " gives its input ", i),
              .remark = "the gradient of its result is finite"});
      return;
    }
  }
}

}  // namespace binade
