// OptimizerState: what an optimizer saves and loads. Internal to optim.
#pragma once
#include <binade/optim/optimizer.h>

namespace binade::optim {

// The functions have the names and contracts of Optimizer's.
class OptimizerState {
 public:
  static NamedTensors tensors(const Optimizer& optimizer);
  static NamedScalars scalars(const Optimizer& optimizer);
  static void load(Optimizer& optimizer, const NamedTensors& tensors, const NamedScalars& scalars);

 private:
  template <class F>
  static void for_each(const Optimizer& optimizer, F f);
  static void check_scalars(const Optimizer& optimizer, const NamedScalars& scalars);
};

}  // namespace binade::optim
