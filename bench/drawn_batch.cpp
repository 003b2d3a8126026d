#include <bench/drawn_batch.h>

#include <algorithm>
#include <vector>

namespace binade::bench {
namespace {

uint32_t mixed(int64_t number) {
  uint32_t h = static_cast<uint32_t>(number) * 2654435761u;
  h = (h ^ (h >> 16)) * 73244475u;
  return h ^ (h >> 16);
}

// In [-1, 1), a multiple of 1/128.
float level(int64_t number) { return static_cast<float>(mixed(number) % 256) / 128.0f - 1.0f; }

constexpr int64_t kTokens = 256, kClasses = 16, kSquares = 16;
// Begin of the numbers that each kind of draw mixes.
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

}  // namespace binade::bench
