// A variational autoencoder and a GAN.
#include <bench/peers/generative_models.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/activation.h>

#include <utility>

namespace binade::peers {

VAE::VAE() {
  register_module("fc1", fc1);
  register_module("mean", mean);
  register_module("log_variance", log_variance);
  register_module("fc3", fc3);
  register_module("fc4", fc4);
}

Tensor VAE::loss(const Tensor& x, const Tensor& noise) {
  return scoped([&] {
    const Tensor hidden = relu(fc1(x)), m = mean(hidden), v = log_variance(hidden);
    const Tensor z = m + noise * exp(v * 0.5);
    const Tensor logits = fc4(relu(fc3(z)));
    const Tensor divergence = sum(v + 1.0 - m * m - exp(v)) * -0.5;
    return (bce_with_logits(logits, x, {.reduction = Reduction::sum}) + divergence) *
           (1.0 / static_cast<double>(x.size(0)));
  });
}

GAN::GAN() {
  struct Layer {
    int64_t in, out, stride, padding;
  };
  for (const auto& [in, out, stride, padding] :
       {Layer{kLatent, 256, 1, 0}, {256, 128, 2, 1}, {128, 64, 2, 1}}) {
    generator.add<nn::ConvTranspose2d>(
        {.in = in, .out = out, .kernel = 4, .stride = stride, .padding = padding, .bias = false});
    generator.add<nn::BatchNorm2d>({.channels = out});
    generator.add<nn::ReLU>();
  }
  generator.add<nn::ConvTranspose2d>(
      {.in = 64, .out = 3, .kernel = 4, .stride = 2, .padding = 1, .bias = false});
  generator.add<nn::Tanh>();
  for (const auto& [in, out] : {std::pair{3, 64}, {64, 128}, {128, 256}}) {
    discriminator.add<nn::Conv2d>(
        {.in = in, .out = out, .kernel = 4, .stride = 2, .padding = 1, .bias = false});
    if (in != 3) {
      discriminator.add<nn::BatchNorm2d>({.channels = out});
    }
    discriminator.add<nn::LeakyReLU>({.negative_slope = 0.2});
  }
  discriminator.add<nn::Conv2d>({.in = 256, .out = 1, .kernel = 4, .bias = false});
  register_module("generator", generator);
  register_module("discriminator", discriminator);
}

Tensor GAN::loss(const Tensor& images, double label) {
  const Tensor logits = discriminator(images);
  return bce_with_logits(logits, full(logits.sizes(), label));
}

Tensor GAN::discriminator_loss(const Tensor& images, const Tensor& noise) {
  return scoped([&] {
    fakes_ = generator(noise);
    return loss(images, 1) + loss(fakes_.detach(), 0);
  });
}

Tensor GAN::generator_loss() {
  return scoped([&] { return loss(std::exchange(fakes_, {}), 1); });
}

}  // namespace binade::peers
