// Training steps on batches of random numbers.
#pragma once
#include <bench/peers/model_work.h>

namespace binade::peers {

struct TrainingOptions {
  ModelRow row;
  double lr;
  int64_t batches = 1;  // batches, used in turn
};

class Training : public ModelWork {
 public:
  explicit Training(const TrainingOptions& options);
  void call() override { step(); }
  std::vector<double> values() override;  // the losses of the next step, before its updates
  NamedTensors start() const override;

 private:
  std::vector<Tensor> step();

  const ModelEntry& entry_;
  std::unique_ptr<nn::Module> model_;
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers_;  // one for each phase
  std::vector<Batch> batches_;
  size_t next_ = 0;
};

}  // namespace binade::peers
