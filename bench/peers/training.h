// Workloads that train: a model, an optimizer and batches of random numbers.
#pragma once
#include <bench/peers/work.h>
#include <binade/nn/module.h>
#include <binade/optim/optimizer.h>

namespace binade::peers {

enum class Rule : uint8_t { sgd_momentum, sgd_momentum_decay, adam };

struct TrainingOptions {
  std::unique_ptr<nn::Module> (*model)();
  Dims input;       // sizes of one sample; of characters: [context]
  int64_t classes;  // logits [N, classes]; characters: one row for each of them
  bool characters = false;
  int64_t batch;
  Rule rule;
  double lr;
  int64_t batches = 1;  // taken in turn
};

class Training : public Work {
 public:
  explicit Training(const TrainingOptions& options);
  void call() override { step(); }
  Tensor step();  // the loss of the next batch, before the update
  // Parameters and buffers, and the batches as "input.0", "target.0", "input.1", ...
  NamedTensors start() const;

 private:
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<Tensor> inputs_, targets_;
  size_t next_ = 0;
};

// The settings of a training workload; throws an error that lists the names.
TrainingOptions training_options(const std::string& name);
bool is_training(const std::string& name);

}  // namespace binade::peers
