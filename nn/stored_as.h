// StoredAs: while it exists, a model runs as if it were stored in another precision: for a step
// beside the model itself, such as its shadow in f64 (train/precision/shadow.h).
//
//   { const nn::StoredAs f64(net, Precision::full(), {.wide = DType::f64});  loss = net(x); }
//
// Its parameters are new leaves with the exact values of the model's (the masters, where there are
// any), stored as the precision asks; its buffers are copies. At the end of the scope the model has
// its own tensors again, untouched: values, masters, gradients, buffers and optimizers.
#pragma once
#include <binade/nn/module.h>

#include <memory>
#include <vector>

namespace binade::nn {

struct StoredAsOptions {
  DType wide = DType::f32;  // of all that is not f16 or bf16: f32 or f64
  // With f64: this share of the rounding from the exact value to the stored one is added. 0 gives
  // the exact weights, 1 those with which the model runs.
  double rounding = 0;
};

// REQUIRES: the model outlives it and nothing else uses the model meanwhile. Throws where masters
// are spread over ranks.
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

  std::unique_ptr<Kept> kept_;
  std::vector<Parameter> parameters_;
};

}  // namespace binade::nn
