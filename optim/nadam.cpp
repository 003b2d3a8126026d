#include <binade/kernels/optimizer/optimizer_moment.h>
#include <binade/optim/group_options_internal.h>
#include <binade/optim/nadam.h>

#include <algorithm>

namespace binade::optim {
namespace {

void check_nadam(const NAdamOptions& options) {
  check_betas("NAdam", options.betas);
  check(options.eps >= 0, "NAdam: got eps = ", options.eps, ", expected a number >= 0");
  check(options.momentum_decay >= 0, "NAdam: got momentum_decay = ", options.momentum_decay,
        ", expected a number >= 0");
}

}  // namespace

NAdam::NAdam(const ParameterList& parameters, const NAdamOptions& options)
    : NAdam(single_group(parameters), options) {}

NAdam::NAdam(std::vector<ParamGroup> groups, const NAdamOptions& options)
    : Optimizer(groups, settings_of(options_of("NAdam", options, groups, check_nadam)), true,
                {"exp_avg", "exp_avg_sq"}),
      options_(options_of("NAdam", options, groups, check_nadam)) {}

// Where the gradient and the moments are 0, the step is 0 / eps or 0.
bool NAdam::keeps_zeros() const {
  return std::all_of(options_.begin(), options_.end(), [](const auto& own) { return own.eps > 0; });
}

void NAdam::update(const Range& range) {
  const NAdamOptions& options = options_[range.group];
  kernels::moment_step({.param = range.param,
                        .master = range.master,
                        .grad = range.grad,
                        .exp_avg = range.moments[0],
                        .exp_avg_sq = range.moments[1],
                        .rule = kernels::MomentRule::nadam,
                        .lr = range.lr,
                        .beta1 = range.momentum,
                        .beta2 = options.betas[1],
                        .eps = options.eps,
                        .weight_decay = range.weight_decay,
                        .decoupled = options.decoupled_weight_decay,
                        .momentum_decay = options.momentum_decay,
                        .step = range.update,
                        .grad_multiplier = range.grad_multiplier,
                        .step_scalars = range.step_scalars,
                        .low = range.low});
}

}  // namespace binade::optim
