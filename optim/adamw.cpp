#include <binade/kernels/optimizer/optimizer.h>
#include <binade/optim/adamw.h>
#include <binade/optim/group_options_internal.h>

#include <algorithm>

namespace binade::optim {
namespace {

std::vector<std::string> moments(const std::vector<AdamWOptions>& all) {
  std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
  if (std::any_of(all.begin(), all.end(), [](const auto& own) { return own.amsgrad; })) {
    names.emplace_back("max_exp_avg_sq");
  }
  return names;
}

AdamWOptions common(const AdamOptions& options) {
  return {.lr = options.lr,
          .betas = options.betas,
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .amsgrad = options.amsgrad,
          .decay_norms_and_biases = options.decay_norms_and_biases,
          .maximize = options.maximize};
}

void check_adamw(const char* name, const AdamWOptions& options) {
  check_betas(name, options.betas);
  check(options.eps >= 0, name, ": got eps = ", options.eps, ", expected a number >= 0");
}

std::vector<AdamWOptions> all_options(const AdamWOptions& options,
                                      const std::vector<ParamGroup>& groups, bool decoupled) {
  const char* name = decoupled ? "AdamW" : "Adam";
  return options_of(name, options, groups,
                    [name](const AdamWOptions& own) { check_adamw(name, own); });
}

}  // namespace

AdamW::AdamW(const ParameterList& parameters, const AdamWOptions& options)
    : AdamW(single_group(parameters), options, true) {}

AdamW::AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options)
    : AdamW(std::move(groups), options, true) {}

AdamW::AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options, bool decoupled)
    : Optimizer(groups, settings_of(all_options(options, groups, decoupled)), true,
                moments(all_options(options, groups, decoupled))),
      options_(all_options(options, groups, decoupled)),
      decoupled_(decoupled) {}

bool AdamW::keeps_zeros() const {
  return std::all_of(options_.begin(), options_.end(), [](const auto& own) { return own.eps > 0; });
}

void AdamW::update(const Range& range) {
  const AdamWOptions& options = options_[range.group];
  kernels::adam_step({.param = range.param,
                      .master = range.master,
                      .grad = range.grad,
                      .exp_avg = range.moments[0],
                      .exp_avg_sq = range.moments[1],
                      .lr = range.lr,
                      .beta1 = range.momentum,
                      .beta2 = options.betas[1],
                      .eps = options.eps,
                      .weight_decay = range.weight_decay,
                      .decoupled = decoupled_,
                      .step = range.update,
                      .grad_multiplier = range.grad_multiplier,
                      .max_exp_avg_sq = options.amsgrad ? range.moments[2] : kNoView,
                      .step_scalars = range.step_scalars,
                      .low = range.low});
}

Adam::Adam(const ParameterList& parameters, const AdamOptions& options)
    : AdamW(single_group(parameters), common(options), false) {}

Adam::Adam(std::vector<ParamGroup> groups, const AdamOptions& options)
    : AdamW(std::move(groups), common(options), false) {}

}  // namespace binade::optim
