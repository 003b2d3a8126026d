// Fully connected layer: y = x weight^T + bias.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

struct LinearOptions {
  int64_t in;
  int64_t out;
  bool bias = true;
};

// x [..., in] -> [..., out].
class Linear : public Module {
 public:
  using Options = LinearOptions;
  explicit Linear(const LinearOptions& options);
  Linear(Module& parent, std::string_view name, const LinearOptions& options) : Linear(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // [out, in]
  Tensor bias;    // [out] or undefined

 private:
  friend class Fusion;
};

}  // namespace binade::nn
