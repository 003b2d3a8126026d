// Modules whose forward() has other inputs than one tensor, or another result.
//
//   struct Vae : nn::Callable<Vae> {
//     struct Output { Tensor image, mean, log_variance; };
//     Output forward(Tensor x) { ... }
//     ...
//   };
//   const auto [image, mean, log_variance] = vae(x);
//
// forward() may have any parameters, defaults, overloads and results; vae(...) calls it under the
// module's path and precision, with all checks of Module. Write the type of a braced argument:
// model(x, nn::AttentionMask{.is_causal = true}).
//
// Through a base reference (Module&) and in a Sequential the module is called with one tensor. That
// works if forward() can be called so and returns a Tensor; otherwise it is an error.
//
// C++ sets one limit: a forward(const Tensor&) that is not const overrides Module::forward(), which
// returns a Tensor. If it must return something else, take the tensor by value, as in Vae, or make
// forward() const.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

namespace detail {
// Declared outside of all classes, so that only a public forward() of the class itself counts.
template <class M, class... Args>
concept Forwards = requires(M& module, Args&&... args) {
  module.forward(std::forward<Args>(args)...);
};
template <class M>
concept ForwardsOne = requires(M& module, const Tensor& x) {
  { module.forward(x) } -> std::same_as<Tensor>;
};
}  // namespace detail

// REQUIRES: Derived derives from Callable<Derived> and has a public forward().
template <class Derived>
class Callable : public Module {
 public:
  using Module::Module;

  template <class... Args>
  requires detail::Forwards<Derived, Args...>
  decltype(auto) operator()(Args&&... args) {
    return scoped([&]() -> decltype(auto) {
      return static_cast<Derived&>(*this).forward(std::forward<Args>(args)...);
    });
  }

 private:
  // Hides Module::forward(), which Derived's forward() need not override.
  using Module::forward;
  void forward() const {}

  Tensor forward_one(const Tensor& x) override {
    if constexpr (detail::ForwardsOne<Derived>) {
      return static_cast<Derived&>(*this).forward(x);
    } else {
      return Module::forward_one(x);
    }
  }
};

}  // namespace binade::nn
