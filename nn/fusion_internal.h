// Fusion: modules in a row that run as one pass over memory. This is the only place that chooses
// such passes; Sequential and the library's models ask it.
//
// A module is part of a pass only if its class is exactly the library's. A subclass may override
// forward(), so its forward() is always called.
#pragma once
#include <binade/core/ops/linear.h>
#include <binade/nn/linear.h>
#include <binade/nn/norm.h>

namespace binade::nn {

class Fusion {
 public:
  // relu?(norm?(first(x)) + residual?)
  struct Chain {
    Module& first;
    Module* norm = nullptr;
    Tensor residual = {};  // undefined: none
    bool relu = false;
    size_t count() const { return 1 + (norm != nullptr) + relu; }  // of modules, without residual
  };

  // The longest run of these modules, from the first, that can be one pass. Absent modules are
  // null.
  static Chain chain_of(Module& first, Module* second, Module* third);
  static Tensor run(const Chain& chain, const Tensor& x);

  // linear2(activation(linear1(x))) for gelu or gelu_tanh; as one op if that is allowed now.
  static Tensor run_feedforward(Module& linear1, Module& linear2, const Tensor& x,
                                Activation activation = Activation::gelu);

 private:
  static Tensor run_first(Module& first, bool relu, const Tensor& x);
  static Tensor run_norm(const Chain& chain, const Tensor& x);
};

}  // namespace binade::nn
