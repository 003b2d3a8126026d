// Batches with a rule that a model can learn, so a loss after some hundred steps is meaningful.
// Integer arithmetic draws them, which other programs can repeat (scripts/gpu_check/peer.py).
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/nn/module.h>

namespace binade::bench {

struct DrawnBatch {
  Tensor inputs, labels;
};

// Texts of the vocabulary's first 64 tokens. After x comes 5 x + 1, 5 x + 18 or 5 x + 35 (modulo
// 64, or a smaller vocabulary) with equal probability: the loss stays above ln 3 = 1.099 unless
// texts are memorised. inputs [texts, tokens] i64, labels [texts * tokens] i64: next tokens.
struct TextShape {
  int64_t texts, tokens, vocabulary;
};
DrawnBatch drawn_text(const TextShape& shape, int64_t number);

// Images of at most 16 classes: the 16 x 16 squares of the class's pattern plus noise of the same
// amplitude. inputs [images, channels, edge, edge] f32 in [-2, 2), labels [images] i64.
struct ImageShape {
  int64_t images, channels, edge, classes;
};
DrawnBatch drawn_images(const ImageShape& shape, int64_t number);

// Sets the weights of a GPT-2 or ResNet on the CPU, in f32, to numbers that depend only on their
// names and positions: uniform, with the standard deviations of nn/gpt2.h and nn/resnet.h (0.02 for
// linear layers). Biases become 0.
void draw_weights(nn::Module& model, int64_t layers);

}  // namespace binade::bench
