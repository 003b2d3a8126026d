// The models that bench/peers times, by name, each with its batches and losses. A new model needs
// an entry only here, besides its own source. rows.py says which row uses which model;
// torch_table.py is PyTorch's counterpart.
#pragma once
#include <binade/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace binade::peers {

struct Batch {
  Tensor input;
  Tensor target = {};  // undefined if the loss needs none
  Tensor noise = {};   // undefined if the loss needs none
};

// The update of one optimizer in a step. A GAN has two phases, other models one.
struct Phase {
  nn::Module& (*part)(nn::Module& model);  // the module whose parameters the phase updates
  Tensor (*loss)(nn::Module& model, const Batch& batch);
};

struct ModelEntry {
  std::string name;
  std::function<std::unique_ptr<nn::Module>()> make;
  std::function<Batch(int64_t size)> random_batch;
  std::vector<Phase> phases;
  int64_t classes = 10;  // number of logits; for a text model, its vocabulary
};

// Throws an Error that lists the names.
const ModelEntry& find_model(const std::string& name);

}  // namespace binade::peers
