// Batches with a rule to learn, drawn by integer arithmetic so that other programs can draw the
// same (scripts/gpu_check/peer.py does): a loss after some hundred steps means something.
#pragma once
#include <binade/core/tensor/tensor.h>
#include <binade/nn/module.h>

namespace binade::bench {

struct DrawnBatch {
  Tensor inputs, labels;
};

// Texts of the vocabulary's first 64 tokens. The token behind x is 5 x + 1, 5 x + 18 or 5 x + 35
// (modulo 64, or the vocabulary), each as likely: the loss cannot fall below ln 3 = 1.099 unless a
// text is known. inputs [texts, tokens] i64, labels [texts * tokens] i64: the next tokens.
struct TextShape {
  int64_t texts, tokens, vocabulary;
};
DrawnBatch drawn_text(const TextShape& shape, int64_t number);

// Images of at most 16 classes: the pattern of the class, 16 x 16 squares, plus noise as strong.
// inputs [images, channels, edge, edge] f32 in [-2, 2), labels [images] i64.
struct ImageShape {
  int64_t images, channels, edge, classes;
};
DrawnBatch drawn_images(const ImageShape& shape, int64_t number);

// Gives the weights of a GPT-2 or ResNet on the CPU, in f32, numbers that depend on their names
// and places alone: uniform, with the deviations of nn/gpt2.h and nn/resnet.h (of a linear layer
// .02). Biases become 0.
void draw_weights(nn::Module& model, int64_t layers);

}  // namespace binade::bench
