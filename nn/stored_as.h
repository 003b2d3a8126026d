// StoredAs: while it exists, a model runs as if it were stored in another precision, for example
// for a second run of a step in f64 (train/precision/shadow.h).
//
//   { const nn::StoredAs f64(net, Precision::full(), {.wide = DType::f64});  loss = net(x); }
//
// During the scope the parameters are new leaves with the exact values of the model's (the masters
// where there are any), stored as the precision asks; the buffers are copies. At the end the model
// gets its own tensors back unchanged: values, masters, gradients, buffers and optimizers.
#pragma once
#include <binade/core/owned.h>
#include <binade/nn/module.h>

#include <vector>

namespace binade::nn {

struct StoredAsOptions {
  DType wide = DType::f32;  // f32 or f64: the dtype of everything that is not f16 or bf16
  // With f64: the weights are exact + rounding (stored - exact). 0 gives the exact weights, 1 the
  // rounded weights with which the model runs.
  double rounding = 0;
};

// REQUIRES: the model outlives the scope, and nothing else uses the model during it. Throws if the
// masters are sharded over ranks.
class [[nodiscard]] StoredAs {
 public:
  struct Parameter {
    std::string path;  // from the model
    Tensor value;      // the leaf; wants a gradient also if the model's parameter is frozen
    Tensor rounding;   // f64: the stored value of the model's parameter minus its exact value
  };

  StoredAs(Module& model, const Precision& precision, const StoredAsOptions& options = {});
  ~StoredAs();
  StoredAs(const StoredAs&) = delete;
  StoredAs& operator=(const StoredAs&) = delete;

  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  struct Kept;
  void put_back() noexcept;

  Owned<Kept> kept_;
  std::vector<Parameter> parameters_;
};

}  // namespace binade::nn
