// Cases of one op on tensors: inputs through their layouts, the op, backward from all outputs that
// have an upstream gradient at once, and the comparison of results and gradients.
#include <binade/core/device/device_memory.h>
#include <binade/core/ops.h>

#include <algorithm>
#include <set>

#include <tests/kernels/support/test_device.h>
#include <tests/op_table/compare.h>
#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

Tensor apply_layout(const Tensor& base, const Json& layout) {
  if (layout.is_string()) {
    return base;
  }
  const Json& value = layout.begin().value();
  if (layout.contains("transpose")) {
    return transpose(base, value[0], value[1]);
  }
  if (layout.contains("expand")) {
    return expand(base, dims(value));
  }
  if (layout.contains("offset")) {
    return slice(base, 0, value, base.size(0));
  }
  check(layout.contains("slice"), "parity_runner: unknown layout ", layout.dump());
  const int dim = value.at("dim");
  return slice(base, dim, value.at("start"), base.size(dim), value.at("step"));
}

// Leaves by key: arguments with the same key are one tensor.
std::map<std::string, Tensor> make_leaves(const CaseFile& file, const Case& c, DType dtype) {
  std::map<std::string, Tensor> leaves;
  for (const auto& [arg, key] : c.inputs) {
    if (!leaves.count(key)) {
      leaves[key] = file.tensor(key, dtype);
    }
  }
  std::set<std::string> keys;
  for (const std::string& arg : c.requires_grad) {
    if (keys.insert(c.inputs.at(arg)).second) {
      leaves[c.inputs.at(arg)].require_grad();
    }
  }
  return leaves;
}

const Handler& handler_of(const std::string& op) {
  for (const auto* ops :
       {&tensor_ops(), &pointwise_ops(), &layer_ops(), &reduce_ops(), &index_ops(), &conv_ops(),
        &loss_ops(), &matmul_ops(), &linalg_ops(), &sequence_ops(), &module_ops()}) {
    const auto found = ops->find(op);
    if (found != ops->end()) {
      return found->second;
    }
  }
  throw NotCovered{op};
}

// Ops whose results are input elements, moved or selected.
bool moves_data(const CaseFile& file, const Case& c) {
  static const std::set<std::string> ops = {"max_pool2d", "amax",      "amin",   "max",
                                            "min",        "embedding", "one_hot"};
  return (file.family() == "shape" && c.op != "scatter_add") || file.family() == "sort" ||
         file.family() == "index" || ops.count(c.op) > 0;
}

void check_outputs(const CaseFile& file, const Case& c, const Outputs& outputs, Checker& checker) {
  const bool per_element =
      c.name.find("-tiny") != std::string::npos || c.name.find("-tail") != std::string::npos;
  for (const auto& [name, key] : c.outputs) {
    const auto got = outputs.find(name);
    if (got == outputs.end()) {
      checker.fail("no output " + name);
      return;
    }
    const Array want = file.values(key);
    if (moves_data(file, c)) {
      checker.expect_exact(name, got->second, want);
    } else if (per_element) {
      checker.expect_relative(name, op_table::to_array(got->second), want,
                              8 * epsilon(got->second.dtype()));
    } else {
      checker.expect(name, got->second, want);
    }
  }
}

void check_gradients(const CaseFile& file, const Case& c, const Outputs& outputs,
                     const std::map<std::string, Tensor>& leaves, DType dtype, Checker& checker) {
  std::vector<Seed> seeds;
  double largest_upstream = 0;
  for (const auto& [name, key] : c.grad_outputs) {
    const Tensor& y = outputs.at(name);
    const Tensor upstream = file.tensor(key, y.dtype());
    largest_upstream =
        std::max(largest_upstream, op_table::largest_magnitude(op_table::to_array(upstream)));
    if (!y.requires_grad()) {
      checker.fail(name + " has no gradient history");
      return;
    }
    seeds.push_back({y, upstream});
  }
  if (seeds.empty()) {
    return;
  }
  backward(seeds);
  for (const auto& [arg, key] : c.grads) {
    const Array want = file.values(key);
    Tensor gradient = leaves.at(c.inputs.at(arg)).grad();
    if (!gradient.defined()) {
      gradient = op_table::to_tensor(
          op_table::generate(want.sizes, [](const Dims&) { return 0.0; }), dtype);
    } else if (gradient.dtype() != dtype) {
      gradient = cast(gradient, dtype);  // grad() reads f16 and bf16 as f32: exact both ways
    }
    checker.expect("gradient of " + arg, gradient, want, 8, largest_upstream);
  }
}

}  // namespace

std::string run_case(const CaseFile& file, const Case& c, DType dtype) {
  if (is_training_op(file.family())) {
    return run_training_case(file, c, dtype);
  }
  if (file.family() == "models") {
    return run_model_case(file, c, dtype);
  }
  const Handler& handler = handler_of(c.op);
  const std::map<std::string, Tensor> leaves = make_leaves(file, c, dtype);
  Call call{c, {}};
  for (const auto& [arg, key] : c.inputs) {
    call.inputs[arg] = apply_layout(leaves.at(key), c.layout.at(arg));
  }
  if (c.expects_error) {
    try {
      handler(call);
      synchronize(kernels::test_device());  // a device reports bad indices when it is waited for
    } catch (const Error&) {
      return "";
    }
    return "no error was reported";
  }
  const Outputs outputs = handler(call);
  Checker checker(c.len);
  check_outputs(file, c, outputs, checker);
  check_gradients(file, c, outputs, leaves, dtype, checker);
  return checker.failure();
}

}  // namespace binade::parity
