// The models that bench/peers times, by name.
#include <bench/peers/generative_models.h>
#include <bench/peers/image_models.h>
#include <bench/peers/model_table.h>
#include <bench/peers/models.h>
#include <bench/peers/text_models.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/models.h>

namespace binade::peers {
namespace {

using MakeModel = std::function<std::unique_ptr<nn::Module>()>;

nn::Module& whole(nn::Module& model) { return model; }

Tensor classification_loss(nn::Module& model, const Batch& batch) {
  return cross_entropy(model(batch.input), batch.target);
}

Dims with_batch(int64_t batch, const Dims& sample) {
  Dims sizes{batch};
  for (int64_t size : sample) {
    sizes.push_back(size);
  }
  return sizes;
}

// `sample` is the shape [C, H, W] of an image; each image, or each pixel, has one class.
ModelEntry classifier(const std::string& name, MakeModel make, Dims sample, bool of_pixels = false,
                      int64_t classes = 10) {
  const auto batch = [=](int64_t size) -> Batch {
    const Dims targets = of_pixels ? Dims{size, sample[1], sample[2]} : Dims{size};
    const Tensor images = channels_last(randn(with_batch(size, sample)));
    return {.input = images, .target = randint(classes, targets)};
  };
  return {name, std::move(make), batch, {{whole, classification_loss}}, classes};
}

// Texts have `length` tokens; the label of each token is its successor.
ModelEntry text_model(const std::string& name, MakeModel make, int64_t length, int64_t vocabulary) {
  const auto batch = [=](int64_t size) -> Batch {
    const Tensor texts = randint(vocabulary, {size, length});
    return {.input = texts, .target = randint(vocabulary, {size * length})};
  };
  return {name, std::move(make), batch, {{whole, classification_loss}}, vocabulary};
}

ModelEntry gpt(const std::string& name, const CharGPTOptions& options = {}) {
  return text_model(
      name, [=] { return std::make_unique<CharGPT>(options); }, options.context,
      options.vocabulary);
}

ModelEntry recurrent_lm(const std::string& name, RecurrentKind kind) {
  const RecurrentLMOptions options{.kind = kind};
  return text_model(
      name, [=] { return std::make_unique<RecurrentLM>(options); }, 35, options.vocabulary);
}

ModelEntry vae() {
  const auto batch = [](int64_t size) -> Batch {
    return {.input = rand({size, VAE::kPixels}), .noise = randn({size, VAE::kLatent})};
  };
  const auto loss = [](nn::Module& model, const Batch& batch) {
    return static_cast<VAE&>(model).loss(batch.input, batch.noise);
  };
  return {"vae", [] { return std::make_unique<VAE>(); }, batch, {{whole, loss}}};
}

ModelEntry gan() {
  const auto batch = [](int64_t size) -> Batch {
    return {.input = channels_last(randn({size, 3, 32, 32})),
            .noise = randn({size, GAN::kLatent, 1, 1})};
  };
  const Phase discriminator{
      [](nn::Module& model) -> nn::Module& { return static_cast<GAN&>(model).discriminator; },
      [](nn::Module& model, const Batch& batch) {
        return static_cast<GAN&>(model).discriminator_loss(batch.input, batch.noise);
      }};
  const Phase generator{
      [](nn::Module& model) -> nn::Module& { return static_cast<GAN&>(model).generator; },
      [](nn::Module& model, const Batch&) { return static_cast<GAN&>(model).generator_loss(); }};
  return {"gan", [] { return std::make_unique<GAN>(); }, batch, {discriminator, generator}};
}

std::unique_ptr<nn::Module> resnet50() {
  return make_bottleneck_net(
      {.stages = {{3, 64, 256}, {4, 128, 512}, {6, 256, 1024}, {3, 512, 2048}}});
}
std::unique_ptr<nn::Module> resnext() {
  return make_bottleneck_net({.stages = {{2, 128, 256}, {2, 256, 512}, {2, 512, 1024}},
                              .groups = 32,
                              .small_images = true});
}

const std::vector<ModelEntry>& entries() {
  static const std::vector<ModelEntry> all = {
      classifier("mlp",
                 [] {
                   return nn::make_model("mlp", {1, 28, 28, 10});
                 },
                 {1, 28, 28}),
      classifier("mnist_cnn", make_mnist_cnn, {1, 28, 28}),
      classifier("resnet18",
                 [] {
                   return nn::make_model("resnet18", {3, 32, 32, 10});
                 },
                 {3, 32, 32}),
      classifier("resnet50", resnet50, {3, 64, 64}),
      classifier("resnext", resnext, {3, 32, 32}),
      classifier("depthwise", make_depthwise_net, {3, 32, 32}),
      classifier("vit", [] { return std::make_unique<ViT>(); }, {3, 32, 32}),
      classifier(
          "unet", [] { return std::make_unique<UNet>(); }, {3, 64, 64}, true, 2),
      gpt("char_gpt"),
      gpt("gpt", {.layers = 6, .embed = 384, .heads = 6, .context = 256}),
      recurrent_lm("lstm", RecurrentKind::lstm),
      recurrent_lm("gru", RecurrentKind::gru),
      vae(),
      gan(),
  };
  return all;
}

}  // namespace

const ModelEntry& find_model(const std::string& name) {
  std::string names;
  for (const ModelEntry& entry : entries()) {
    if (entry.name == name) {
      return entry;
    }
    names += " " + entry.name;
  }
  fail("peer_work: got model '", name, "', expected one of", names);
}

}  // namespace binade::peers
