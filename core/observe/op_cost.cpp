#include <binade/core/observe/op_cost_internal.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace binade::detail {
namespace {

constexpr std::pair<std::string_view, CostRule> kRules[] = {
    {"linear", CostRule::product},
    {"matmul", CostRule::product},
    {"addmm", CostRule::addmm},
    {"baddbmm", CostRule::addmm},
    {"feedforward", CostRule::feedforward},
    {"conv1d", CostRule::convolution},
    {"conv2d", CostRule::convolution},
    {"conv2d_batch_norm", CostRule::convolution},
    {"conv_transpose1d", CostRule::transposed},
    {"conv_transpose2d", CostRule::transposed},
    {"scaled_dot_product_attention", CostRule::attention},
    {"lstm", CostRule::recurrent},
    {"gru", CostRule::recurrent},
    {"rnn_tanh", CostRule::recurrent},
    {"rnn_relu", CostRule::recurrent},
    {"batch_norm", CostRule::normalization},
    {"layer_norm", CostRule::normalization},
    {"rms_norm", CostRule::normalization},
    {"group_norm", CostRule::normalization},
    {"instance_norm", CostRule::normalization},
    {"softmax", CostRule::softmax},
    {"log_softmax", CostRule::softmax},
    {"cross_entropy", CostRule::softmax},
    {"embedding", CostRule::movement},
    {"policy_cast", CostRule::movement},
};

double elements(const Tensor& t) { return t.defined() ? static_cast<double>(t.numel()) : 0; }

double traffic_of(const Tensor& t) {
  return t.defined() ? elements(t) * static_cast<double>(size_of(t.dtype())) : 0;
}

bool is_matrix(const Tensor& t) { return t.defined() && t.dim() >= 1; }

double last(const Tensor& t) { return is_matrix(t) ? static_cast<double>(t.size(t.dim() - 1)) : 1; }

// The number of elements in one row of a weight [O, ...].
double row(const Tensor& w) {
  return is_matrix(w) && w.size(0) > 0 ? elements(w) / static_cast<double>(w.size(0)) : 0;
}

bool is_view(std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) {
  return !inputs.empty() && !outputs.empty() && inputs[0]->defined() && outputs[0].defined() &&
         inputs[0]->handle()->storage.get() == outputs[0].handle()->storage.get();
}

double flops_of(CostRule rule, std::span<const Tensor* const> inputs,
                std::span<const Tensor> outputs) {
  static const Tensor kNone;
  const auto in = [&](size_t i) -> const Tensor& { return i < inputs.size() ? *inputs[i] : kNone; };
  const double n = outputs.empty() ? 0 : elements(outputs[0]);
  switch (rule) {
    case CostRule::product: return 2 * n * last(in(0));
    case CostRule::addmm: return 2 * n * last(in(1));
    case CostRule::feedforward:
      return 2 * (elements(in(0)) / std::max(last(in(0)), 1.0)) *
             (elements(in(1)) + elements(in(3)));
    case CostRule::convolution: return 2 * n * row(in(1));
    case CostRule::transposed: return 2 * elements(in(0)) * row(in(1));
    case CostRule::attention: {
      const double keys = in(1).defined() && in(1).dim() >= 2
                              ? static_cast<double>(in(1).size(in(1).dim() - 2))
                              : 0;
      return 2 * keys * (elements(in(0)) + n);
    }
    case CostRule::recurrent:
      return 2 * (elements(in(0)) / std::max(last(in(0)), 1.0)) *
             (elements(in(3)) + elements(in(4)));
    case CostRule::normalization: return 8 * n;
    case CostRule::softmax: return 5 * elements(in(0));
    case CostRule::reduction: return elements(in(0));
    case CostRule::movement: return 0;
    case CostRule::pointwise: return n;
  }
  return 0;
}

}  // namespace

CostRule cost_rule(const Op& op) {
  const auto* found = std::find_if(std::begin(kRules), std::end(kRules),
                                   [&](const auto& one) { return one.first == op.name; });
  if (found != std::end(kRules)) {
    return found->second;
  }
  return op.op_class == OpClass::movement    ? CostRule::movement
         : op.op_class == OpClass::reduction ? CostRule::reduction
                                             : CostRule::pointwise;
}

OpCost op_cost(CostRule rule, std::span<const Tensor* const> inputs,
               std::span<const Tensor> outputs) {
  OpCost cost{.flops = flops_of(rule, inputs, outputs), .bytes = 0};
  if (is_view(inputs, outputs)) {
    return {};
  }
  for (const Tensor* input : inputs) {
    cost.bytes += traffic_of(*input);
  }
  for (const Tensor& output : outputs) {
    cost.bytes += traffic_of(output);
  }
  return cost;
}

OpCost backward_cost(CostRule rule, const OpCost& forward, const Node& node) {
  double wanted = 0, written = 0;
  for (int i = 0; i < node.edge_count; ++i) {
    if (!node.edges[i]) {
      continue;
    }
    // A bias and other small operands need no product.
    wanted += i < 2 || rule == CostRule::recurrent || rule == CostRule::addmm ? 1 : 0;
    written += static_cast<double>(element_count(node.edges[i]->sizes)) *
               static_cast<double>(size_of(node.edges[i]->dtype));
  }
  if (forward.bytes == 0) {
    return {};
  }
  switch (rule) {
    case CostRule::product:
    case CostRule::convolution:
    case CostRule::transposed: return {forward.flops * wanted, forward.bytes + written};
    case CostRule::addmm:
    case CostRule::feedforward:
    case CostRule::recurrent: return {2 * forward.flops, forward.bytes + written};
    case CostRule::attention: return {2.5 * forward.flops, forward.bytes + written};
    default: return {forward.flops, forward.bytes + written};
  }
}

}  // namespace binade::detail
