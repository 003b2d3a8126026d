// Convolution (cross-correlation) with zero padding over images and sequences, and its transpose.
// Results are in channels-last order.
#pragma once
#include <binade/core/ops/conv.h>
#include <binade/nn/module.h>

namespace binade::nn {

using binade::Pair;

// Size: int64_t for one dimension, Pair for two.
template <class Size>
struct ConvOptions {
  int64_t in;
  int64_t out;
  Size kernel;
  Size stride = 1;
  Size padding = 0;
  Size dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
using Conv1dOptions = ConvOptions<int64_t>;
using Conv2dOptions = ConvOptions<Pair>;

template <class Size>
struct ConvTransposeOptions {
  int64_t in;
  int64_t out;
  Size kernel;
  Size stride = 1;
  Size padding = 0;
  Size output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Size dilation = 1;
};
using ConvTranspose1dOptions = ConvTransposeOptions<int64_t>;
using ConvTranspose2dOptions = ConvTransposeOptions<Pair>;

// x [N, in, H, W] -> [N, out, P, Q].
class Conv2d : public Module {
 public:
  using Options = Conv2dOptions;
  explicit Conv2d(const Conv2dOptions& options);
  Conv2d(Module& parent, std::string_view name, const Conv2dOptions& options) : Conv2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;
  const binade::Conv2dOptions& geometry() const { return geometry_; }

  Tensor weight;  // [out, in / groups, kernel], channels-last
  Tensor bias;    // [out] or undefined

 private:
  friend class Fusion;
  binade::Conv2dOptions geometry_;
};

// x [N, in, L] -> [N, out, Q].
class Conv1d : public Module {
 public:
  using Options = Conv1dOptions;
  explicit Conv1d(const Conv1dOptions& options);
  Conv1d(Module& parent, std::string_view name, const Conv1dOptions& options) : Conv1d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // [out, in / groups, kernel], channels-last
  Tensor bias;    // [out] or undefined

 private:
  binade::Conv1dOptions geometry_;
};

// x [N, in, H, W] -> [N, out, P, Q].
class ConvTranspose2d : public Module {
 public:
  using Options = ConvTranspose2dOptions;
  explicit ConvTranspose2d(const ConvTranspose2dOptions& options);
  ConvTranspose2d(Module& parent, std::string_view name, const ConvTranspose2dOptions& options)
      : ConvTranspose2d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // [in, out / groups, kernel], channels-last
  Tensor bias;    // [out] or undefined

 private:
  binade::ConvTranspose2dOptions geometry_;
};

// x [N, in, L] -> [N, out, Q].
class ConvTranspose1d : public Module {
 public:
  using Options = ConvTranspose1dOptions;
  explicit ConvTranspose1d(const ConvTranspose1dOptions& options);
  ConvTranspose1d(Module& parent, std::string_view name, const ConvTranspose1dOptions& options)
      : ConvTranspose1d(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // [in, out / groups, kernel], channels-last
  Tensor bias;    // [out] or undefined

 private:
  binade::ConvTranspose1dOptions geometry_;
};

}  // namespace binade::nn
