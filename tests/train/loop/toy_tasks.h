// Small tasks other than classification: a regression, a VAE and a GAN on rows of numbers.
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/loader.h>
#include <binade/data/sets/tensor_dataset.h>
#include <binade/nn/activation.h>
#include <binade/nn/callable.h>
#include <binade/nn/linear.h>
#include <binade/optim/adamw.h>
#include <binade/train/metrics/regression.h>
#include <binade/train/trainer.h>

#include <optional>
#include <string>

namespace binade::train::toy {

inline constexpr int64_t kInputs = 3;

// Makes rows with y = x0 - 2 x1 + 0.5 x2 + noise.
inline data::TensorDataset rows(int64_t count, uint64_t seed) {
  manual_seed(seed);
  const Tensor x = randn({count, kInputs});
  const Tensor w = from_values({1, -2, 0.5}, {kInputs, 1});
  return data::TensorDataset({{"x", x}, {"y", matmul(x, w) + randn({count, 1}) * 0.1}});
}

struct Regression : nn::Module {
  nn::Linear first{*this, "first", {.in = kInputs, .out = 8}};
  nn::Dropout dropout{*this, "dropout", {.p = 0.2}};
  nn::Linear last{*this, "last", {.in = 8, .out = 1}};
  Tensor forward(const Tensor& x) override { return last(dropout(tanh(first(x)))); }
};

inline StepOutput regression_step(nn::Module& model, const data::Batch& batch) {
  const Tensor y = model(batch["x"]);
  return {.loss = mse_loss(y, batch["y"]),
          .output = y,
          .log = {{"mean_error", l1_loss(y, batch["y"])}, {"rows", batch.size}}};
}

struct Vae : nn::Callable<Vae> {
  struct Output {
    Tensor x, mean, log_variance;
  };
  nn::Linear encoder{*this, "encoder", {.in = kInputs, .out = 8}};
  nn::Linear moments{*this, "moments", {.in = 8, .out = 4}};
  nn::Linear decoder{*this, "decoder", {.in = 2, .out = kInputs}};
  Output forward(Tensor x) {
    const Tensor both = moments(tanh(encoder(x)));
    const Tensor mean = slice(both, 1, 0, 2), log_variance = slice(both, 1, 2, 4);
    const Tensor noise = randn(mean.sizes(), DType::f32, mean.device());
    return {decoder(mean + exp(log_variance * 0.5) * noise), mean, log_variance};
  }
};

inline StepOutput vae_step(Vae& vae, const data::Batch& batch) {
  const auto [x, mean, log_variance] = vae(batch["x"]);
  const Tensor kl = binade::mean(square(mean) + exp(log_variance) - log_variance - 1.0) * 0.5;
  const Tensor error = mse_loss(x, batch["x"]);
  return {.loss = error + kl * 0.1, .output = x, .log = {{"kl", kl}, {"error", error}}};
}

struct Gan : nn::Module {
  nn::Linear generator{*this, "generator", {.in = 2, .out = kInputs}};
  nn::Linear hidden{*this, "hidden", {.in = kInputs, .out = 8}};
  nn::Linear judge{*this, "judge", {.in = 8, .out = 1}};
  ParameterList discriminator() {
    return parameters().filter([](const Parameter& p) { return !p.name.starts_with("generator"); });
  }
  Tensor fake(const data::Batch& batch) {
    return generator(randn({batch.size, 2}, DType::f32, device()));
  }
  Tensor score(const Tensor& x) { return judge(tanh(hidden(x))); }
};

inline Tensor bce_of(const Tensor& logits, double target) {
  return bce_with_logits(logits, full(logits.sizes(), target, logits.dtype(), logits.device()));
}
inline Tensor discriminator_loss(Gan& gan, const data::Batch& batch) {
  return bce_of(gan.score(batch["x"]), 1) + bce_of(gan.score(gan.fake(batch).detach()), 0);
}
inline Tensor generator_loss(Gan& gan, const data::Batch& batch) {
  return bce_of(gan.score(gan.fake(batch)), 1);
}
// The distance between the means of real and generated rows, which does not depend on the scores.
inline StepOutput gan_validation(Gan& gan, const data::Batch& batch) {
  const Tensor fake = gan.fake(batch).to(DType::f32);
  return {.loss = mean(square(mean(fake, {0}) - mean(batch["x"], {0}))), .output = fake};
}

inline std::vector<double> numbers_of(const nn::Module& model) {
  std::vector<double> numbers;
  for (const auto& [name, tensor] : model.state()) {
    const Tensor host = tensor.to(Device{});
    for (int64_t i = 0; i < host.numel(); ++i) {
      numbers.push_back(host.at(i));
    }
  }
  return numbers;
}

}  // namespace binade::train::toy
