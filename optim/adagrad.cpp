#include <binade/kernels/optimizer/optimizer_adaptive.h>
#include <binade/optim/adagrad.h>

namespace binade::optim {
namespace {

const AdagradOptions& checked(const AdagradOptions& options) {
  check(options.lr_decay >= 0, "Adagrad: got lr_decay = ", options.lr_decay,
        ", expected a number >= 0");
  check(options.initial_accumulator_value >= 0,
        "Adagrad: got initial_accumulator_value = ", options.initial_accumulator_value,
        ", expected a number >= 0");
  check(options.eps >= 0, "Adagrad: got eps = ", options.eps, ", expected a number >= 0");
  return options;
}

}  // namespace

Adagrad::Adagrad(const ParameterList& parameters, const AdagradOptions& options)
    : Adagrad(single_group(parameters), options) {}

Adagrad::Adagrad(std::vector<ParamGroup> groups, const AdagradOptions& options)
    : Optimizer(std::move(groups),
                {checked(options).lr, options.weight_decay, options.decay_norms_and_biases},
                {"sum"}),
      options_(options) {
  if (options.initial_accumulator_value != 0) {
    fill_moment(0, options.initial_accumulator_value);
  }
}

void Adagrad::update(const Range& range) {
  kernels::adagrad_step({.param = range.param,
                         .master = range.master,
                         .grad = range.grad,
                         .sum = range.moments[0],
                         .lr = range.lr,
                         .lr_decay = options_.lr_decay,
                         .eps = options_.eps,
                         .weight_decay = range.weight_decay,
                         .step = range.update,
                         .grad_multiplier = range.grad_multiplier,
                         .step_scalars = range.step_scalars});
}

}  // namespace binade::optim
