// The models that bench/peers times, by name, each with its batches and losses: the only place that
// a new model needs beside its own source. rows.py says which row uses which model; torch_table.py
// is PyTorch's counterpart.
#pragma once
#include <binade/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace binade::peers {

struct Batch {
  Tensor input;
  Tensor target = {};  // undefined where the loss needs none
  Tensor noise = {};   // likewise
};

// What one optimizer does in a step. A GAN has two phases, others one.
struct Phase {
  nn::Module& (*part)(nn::Module& model);  // whose parameters the phase updates
  Tensor (*loss)(nn::Module& model, const Batch& batch);
};

struct ModelEntry {
  std::string name;
  std::function<std::unique_ptr<nn::Module>()> make;
  std::function<Batch(int64_t size)> random_batch;
  std::vector<Phase> phases;
  int64_t classes = 10;  // of logits; of a text model: its vocabulary
};

// Throws an error that lists the names.
const ModelEntry& find_model(const std::string& name);

}  // namespace binade::peers
