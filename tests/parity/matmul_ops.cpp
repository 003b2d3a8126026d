// Parity names of matrix products.
#include <binade/core/ops.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

Outputs run_einsum(const Call& call) {
  std::vector<Tensor> operands;
  for (const auto& [name, tensor] : call.inputs) {  // a, b, in this order
    operands.push_back(tensor);
  }
  return one(einsum(call.attr("equation").get<std::string>(), operands));
}

}  // namespace

const std::map<std::string, Handler>& matmul_ops() {
  static const std::map<std::string, Handler> ops = {
      {"matmul", [](const Call& call) { return one(matmul(call.in("a"), call.in("b"))); }},
      {"bmm", [](const Call& call) { return one(bmm(call.in("a"), call.in("b"))); }},
      {"outer", [](const Call& call) { return one(outer(call.in("a"), call.in("b"))); }},
      {"addmm",
       [](const Call& call) {
         return one(addmm(call.in("input"), call.in("a"), call.in("b"),
                          {.beta = call.attr("beta"), .alpha = call.attr("alpha")}));
       }},
      {"linear",
       [](const Call& call) {
         return one(linear(call.in("x"), call.in("weight"), call.optional("bias")));
       }},
      {"feedforward",
       [](const Call& call) {
         return one(feedforward(call.in("x"), call.in("w1"), call.optional("b1"), call.in("w2"),
                                call.optional("b2")));
       }},
      {"einsum", run_einsum},
  };
  return ops;
}

}  // namespace binade::parity
