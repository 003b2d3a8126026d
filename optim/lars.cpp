#include <binade/optim/lars.h>

#include <cmath>

namespace binade::optim {
namespace {

const LarsOptions& checked(const LarsOptions& options) {
  check(std::isfinite(options.momentum) && options.momentum >= 0,
        "Lars: got momentum = ", options.momentum, ", expected a number >= 0");
  check(options.trust_coefficient > 0, "Lars: got trust_coefficient = ", options.trust_coefficient,
        ", expected a positive number");
  check(options.eps >= 0, "Lars: got eps = ", options.eps, ", expected a number >= 0");
  return options;
}

}  // namespace

Lars::Lars(const ParameterList& parameters, const LarsOptions& options)
    : Lars(single_group(parameters), options) {}

Lars::Lars(std::vector<ParamGroup> groups, const LarsOptions& options)
    : LayerwiseOptimizer(std::move(groups),
                         {checked(options).lr, options.weight_decay, options.decay_norms_and_biases,
                          options.momentum},
                         {"momentum_buffer"}),
      options_(options) {}

void Lars::update(const Range& range) {
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
                      .words = range.words});
}

}  // namespace binade::optim
