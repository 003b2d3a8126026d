// A generative adversarial network (Goodfellow et al., 2014) with two optimizers, on points in the
// plane: eight normal distributions on a circle. Writes RUN/points.png (real and generated ones)
// and says how many of the eight the generator has found.
#include <binade/binade.h>
#include <binade/train/flags.h>

#include <cmath>
#include <cstdio>

using namespace binade;

namespace {

constexpr int64_t kModes = 8, kNoise = 16;
constexpr double kDeviation = 0.1;

Tensor centres() {  // [8, 2], on the unit circle
  const Tensor angle = arange(kModes).to(DType::f32) * (2 * M_PI / kModes);
  return stack({cos(angle), sin(angle)}, 1);
}

Tensor real_points(int64_t count) {
  return index_select(centres(), 0, randint(kModes, {count})) + randn({count, 2}) * kDeviation;
}

struct GAN : nn::Module {
  explicit GAN(int64_t hidden)
      : generator(*this, "generator", {.in = kNoise, .hidden = {hidden, hidden}, .classes = 2}),
        discriminator(*this, "discriminator", {.in = 2, .hidden = {hidden, hidden}, .classes = 1}) {
  }
  Tensor generate(int64_t count) { return generator(randn({count, kNoise}, DType::f32, device())); }

  nn::MLP generator, discriminator;
};

Tensor verdict(GAN& gan, const Tensor& points, double wanted) {
  const Tensor logits = gan.discriminator(points);
  return bce_with_logits(logits, full_like(logits, wanted));
}

// E|a - b| over all pairs.
Tensor mean_distance(const Tensor& a, const Tensor& b) {
  const Tensor d = unsqueeze(a, 1) - unsqueeze(b, 0);
  return mean(sqrt(sum(d * d, {2}) + 1e-12));
}

// The energy distance of generated and real points (Szekely and Rizzo): 0 for equal distributions.
train::StepOutput validate(GAN& gan, const data::Batch& batch) {
  const Tensor real = batch["points"], fake = gan.generate(batch.size).to(DType::f32);
  return {
      .loss = mean_distance(real, fake) * 2 - mean_distance(real, real) - mean_distance(fake, fake),
      .output = fake};
}

// Points in [-1.5, 1.5]^2 as white pixels.
Tensor drawn(const Tensor& points) {
  constexpr int64_t kSide = 96;
  Tensor picture = zeros({1, kSide, kSide});
  const std::vector<float> xy = points.to_vector<float>();
  for (size_t i = 0; i < xy.size(); i += 2) {
    const auto x = static_cast<int64_t>((xy[i] + 1.5) / 3 * kSide);
    const auto y = static_cast<int64_t>((1.5 - xy[i + 1]) / 3 * kSide);
    if (x >= 0 && x < kSide && y >= 0 && y < kSide) {
      picture.data<float>()[y * kSide + x] = 1;
    }
  }
  return picture;
}

void report(GAN& gan, const std::string& run, double distance) {
  const NoGradGuard guard;
  gan.eval();
  const Tensor fake = gan.generate(2000).to(DType::f32).to(Device{});
  const Tensor d = unsqueeze(fake, 1) - unsqueeze(centres(), 0);
  const ValuesIndices nearest = min(sqrt(sum(d * d, {2})), 1);
  const Tensor good = nearest.values < 3 * kDeviation;
  const Tensor hits = bincount(masked_select(nearest.indices, good), {}, kModes);
  const double found = sum(hits >= 20).item(), share = mean(good.to(DType::f32)).item();
  data::save_png(run + "/points.png",
                 data::make_grid(stack({drawn(real_points(2000)), drawn(fake)})));
  std::printf("modes found: %.0f of %lld, points near one: %.1f%%, energy distance: %.4f\n", found,
              static_cast<long long>(kModes), 100 * share, distance);
}

void run(const train::RunFlags& flags, int64_t hidden) {
  data::Loader train_loader(data::TensorDataset({{"points", real_points(8192)}}),
                            {.batch = flags.batch, .workers = 0, .seed = flags.seed});
  data::Loader validation_loader(data::TensorDataset({{"points", real_points(1024)}}),
                                 {.batch = 512, .workers = 0, .shuffle = false});
  GAN gan(hidden);
  gan.to(flags.target(), flags.policy());
  const optim::AdamOptions adam{.lr = flags.lr, .betas = {0, 0.99}};
  optim::Adam adam_d(gan.discriminator.parameters(), adam);
  optim::Adam adam_g(gan.generator.parameters(), adam);

  train::TrainerOptions options = flags.trainer_options();
  options.patience = 0;
  options.validation_step = validate;
  const auto train_discriminator = [](GAN& g, const data::Batch& batch) {
    const Tensor fake = g.generate(batch.size).detach();
    return verdict(g, batch["points"], 1) + verdict(g, fake, 0);
  };
  const auto train_generator = [](GAN& g, const data::Batch& batch) {
    return verdict(g, g.generate(batch.size), 1);
  };
  train::Trainer trainer(
      {.model = gan,
       .phases = {{.name = "discriminator", .optimizer = adam_d, .step = train_discriminator},
                  {.name = "generator", .optimizer = adam_g, .step = train_generator}}},
      options);
  flags.fit(trainer, train_loader, &validation_loader);
  trainer.save_model();
  report(gan, flags.run, trainer.validate(validation_loader).loss);
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("gan", "Trains a generator against a discriminator.",
                         {.epochs = 60, .batch = 256, .lr = 1e-3}, {"--data"});
  int64_t hidden = 128;
  program.add("--hidden", hidden, "size of the hidden layers", {1, 1 << 16});
  return program.run(argc, argv, [&](const train::RunFlags& flags) { return run(flags, hidden); });
}
