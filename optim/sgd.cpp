#include <binade/kernels/optimizer/optimizer.h>
#include <binade/optim/sgd.h>

#include <cmath>

namespace binade::optim {
namespace {

std::vector<std::string> moments(const SGDOptions& options) {
  return options.momentum == 0 ? std::vector<std::string>()
                               : std::vector{std::string("momentum_buffer")};
}

const SGDOptions& checked(const SGDOptions& options) {
  check(std::isfinite(options.momentum) && options.momentum >= 0,
        "SGD: got momentum = ", options.momentum, ", expected a number >= 0");
  check(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
        "SGD: got nesterov with momentum = ", options.momentum, ", dampening = ", options.dampening,
        ", expected a positive momentum and no dampening");
  return options;
}

}  // namespace

SGD::SGD(const ParameterList& parameters, const SGDOptions& options)
    : SGD(single_group(parameters), options) {}

SGD::SGD(std::vector<ParamGroup> groups, const SGDOptions& options)
    : Optimizer(std::move(groups),
                {checked(options).lr, options.weight_decay, options.decay_norms_and_biases,
                 options.momentum == 0 ? std::nullopt : std::optional(options.momentum)},
                moments(options)),
      options_(options) {}

void SGD::update(const Range& range) {
  kernels::sgd_step({.param = range.param,
                     .master = range.master,
                     .grad = range.grad,
                     .momentum_buffer = range.moments.empty() ? kNoView : range.moments[0],
                     .lr = range.lr,
                     .momentum = range.momentum,
                     .dampening = options_.dampening,
                     .weight_decay = range.weight_decay,
                     .nesterov = options_.nesterov,
                     .first_step = range.update == 1,
                     .grad_multiplier = range.grad_multiplier,
                     .step_scalars = range.step_scalars});
}

}  // namespace binade::optim
