// A task: a model to make, batches to draw, a test set, and the measure of success.
#pragma once
#include <functional>

#include "data.h"
#include "models.h"

namespace study {

struct Batch {
  Tensor x, y;  // the loss is cross_entropy(model(x), y)
};

struct Task {
  std::string name;
  bool classifies;     // judged by accuracy on the test set, else by the loss there
  double chance_loss;  // of a model that knows nothing: log of the number of classes
  std::function<std::unique_ptr<nn::Module>()> make_model;
  std::function<Batch(uint64_t seed, int64_t step)> draw;
  std::vector<Batch> test;
  double step_factor = 1;  // of a learning rate: steps as stable for brighter or larger pictures
  Device device = {};      // where models are trained; batches are on the CPU
};

Task mlp_task(Data& data);
Task cnn_task(Data& data);
Task gpt_task(Data& data);
Task lstm_task(Data& data);

}  // namespace study
