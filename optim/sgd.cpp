#include <binade/kernels/optimizer/optimizer.h>
#include <binade/optim/group_options_internal.h>
#include <binade/optim/sgd.h>

#include <cmath>

namespace binade::optim {
namespace {

std::vector<std::string> moments(const SGDOptions& options) {
  return options.momentum == 0 ? std::vector<std::string>()
                               : std::vector{std::string("momentum_buffer")};
}

void check_sgd(const SGDOptions& options) {
  check(std::isfinite(options.momentum) && options.momentum >= 0,
        "SGD: got momentum = ", options.momentum, ", expected a number >= 0");
  check(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
        "SGD: got nesterov with momentum = ", options.momentum, ", dampening = ", options.dampening,
        ", expected a positive momentum and no dampening");
}

std::vector<SGDOptions> all_options(const SGDOptions& options,
                                    const std::vector<ParamGroup>& groups) {
  check_sgd(options);
  for (const ParamGroup& group : groups) {
    check(!group.nesterov.value_or(false) || group.momentum.value_or(options.momentum) > 0,
          "SGD: got a group with nesterov and no momentum, expected a positive momentum");
  }
  return options_of("SGD", options, groups, [](const SGDOptions& own) {
    // A group of momentum 0 in an optimizer with nesterov is plain descent.
    SGDOptions plain = own;
    plain.nesterov = own.nesterov && own.momentum != 0;
    check_sgd(plain);
  });
}

}  // namespace

SGD::SGD(const ParameterList& parameters, const SGDOptions& options)
    : SGD(single_group(parameters), options) {}

SGD::SGD(std::vector<ParamGroup> groups, const SGDOptions& options)
    : Optimizer(groups, settings_of(all_options(options, groups)), options.momentum != 0,
                moments(options)),
      options_(all_options(options, groups)) {}

void SGD::update(const Range& range) {
  const SGDOptions& options = options_[range.group];
  kernels::sgd_step({.param = range.param,
                     .master = range.master,
                     .grad = range.grad,
                     .momentum_buffer = range.moments.empty() ? kNoView : range.moments[0],
                     .lr = range.lr,
                     .momentum = range.momentum,
                     .dampening = options.dampening,
                     .weight_decay = range.weight_decay,
                     .nesterov = options.nesterov,
                     .first_step = range.update == 1,
                     .grad_multiplier = range.grad_multiplier,
                     .step_scalars = range.step_scalars,
                     .low = range.low});
}

}  // namespace binade::optim
