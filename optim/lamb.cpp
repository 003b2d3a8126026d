#include <binade/optim/lamb.h>

namespace binade::optim {
namespace {

const LambOptions& checked(const LambOptions& options) {
  for (double beta : options.betas) {
    check(beta >= 0 && beta < 1, "Lamb: got betas = {", options.betas[0], ", ", options.betas[1],
          "}, expected numbers in [0, 1)");
  }
  check(options.eps >= 0, "Lamb: got eps = ", options.eps, ", expected a number >= 0");
  return options;
}

}  // namespace

Lamb::Lamb(const ParameterList& parameters, const LambOptions& options)
    : Lamb(single_group(parameters), options) {}

Lamb::Lamb(std::vector<ParamGroup> groups, const LambOptions& options)
    : LayerwiseOptimizer(std::move(groups),
                         {checked(options).lr, options.weight_decay, options.decay_norms_and_biases,
                          options.betas[0]},
                         {"exp_avg", "exp_avg_sq"}),
      options_(options) {}

void Lamb::update(const Range& range) {
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
                      .words = range.words});
}

}  // namespace binade::optim
