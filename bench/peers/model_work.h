// Work with a model: training steps, inference, generation of text. A row of rows.py names it as
// STEP:MODEL:BATCH:RULE, for example "train:mlp:64:sgd" or "infer:resnet18:1:-".
#pragma once
#include <bench/peers/model_table.h>
#include <bench/peers/work.h>
#include <binade/optim/optimizer.h>

namespace binade::peers {

class ModelWork : public Work {
 public:
  using Work::Work;
  // Runs one call. Returns its losses, or the outputs' root mean square and some elements.
  virtual std::vector<double> values() = 0;
  // Parameters, buffers, and the batches as "input.0", "target.0", "noise.0", "input.1", ...
  virtual NamedTensors start() const = 0;
};

struct ModelRow {
  std::string step;  // train, infer or generate
  const ModelEntry* model;
  int64_t batch;
  std::string rule;  // the optimizer's rule: sgd, sgd_decay, adam, adam_gan; "-" for none
};

bool is_model_row(const std::string& spec);
// Throws an Error that says what is expected.
ModelRow parse_model_row(const std::string& spec);
std::unique_ptr<ModelWork> make_model_work(const ModelRow& row);

}  // namespace binade::peers
