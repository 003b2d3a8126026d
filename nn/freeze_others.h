// FreezeOthers: while it exists, only some parameters below a module get gradients. It serves
// networks that are trained in turns: the backward of a generator runs through the discriminator
// and leaves no gradients in it.
//
//   { const nn::FreezeOthers scope(gan, adam_g.parameters());  generator_loss(gan).backward(); }
#pragma once
#include <binade/core/owned.h>
#include <binade/nn/module.h>

#include <initializer_list>
#include <vector>

namespace binade::nn {

// The constructor freezes the other parameters (Module::freeze()) and drops their gradients. The
// end of the scope unfreezes them; those that were frozen before stay frozen. FreezeOthers(gan, {})
// freezes all. REQUIRES: the module outlives the scope and is not changed during it.
class [[nodiscard]] FreezeOthers {
 public:
  FreezeOthers(Module& model, const ParameterList& parameters);
  FreezeOthers(Module& model, const std::vector<const ParameterList*>& parameters);
  FreezeOthers(Module& model, std::initializer_list<const ParameterList*> parameters)
      : FreezeOthers(model, std::vector<const ParameterList*>(parameters)) {}
  ~FreezeOthers();
  FreezeOthers(const FreezeOthers&) = delete;
  FreezeOthers& operator=(const FreezeOthers&) = delete;

 private:
  struct Frozen;
  Owned<Frozen> frozen_;
};

}  // namespace binade::nn
