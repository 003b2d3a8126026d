#include <binade/optim/lars.h>

#include <cmath>

namespace binade::optim {
namespace {

const LARSOptions& checked(const LARSOptions& options) {
  check(std::isfinite(options.momentum) && options.momentum >= 0,
        "LARS: got momentum = ", options.momentum, ", expected a number >= 0");
  check(options.trust_coefficient > 0, "LARS: got trust_coefficient = ", options.trust_coefficient,
        ", expected a positive number");
  check(options.eps >= 0, "LARS: got eps = ", options.eps, ", expected a number >= 0");
  return options;
}

}  // namespace

LARS::LARS(const ParameterList& parameters, const LARSOptions& options)
    : LARS(single_group(parameters), options) {}

LARS::LARS(std::vector<ParamGroup> groups, const LARSOptions& options)
    : LayerwiseOptimizer(std::move(groups),
                         {checked(options).lr, options.weight_decay, options.decay_norms_and_biases,
                          options.momentum},
                         {"momentum_buffer"}),
      options_(options) {}

void LARS::update(const Range& range) {
  kernels::lars_step({.param = range.param,
                      .master = range.master,
                      .grad = range.grad,
                      .momentum_buffer = range.moments[0],
                      .table = table_of(range),
                      .lr = range.lr,
                      .momentum = range.momentum,
                      .weight_decay = range.weight_decay,
                      .trust_coefficient = options_.trust_coefficient,
                      .eps = options_.eps,
                      .grad_multiplier = range.grad_multiplier,
                      .step_scalars = range.step_scalars});
}

}  // namespace binade::optim
