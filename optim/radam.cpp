#include <binade/kernels/optimizer/optimizer_moment.h>
#include <binade/optim/group_options_internal.h>
#include <binade/optim/radam.h>

#include <algorithm>

namespace binade::optim {
namespace {

void check_radam(const RAdamOptions& options) {
  check_betas("RAdam", options.betas);
  check(options.eps >= 0, "RAdam: got eps = ", options.eps, ", expected a number >= 0");
}

}  // namespace

RAdam::RAdam(const ParameterList& parameters, const RAdamOptions& options)
    : RAdam(single_group(parameters), options) {}

RAdam::RAdam(std::vector<ParamGroup> groups, const RAdamOptions& options)
    : Optimizer(groups, settings_of(options_of("RAdam", options, groups, check_radam)), true,
                {"exp_avg", "exp_avg_sq"}),
      options_(options_of("RAdam", options, groups, check_radam)) {}

// Where the gradient and the moments are 0, the step is 0 / eps or 0.
bool RAdam::keeps_zeros() const {
  return std::all_of(options_.begin(), options_.end(), [](const auto& own) { return own.eps > 0; });
}

void RAdam::update(const Range& range) {
  const RAdamOptions& options = options_[range.group];
  kernels::moment_step({.param = range.param,
                        .master = range.master,
                        .grad = range.grad,
                        .exp_avg = range.moments[0],
                        .exp_avg_sq = range.moments[1],
                        .rule = kernels::MomentRule::radam,
                        .lr = range.lr,
                        .beta1 = range.momentum,
                        .beta2 = options.betas[1],
                        .eps = options.eps,
                        .weight_decay = range.weight_decay,
                        .decoupled = options.decoupled_weight_decay,
                        .momentum_decay = 0,
                        .step = range.update,
                        .grad_multiplier = range.grad_multiplier,
                        .step_scalars = range.step_scalars,
                        .low = range.low});
}

}  // namespace binade::optim
