#include <binade/optim/group_options_internal.h>
#include <binade/optim/lamb.h>

namespace binade::optim {
namespace {

void check_lamb(const LAMBOptions& options) {
  check_betas("LAMB", options.betas);
  check(options.eps >= 0, "LAMB: got eps = ", options.eps, ", expected a number >= 0");
}

std::vector<LAMBOptions> all_options(const LAMBOptions& options,
                                     const std::vector<ParamGroup>& groups) {
  return options_of("LAMB", options, groups, check_lamb);
}

}  // namespace

LAMB::LAMB(const ParameterList& parameters, const LAMBOptions& options)
    : LAMB(single_group(parameters), options) {}

LAMB::LAMB(std::vector<ParamGroup> groups, const LAMBOptions& options)
    : LayerwiseOptimizer(groups, settings_of(all_options(options, groups)), true,
                         {"exp_avg", "exp_avg_sq"}),
      options_(all_options(options, groups)) {}

void LAMB::update(const Range& range) {
  const LAMBOptions& options = options_[range.group];
  kernels::lamb_step({.param = range.param,
                      .master = range.master,
                      .grad = range.grad,
                      .exp_avg = range.moments[0],
                      .exp_avg_sq = range.moments[1],
                      .table = table_of(range),
                      .lr = range.lr,
                      .beta1 = range.momentum,
                      .beta2 = options.betas[1],
                      .eps = options.eps,
                      .weight_decay = range.weight_decay,
                      .step = range.update,
                      .grad_multiplier = range.grad_multiplier,
                      .step_scalars = range.step_scalars,
                      .low = range.low});
}

}  // namespace binade::optim
