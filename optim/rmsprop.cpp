#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/optim/rmsprop.h>

#include <cmath>

namespace binade::optim {
namespace {

std::vector<std::string> moments(const RMSpropOptions& options) {
  std::vector<std::string> names = {"square_avg"};
  if (options.centered) {
    names.emplace_back("grad_avg");
  }
  if (options.momentum != 0) {
    names.emplace_back("momentum_buffer");
  }
  return names;
}

const RMSpropOptions& checked(const RMSpropOptions& options) {
  check(options.alpha >= 0 && options.alpha <= 1, "RMSprop: got alpha = ", options.alpha,
        ", expected a number in [0, 1]");
  check(options.eps >= 0, "RMSprop: got eps = ", options.eps, ", expected a number >= 0");
  check(std::isfinite(options.momentum) && options.momentum >= 0,
        "RMSprop: got momentum = ", options.momentum, ", expected a number >= 0");
  return options;
}

}  // namespace

RMSprop::RMSprop(const ParameterList& parameters, const RMSpropOptions& options)
    : RMSprop(single_group(parameters), options) {}

RMSprop::RMSprop(std::vector<ParamGroup> groups, const RMSpropOptions& options)
    : Optimizer(std::move(groups),
                {checked(options).lr, options.weight_decay, options.decay_norms_and_biases,
                 options.momentum == 0 ? std::nullopt : std::optional(options.momentum)},
                moments(options)),
      options_(options) {}

void RMSprop::update(const Range& range) {
  kernels::rmsprop_step({.param = range.param,
                         .master = range.master,
                         .grad = range.grad,
                         .square_avg = range.moments[0],
                         .lr = range.lr,
                         .alpha = options_.alpha,
                         .eps = options_.eps,
                         .weight_decay = range.weight_decay,
                         .momentum = range.momentum,
                         .grad_multiplier = range.grad_multiplier,
                         .grad_avg = options_.centered ? range.moments[1] : kNoView,
                         .momentum_buffer = options_.momentum == 0 ? kNoView : range.moments.back(),
                         .step_scalars = range.step_scalars});
}

}  // namespace binade::optim
