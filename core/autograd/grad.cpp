// grad(): a backward run whose gradients go to the caller instead of the leaves.
#include <binade/core/autograd/backward_run_internal.h>
#include <binade/core/autograd/grad_internal.h>
#include <binade/core/observe/graph_growth_internal.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/timeline.h>
#include <binade/core/precision/format_calls_internal.h>
#include <binade/core/tensor/create.h>

#include <algorithm>

namespace binade {
namespace {

// All nodes that the outputs were computed from, down to the boundary, in program order.
std::vector<const Node*> nodes_below(std::span<const Tensor> outputs,
                                     const std::unordered_set<const Node*>& boundary) {
  std::vector<const Node*> nodes, open;
  std::unordered_set<const Node*> seen;
  const auto visit = [&](const Node* node) {
    if (node && seen.insert(node).second) {
      nodes.push_back(node);
      if (!boundary.contains(node)) {
        open.push_back(node);
      }
    }
  };
  for (const Tensor& output : outputs) {
    visit(output.history().get());
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    check(!node->released || node->leaf, "grad: the graph of ", node->name(),
          " was freed by an earlier backward, expected one that exists; run the forward again, or "
          "pass {.retain_graph = true} to the first backward");
    for (int i = 0; i < node->edge_count; ++i) {
      visit(node->edges[i].get());
    }
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  return nodes;
}

std::string input_text(const Tensor& input) {
  const Node& node = *input.history();
  std::string out = text("shape ", input.sizes(), ", ", node.leaf ? "a leaf" : "a result of ");
  if (!node.leaf) {
    out += node.name();
  }
  return node.label ? out + " in module " + label_text(node.label) : out;
}

Tensor upstream_of(std::span<const Tensor> outputs, std::span<const Tensor> upstream, size_t i) {
  const Tensor& output = outputs[i];
  if (i < upstream.size() && upstream[i].defined()) {
    check(upstream[i].sizes() == output.sizes(), "grad: got an upstream gradient of shape ",
          upstream[i].sizes(), " for output ", i, ", expected ", output.sizes());
    return upstream[i];
  }
  check(output.numel() == 1, "grad: got output ", i, " of shape ", output.sizes(),
        " without an upstream gradient, expected one element or GradOptions::upstream");
  return full(output.sizes(), 1, output.dtype(), output.device());
}

}  // namespace

GradTargets::GradTargets(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> boundary) {
  std::unordered_set<const Node*> edge_of_graph;
  for (const Tensor& t : boundary) {
    edge_of_graph.insert(t.history().get());
  }
  for (const Tensor& input : inputs) {
    gradients.emplace(input.history().get(), Tensor());
  }
  for (const Node* node : nodes_below(outputs, edge_of_graph)) {
    const bool target = gradients.contains(node), ends = edge_of_graph.contains(node);
    bool leads_on = false;
    for (int i = 0; i < node->edge_count && !ends; ++i) {
      leads_on |= node->edges[i] && leading.contains(node->edges[i].get());
    }
    if (leads_on) {
      inner.insert(node);
    }
    if (leads_on || target) {
      leading.insert(node);
    }
  }
}

std::vector<Tensor> detail::grad_of(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                    const GradOptions& options, std::span<const Tensor> boundary) {
  GradTargets targets(outputs, inputs, boundary);
  const PhaseSpan phase("backward");
  FormatCalls::note_backward();
  BackwardRun run({.retain_graph = options.retain_graph, .create_graph = options.create_graph},
                  &targets);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (targets.leads(*outputs[i].history())) {
      Edge edge(outputs[i].history());
      run.deliver(edge, upstream_of(outputs, options.upstream, i));
    }
  }
  run.run();
  std::vector<Tensor> gradients;
  for (const Tensor& input : inputs) {
    gradients.push_back(targets.gradients.at(input.history().get()));
  }
  return gradients;
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  check(options.upstream.empty() || options.upstream.size() == outputs.size(), "grad: got ",
        options.upstream.size(), " upstream gradients for ", outputs.size(),
        " outputs, expected one each or none");
  for (size_t i = 0; i < outputs.size(); ++i) {
    check(outputs[i].defined(), "grad: output ", i, " is undefined");
    if (!outputs[i].requires_grad()) {
      fail("grad: output ", i,
           " has no history that wants a gradient: ", detail::why_untracked(outputs[i]));
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    check(inputs[i].defined() && inputs[i].requires_grad(), "grad: input ", i,
          " wants no gradient; call require_grad() before it is used");
  }
  std::vector<Tensor> gradients = detail::grad_of(outputs, inputs, options, {});
  if (!detail::thread_state.run) {
    detail::sample_live_graph();
  }
  for (size_t i = 0; i < inputs.size() && !options.allow_unused; ++i) {
    check(gradients[i].defined(), "grad: the outputs do not depend on input ", i, " (",
          input_text(inputs[i]), "); pass allow_unused for an undefined gradient there");
  }
  return gradients;
}

}  // namespace binade
