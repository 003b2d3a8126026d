#include <binade/optim/lamb.h>

namespace binade::optim {
namespace {

const LAMBOptions& checked(const LAMBOptions& options) {
  for (double beta : options.betas) {
    check(beta >= 0 && beta < 1, "LAMB: got betas = {", options.betas[0], ", ", options.betas[1],
          "}, expected numbers in [0, 1)");
  }
  check(options.eps >= 0, "LAMB: got eps = ", options.eps, ", expected a number >= 0");
  return options;
}

}  // namespace

LAMB::LAMB(const ParameterList& parameters, const LAMBOptions& options)
    : LAMB(single_group(parameters), options) {}

LAMB::LAMB(std::vector<ParamGroup> groups, const LAMBOptions& options)
    : LayerwiseOptimizer(std::move(groups),
                         {checked(options).lr, options.weight_decay, options.decay_norms_and_biases,
                          options.betas[0]},
                         {"exp_avg", "exp_avg_sq"}),
      options_(options) {}

void LAMB::update(const Range& range) {
  kernels::lamb_step({.param = range.param,
                      .master = range.master,
                      .grad = range.grad,
                      .exp_avg = range.moments[0],
                      .exp_avg_sq = range.moments[1],
                      .table = table_of(range),
                      .lr = range.lr,
                      .beta1 = range.momentum,
                      .beta2 = options_.betas[1],
                      .eps = options_.eps,
                      .weight_decay = range.weight_decay,
                      .step = range.update,
                      .grad_multiplier = range.grad_multiplier,
                      .step_scalars = range.step_scalars});
}

}  // namespace binade::optim
