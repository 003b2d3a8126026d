// A variational autoencoder and a GAN with their losses. Their parameters have the same names as in
// torch_generative_models.py.
#pragma once
#include <binade/nn/conv.h>
#include <binade/nn/linear.h>
#include <binade/nn/sequential.h>

namespace binade::peers {

// PyTorch's VAE example: 784-400-20-400-784 with relu.
class VAE : public nn::Module {
 public:
  static constexpr int64_t kPixels = 784, kHidden = 400, kLatent = 20;
  VAE();
  // x [N, kPixels] in [0, 1], noise [N, kLatent] from a normal distribution. Returns the negative
  // evidence lower bound per sample.
  Tensor loss(const Tensor& x, const Tensor& noise);

  nn::Linear fc1{{.in = kPixels, .out = kHidden}}, mean{{.in = kHidden, .out = kLatent}},
      log_variance{{.in = kHidden, .out = kLatent}}, fc3{{.in = kLatent, .out = kHidden}},
      fc4{{.in = kHidden, .out = kPixels}};
};

// DCGAN on 32x32 (Radford et al., 2016). Call discriminator_loss() first in each step.
class GAN : public nn::Module {
 public:
  static constexpr int64_t kLatent = 100;
  GAN();
  // images [N, 3, 32, 32], noise [N, kLatent, 1, 1]. Keeps the fakes for generator_loss().
  Tensor discriminator_loss(const Tensor& images, const Tensor& noise);
  Tensor generator_loss();

  nn::Sequential generator, discriminator;

 private:
  Tensor loss(const Tensor& images, double label);

  Tensor fakes_;
};

}  // namespace binade::peers
