#include <binade/core/ops.h>
#include <binade/nn/init.h>
#include <binade/nn/linear.h>
#include <binade/nn/options_internal.h>

namespace binade::nn {

Linear::Linear(const LinearOptions& options) {
  check_sizes("Linear", {{"in", options.in}, {"out", options.out}});
  weight = empty({options.out, options.in});
  init::default_weight(weight);
  register_parameter("weight", weight);
  if (options.bias) {
    bias = empty({options.out});
    init::default_bias(bias, weight.sizes());
    register_parameter("bias", bias, {.norm_or_bias = true});
  }
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

}  // namespace binade::nn
