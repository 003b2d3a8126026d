// The work of an op, from its name and shapes: floating-point operations, and bytes read and
// written. Internal to the profiler.
#pragma once
#include <binade/core/autograd/op.h>

#include <span>

namespace binade::detail {

struct OpCost {
  double flops = 0;  // of products and sums, 2 per multiply-add; 0 for ops that only move data
  double bytes = 0;  // each operand once; 0 for a view
};

// The cost formula of an op.
enum class CostRule : uint8_t {
  product,        // 2 numel(y) last(x): matmul, linear
  addmm,          // the same with the second operand
  feedforward,    // two products
  convolution,    // 2 numel(y) numel(w) / w[0]
  transposed,     // 2 numel(x) numel(w) / w[0]
  attention,      // two products of queries, keys and values, as if no key were masked
  recurrent,      // 2 steps batch numel(w)
  normalization,  // 8 per element
  softmax,        // 5 per element
  reduction,      // 1 per element read
  movement,       // none
  pointwise,      // 1 per element written
};
CostRule cost_rule(const Op& op);

OpCost op_cost(CostRule rule, std::span<const Tensor* const> inputs,
               std::span<const Tensor> outputs);
// The work of a backward: one product per wanted gradient where the forward has one.
OpCost backward_cost(CostRule rule, const OpCost& forward, const Node& node);

}  // namespace binade::detail
