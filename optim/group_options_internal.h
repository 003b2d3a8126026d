// The options of each group of an optimizer: the optimizer's own options, replaced where the group
// sets one. Internal to optim.
#pragma once
#include <binade/optim/optimizer.h>

#include <type_traits>

namespace binade::optim {

// The options of one group. An option that the optimizer does not have is an error.
template <class Options>
Options options_of(const char* optimizer, Options options, const ParamGroup& group) {
  const auto take = [&](const char* name, const auto& own, auto member) {
    if constexpr (std::is_invocable_v<decltype(member), Options&>) {
      *member(options) = own.value_or(*member(options));
    } else {
      check(!own, optimizer, ": got a group with ", name, ", an option that ", optimizer,
            " does not have, expected one that it has; leave it out");
    }
  };
  take("lr", group.lr, [](auto& o) -> decltype(&o.lr) { return &o.lr; });
  take("weight_decay", group.weight_decay,
       [](auto& o) -> decltype(&o.weight_decay) { return &o.weight_decay; });
  take("betas", group.betas, [](auto& o) -> decltype(&o.betas) { return &o.betas; });
  if constexpr (requires { options.betas; }) {
    check(!group.betas || !group.momentum, optimizer,
          ": got a group with momentum and betas, expected one of them: momentum is beta1");
    options.betas[0] = group.momentum.value_or(options.betas[0]);
  } else {
    take("momentum", group.momentum, [](auto& o) -> decltype(&o.momentum) { return &o.momentum; });
  }
  take("dampening", group.dampening,
       [](auto& o) -> decltype(&o.dampening) { return &o.dampening; });
  take("nesterov", group.nesterov, [](auto& o) -> decltype(&o.nesterov) { return &o.nesterov; });
  take("eps", group.eps, [](auto& o) -> decltype(&o.eps) { return &o.eps; });
  take("amsgrad", group.amsgrad, [](auto& o) -> decltype(&o.amsgrad) { return &o.amsgrad; });
  take("alpha", group.alpha, [](auto& o) -> decltype(&o.alpha) { return &o.alpha; });
  take("centered", group.centered, [](auto& o) -> decltype(&o.centered) { return &o.centered; });
  take("lr_decay", group.lr_decay, [](auto& o) -> decltype(&o.lr_decay) { return &o.lr_decay; });
  take("initial_accumulator_value", group.initial_accumulator_value,
       [](auto& o) -> decltype(&o.initial_accumulator_value) {
         return &o.initial_accumulator_value;
       });
  take("trust_coefficient", group.trust_coefficient,
       [](auto& o) -> decltype(&o.trust_coefficient) { return &o.trust_coefficient; });
  take("decay_norms_and_biases", group.decay_norms_and_biases,
       [](auto& o) -> decltype(&o.decay_norms_and_biases) { return &o.decay_norms_and_biases; });
  take("maximize", group.maximize, [](auto& o) -> decltype(&o.maximize) { return &o.maximize; });
  return options;
}

// The options of all groups; checked(options) throws where they make no sense.
template <class Options, class Checked>
std::vector<Options> options_of(const char* optimizer, const Options& options,
                                const std::vector<ParamGroup>& groups, Checked&& checked) {
  checked(options);
  std::vector<Options> all;
  for (const ParamGroup& group : groups) {
    all.push_back(options_of(optimizer, options, group));
    checked(all.back());
  }
  return all;
}

inline void check_betas(const char* optimizer, const Betas& betas) {
  for (const double beta : {betas[0], betas[1]}) {
    check(beta >= 0 && beta < 1, optimizer, ": got betas = {", betas[0], ", ", betas[1],
          "}, expected numbers in [0, 1)");
  }
}

// The settings that the base class uses.
template <class Options>
std::vector<GroupSettings> settings_of(const std::vector<Options>& all) {
  std::vector<GroupSettings> settings;
  for (const Options& options : all) {
    GroupSettings own{options.lr, options.weight_decay, options.decay_norms_and_biases,
                      options.maximize};
    if constexpr (requires { options.betas; }) {
      own.momentum = options.betas[0];
    } else if constexpr (requires { options.momentum; }) {
      own.momentum = options.momentum;
    }
    settings.push_back(own);
  }
  return settings;
}

}  // namespace binade::optim
