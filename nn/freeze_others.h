// FreezeOthers: while it exists, only some parameters below a module want gradients. For networks
// that are trained by turns: the backward of a generator goes through the discriminator and leaves
// nothing in it.
//
//   { const nn::FreezeOthers scope(gan, adam_g.parameters());  generator_loss(gan).backward(); }
#pragma once
#include <binade/nn/module.h>

#include <memory>
#include <vector>

namespace binade::nn {

// The others are frozen (Module::freeze()): their gradients so far are dropped. At the end of the
// scope they want gradients again; those that were frozen before stay frozen. REQUIRES: the module
// outlives it and is not changed meanwhile.
class [[nodiscard]] FreezeOthers {
 public:
  FreezeOthers(Module& model, const ParameterList& parameters);
  FreezeOthers(Module& model, const std::vector<const ParameterList*>& parameters);
  ~FreezeOthers();
  FreezeOthers(const FreezeOthers&) = delete;
  FreezeOthers& operator=(const FreezeOthers&) = delete;

 private:
  struct Frozen;
  std::unique_ptr<Frozen> frozen_;
};

}  // namespace binade::nn
