// Two-dimensional convolution (cross-correlation) with zero padding.
#pragma once
#include <binade/kernels/conv2d.h>
#include <binade/nn/module.h>

namespace binade::nn {

// A vertical and a horizontal number; one number stands for both.
struct Pair {
  int64_t vertical;
  int64_t horizontal;
  Pair(int64_t both) : vertical(both), horizontal(both) {}  // NOLINT
  Pair(int64_t vertical, int64_t horizontal) : vertical(vertical), horizontal(horizontal) {}
};

struct Conv2dOptions {
  int64_t in;
  int64_t out;
  Pair kernel;
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

// x [N, in, H, W] -> [N, out, P, Q] in channels-last order.
class Conv2d : public Module {
 public:
  using Options = Conv2dOptions;
  explicit Conv2d(const Conv2dOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // [out, in / groups, kernel], channels-last
  Tensor bias;    // [out] or undefined

 private:
  kernels::Conv2dGeometry geometry_;
};

}  // namespace binade::nn
