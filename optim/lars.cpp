#include <binade/optim/group_options_internal.h>
#include <binade/optim/lars.h>

#include <cmath>

namespace binade::optim {
namespace {

void check_lars(const LARSOptions& options) {
  check(std::isfinite(options.momentum) && options.momentum >= 0,
        "LARS: got momentum = ", options.momentum, ", expected a number >= 0");
  check(options.trust_coefficient > 0, "LARS: got trust_coefficient = ", options.trust_coefficient,
        ", expected a positive number");
  check(options.eps >= 0, "LARS: got eps = ", options.eps, ", expected a number >= 0");
}

std::vector<LARSOptions> all_options(const LARSOptions& options,
                                     const std::vector<ParamGroup>& groups) {
  return options_of("LARS", options, groups, check_lars);
}

}  // namespace

LARS::LARS(const ParameterList& parameters, const LARSOptions& options)
    : LARS(single_group(parameters), options) {}

LARS::LARS(std::vector<ParamGroup> groups, const LARSOptions& options)
    : LayerwiseOptimizer(groups, settings_of(all_options(options, groups)), true,
                         {"momentum_buffer"}),
      options_(all_options(options, groups)) {}

void LARS::update(const Range& range) {
  const LARSOptions& options = options_[range.group];
  kernels::lars_step({.param = range.param,
                      .master = range.master,
                      .grad = range.grad,
                      .momentum_buffer = range.moments[0],
                      .table = table_of(range),
                      .lr = range.lr,
                      .momentum = range.momentum,
                      .weight_decay = range.weight_decay,
                      .trust_coefficient = options.trust_coefficient,
                      .eps = options.eps,
                      .grad_multiplier = range.grad_multiplier,
                      .step_scalars = range.step_scalars,
                      .low = range.low});
}

}  // namespace binade::optim
