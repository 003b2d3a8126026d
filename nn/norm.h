// Batch normalisation over the channels of images.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

struct BatchNorm2dOptions {
  int64_t channels;
  double eps = 1e-5;
  double momentum = 0.1;  // share of the new batch in the running statistics
};

// x [N, channels, H, W]. Parameters and statistics stay f32 under the policy `mixed`.
class BatchNorm2d : public Module {
 public:
  using Options = BatchNorm2dOptions;
  explicit BatchNorm2d(const BatchNorm2dOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;               // [channels]
  Tensor running_mean, running_var;  // [channels]

 private:
  BatchNorm2dOptions options_;
};

}  // namespace binade::nn
