#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/optim/group_options_internal.h>
#include <binade/optim/rmsprop.h>

#include <algorithm>
#include <cmath>

namespace binade::optim {
namespace {

std::vector<std::string> moments(const std::vector<RMSpropOptions>& all, bool has_momentum) {
  std::vector<std::string> names = {"square_avg"};
  if (std::any_of(all.begin(), all.end(), [](const auto& own) { return own.centered; })) {
    names.emplace_back("grad_avg");
  }
  if (has_momentum) {
    names.emplace_back("momentum_buffer");
  }
  return names;
}

void check_rmsprop(const RMSpropOptions& options) {
  check(options.alpha >= 0 && options.alpha <= 1, "RMSprop: got alpha = ", options.alpha,
        ", expected a number in [0, 1]");
  check(options.eps >= 0, "RMSprop: got eps = ", options.eps, ", expected a number >= 0");
  check(std::isfinite(options.momentum) && options.momentum >= 0,
        "RMSprop: got momentum = ", options.momentum, ", expected a number >= 0");
}

std::vector<RMSpropOptions> all_options(const RMSpropOptions& options,
                                        const std::vector<ParamGroup>& groups) {
  return options_of("RMSprop", options, groups, check_rmsprop);
}

}  // namespace

RMSprop::RMSprop(const ParameterList& parameters, const RMSpropOptions& options)
    : RMSprop(single_group(parameters), options) {}

RMSprop::RMSprop(std::vector<ParamGroup> groups, const RMSpropOptions& options)
    : Optimizer(groups, settings_of(all_options(options, groups)), options.momentum != 0,
                moments(all_options(options, groups), options.momentum != 0)),
      options_(all_options(options, groups)) {}

bool RMSprop::keeps_zeros() const {
  return std::all_of(options_.begin(), options_.end(), [](const auto& own) { return own.eps > 0; });
}

void RMSprop::update(const Range& range) {
  const RMSpropOptions& options = options_[range.group];
  kernels::rmsprop_step({.param = range.param,
                         .master = range.master,
                         .grad = range.grad,
                         .square_avg = range.moments[0],
                         .lr = range.lr,
                         .alpha = options.alpha,
                         .eps = options.eps,
                         .weight_decay = range.weight_decay,
                         .momentum = range.momentum,
                         .grad_multiplier = range.grad_multiplier,
                         .grad_avg = options.centered ? range.moments[1] : kNoView,
                         .momentum_buffer = has_momentum() ? range.moments.back() : kNoView,
                         .step_scalars = range.step_scalars,
                         .low = range.low});
}

}  // namespace binade::optim
