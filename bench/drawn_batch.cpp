#include <bench/drawn_batch.h>
#include <binade/core/autograd/autograd.h>
#include <binade/nn/init.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace binade::bench {
namespace {

uint32_t mixed(int64_t number) {
  uint32_t h = static_cast<uint32_t>(number) * 2654435761u;
  h = (h ^ (h >> 16)) * 73244475u;
  return h ^ (h >> 16);
}

// Returns a multiple of 1/128 in [-1, 1).
float level(int64_t number) { return static_cast<float>(mixed(number) % 256) / 128.0f - 1.0f; }

// The FNV-1a hash.
uint32_t hash_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  }
  return hash;
}

// The standard deviation of a weight with at least two dimensions.
double deviation_of(std::string_view name, const Dims& sizes, int64_t layers) {
  if (sizes.size() == 4) {
    return std::sqrt(2.0 / double(sizes[0] * sizes[2] * sizes[3]));
  }
  return name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(2.0 * double(layers)) : 0.02;
}

constexpr int64_t kTokens = 64, kClasses = 16, kSquares = 16;
// Each kind of draw mixes numbers that begin at its own offset.
constexpr int64_t kChoices = 7777777, kLabels = 99991, kNoise = 31337;

}  // namespace

DrawnBatch drawn_text(const TextShape& shape, int64_t number) {
  const int64_t tokens = std::min(kTokens, shape.vocabulary);
  std::vector<int64_t> inputs, labels;
  for (int64_t row = 0; row < shape.texts; ++row) {
    const int64_t text = number * shape.texts + row;
    int64_t token = mixed(text) % tokens;
    for (int64_t at = 0; at < shape.tokens; ++at) {
      inputs.push_back(token);
      token = (5 * token + 1 + 17 * (mixed(kChoices + text * shape.tokens + at) % 3)) % tokens;
      labels.push_back(token);
    }
  }
  return {Tensor::from(inputs, {shape.texts, shape.tokens}),
          Tensor::from(labels, {shape.texts * shape.tokens})};
}

DrawnBatch drawn_images(const ImageShape& shape, int64_t number) {
  const int64_t edge = shape.edge, pixels = shape.channels * edge * edge;
  std::vector<float> inputs(static_cast<size_t>(shape.images * pixels));
  std::vector<int64_t> labels;
  float* pixel = inputs.data();
  for (int64_t row = 0; row < shape.images; ++row) {
    const int64_t image = number * shape.images + row;
    labels.push_back(mixed(kLabels + image) % std::min(kClasses, shape.classes));
    for (int64_t i = 0; i < pixels; ++i) {
      const int64_t channel = i / (edge * edge), y = i / edge % edge, x = i % edge;
      const int64_t square = y * kSquares / edge * kSquares + x * kSquares / edge;
      *pixel++ = level((labels.back() * shape.channels + channel) * kSquares * kSquares + square) +
                 level(kNoise + image * pixels + i);
    }
  }
  return {Tensor::from(inputs, {shape.images, shape.channels, edge, edge}),
          Tensor::from(labels, {shape.images})};
}

void draw_weights(nn::Module& model, int64_t layers) {
  for (const auto& [name, w] : model.named_parameters()) {
    if (name.ends_with("bias")) {
      nn::init::zeros(w);
    }
    if (w.dim() < 2) {
      continue;
    }
    const double scale = std::sqrt(3.0) * deviation_of(name, w.sizes(), layers);
    std::vector<float> values(static_cast<size_t>(w.numel()));
    int64_t number = hash_of(name);
    for (float& value : values) {
      value = static_cast<float>(scale * ((mixed(number++) % 65536 + 0.5) / 32768 - 1));
    }
    const NoGradGuard guard;
    w.copy_(Tensor::from(values, w.sizes()));
  }
}

}  // namespace binade::bench
