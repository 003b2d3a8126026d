// A variational autoencoder (Kingma and Welling, 2014) of pictures: --data as train_classifier
// reads it (MNIST's idx files, image folders), or drawn glyphs. Writes RUN/reconstructions.png
// (every second row is the model's) and RUN/samples.png.
#include <binade/binade.h>
#include <binade/data/glyphs.h>
#include <binade/train/flags.h>

#include <cstdio>

using namespace binade;

namespace {

struct VAE : nn::Callable<VAE> {
  struct Output {
    Tensor logits, mean, log_variance;  // of pixels [N, C, H, W]; [N, latent] each
  };
  VAE(const Dims& picture, int64_t hidden, int64_t latent)
      : picture(picture),
        pixels(picture[0] * picture[1] * picture[2]),
        encoder(*this, "encoder", {.in = pixels, .out = hidden}),
        mean(*this, "mean", {.in = hidden, .out = latent}),
        log_variance(*this, "log_variance", {.in = hidden, .out = latent}),
        decoder(*this, "decoder", {.in = latent, .out = hidden}),
        output(*this, "output", {.in = hidden, .out = pixels}) {}

  Output forward(Tensor images) {
    const Tensor h = relu(encoder(flatten(images, 1)));
    const Tensor mu = mean(h), log_var = log_variance(h).to(DType::f32);
    const Tensor z = is_training() ? mu + exp(log_var / 2) * randn_like(log_var) : mu;
    return {decode(z), mu, log_var};
  }
  Tensor decode(const Tensor& z) {
    return output(relu(decoder(z))).reshape({z.size(0), picture[0], picture[1], picture[2]});
  }

  Dims picture;
  int64_t pixels;
  nn::Linear encoder, mean, log_variance, decoder, output;
};

// The negative evidence lower bound per picture.
train::StepOutput step(VAE& vae, const data::Batch& batch) {
  const auto [logits, mean, log_variance] = vae(batch.images);
  const auto count = static_cast<double>(batch.images.size(0));
  const Tensor reconstruction =
      bce_with_logits(logits, batch.images, {.reduction = Reduction::sum}) / count;
  const Tensor mu = mean.to(DType::f32);
  const Tensor kl = sum(mu * mu + exp(log_variance) - log_variance - 1) / (2 * count);
  return {.loss = reconstruction + kl,
          .output = sigmoid(logits),
          .log = {{"reconstruction", reconstruction}, {"kl", kl}}};
}

// Pictures and their reconstructions in turn, 8 a row, and decoded normal numbers.
void draw(VAE& vae, data::Loader& loader, int64_t latent, const std::string& run) {
  const NoGradGuard guard;
  vae.eval();
  data::Batch batch;
  loader.epoch(0);
  check(loader.next(batch), "got no picture for the grid");
  const int64_t count = std::min<int64_t>(batch.size, 32) / 8 * 8;
  const Tensor images = batch.images.to(vae.device());
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < count; i += 8) {
    const Tensor row = narrow(images, 0, i, 8);
    rows.insert(rows.end(), {row, sigmoid(vae(row).logits).to(DType::f32)});
  }
  if (count > 0) {
    data::save_png(run + "/reconstructions.png", data::make_grid(cat(rows)));
  }
  const Tensor z = randn({64, latent}, DType::f32, vae.device());
  data::save_png(run + "/samples.png", data::make_grid(sigmoid(vae.decode(z))));
}

void run(train::RunFlags flags, int64_t hidden, int64_t latent) {
  if (flags.data.empty()) {
    flags.data = "runs/glyphs-vae";
    data::make_glyph_folder(flags.data, {.train = 3000, .test = 500, .size = 28});
  }
  const data::TrainTest sets = data::open_dataset(flags.data);
  const data::LoaderOptions options{.batch = flags.batch, .seed = flags.seed};
  data::Loader train_loader(sets.train, options),
      test_loader(sets.test, {.batch = 256, .shuffle = false});
  const data::Image first = sets.train->get(0).image;

  VAE vae({first.channels, first.height, first.width}, hidden, latent);
  vae.to(flags.target(), flags.policy());
  optim::Adam adam(vae.parameters(), {.lr = flags.lr});
  train::TrainerOptions trainer_options = flags.trainer_options();
  trainer_options.step = step;
  train::Trainer trainer({.model = vae, .optimizer = adam}, trainer_options);
  flags.fit(trainer, train_loader, &test_loader);
  trainer.save_model();
  draw(vae, test_loader, latent, flags.run);
  const train::Evaluation result = trainer.validate(test_loader);
  std::printf("validation loss: %.4f (reconstruction %.4f, kl %.4f), %s/samples.png\n", result.loss,
              result["reconstruction"], result["kl"], flags.run.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("vae", "Trains a variational autoencoder of pictures.",
                         {.epochs = 10, .batch = 128, .lr = 1e-3});
  int64_t hidden = 400, latent = 20;
  program.add("--hidden", hidden, "size of the hidden layers", {1, 1 << 16});
  program.add("--latent", latent, "dimensions of the latent space", {1, 1 << 16});
  return program.run(argc, argv,
                     [&](const train::RunFlags& flags) { return run(flags, hidden, latent); });
}
