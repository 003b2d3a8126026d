#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/optim/adagrad.h>
#include <binade/optim/group_options_internal.h>

#include <algorithm>

namespace binade::optim {
namespace {

void check_adagrad(const AdagradOptions& options) {
  check(options.lr_decay >= 0, "Adagrad: got lr_decay = ", options.lr_decay,
        ", expected a number >= 0");
  check(options.initial_accumulator_value >= 0,
        "Adagrad: got initial_accumulator_value = ", options.initial_accumulator_value,
        ", expected a number >= 0");
  check(options.eps >= 0, "Adagrad: got eps = ", options.eps, ", expected a number >= 0");
}

std::vector<AdagradOptions> all_options(const AdagradOptions& options,
                                        const std::vector<ParamGroup>& groups) {
  return options_of("Adagrad", options, groups, check_adagrad);
}

}  // namespace

Adagrad::Adagrad(const ParameterList& parameters, const AdagradOptions& options)
    : Adagrad(single_group(parameters), options) {}

Adagrad::Adagrad(std::vector<ParamGroup> groups, const AdagradOptions& options)
    : Optimizer(groups, settings_of(all_options(options, groups)), false, {"sum"}),
      options_(all_options(options, groups)) {
  for (size_t group = 0; group < options_.size(); ++group) {
    if (options_[group].initial_accumulator_value != 0) {
      fill_moment(0, group, options_[group].initial_accumulator_value);
    }
  }
}

bool Adagrad::keeps_zeros() const {
  return std::all_of(options_.begin(), options_.end(), [](const auto& own) { return own.eps > 0; });
}

void Adagrad::update(const Range& range) {
  const AdagradOptions& options = options_[range.group];
  kernels::adagrad_step({.param = range.param,
                         .master = range.master,
                         .grad = range.grad,
                         .sum = range.moments[0],
                         .lr = range.lr,
                         .lr_decay = options.lr_decay,
                         .eps = options.eps,
                         .weight_decay = range.weight_decay,
                         .step = range.update,
                         .grad_multiplier = range.grad_multiplier,
                         .step_scalars = range.step_scalars,
                         .low = range.low});
}

}  // namespace binade::optim
