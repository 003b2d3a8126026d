// One training step of a model on one drawn batch: what step_bench.cpp times.
#pragma once
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::bench {

// A number of 0 means the model's own number.
struct StepSettings {
  std::string model = "gpt2";  // one of kStepModels
  Device device = {};
  Precision precision = {};
  std::string optimizer = "adamw";  // or "sgd", with momentum
  bool forward = false;             // evaluate without gradients or updates
  bool graph = false;               // capture the step in a CUDA graph (train/graphed_step.h)
  double lr = 1e-3;
  int64_t batches = 0;  // drawn by drawn_batch, in turn; 0: one batch of noise
  int64_t batch = 0;    // 0: 4 texts or 32 images
  int64_t width = 0;    // embedding width, or channels of a ResNet's stem
  // Settings of text models: gpt2..., char_gpt.
  int64_t tokens = 0, layers = 0, heads = 0, vocabulary = 0;
  double dropout = 0;  // gpt2 only
  // Settings of image models. A ResNet on images below 64 has the small stem.
  int64_t image = 0, channels = 0, classes = 0;
  std::vector<int64_t> blocks = {};  // in a ResNet's four stages
};

constexpr const char* kStepModels =
    "gpt2, gpt2-medium, gpt2-large, gpt2-xl, char_gpt, resnet18, resnet34, resnet50, resnet101, "
    "resnet152, cnn or mlp";
bool is_text_model(const std::string& model);

class StepWork {
 public:
  // Seeds the generator with 0, then draws the weights and the batches. A setting that the model
  // does not have is an error.
  explicit StepWork(const StepSettings& settings);
  ~StepWork();

  // Queues forward, loss, backward and the update, and returns the scalar loss. Does not wait for
  // the device.
  Tensor step();

  int64_t batch() const;
  int64_t length() const;  // tokens per text, or image edge
  int64_t parameter_count() const;
  int64_t skipped_steps() const;  // by the loss scaler; waits for the device
  int64_t replays() const;        // number of graph replays

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace binade::bench
