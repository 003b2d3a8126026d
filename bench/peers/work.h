// The workloads that bench/peers/run times in Binade; torch_work.py has the same in PyTorch. Sizes
// are typical of small models that people train on a CPU.
#pragma once
#include <binade/core/io/named_tensors.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::peers {

// A workload that is repeated and timed. One call does `units` units: one training step, or a
// thousand ops if an op takes nanoseconds.
class Work {
 public:
  explicit Work(int64_t units = 1) : units_(units) {}
  virtual ~Work() = default;
  virtual void call() = 0;
  int64_t units() const { return units_; }

 private:
  int64_t units_;
};

// Creates a workload by name: work with a model as STEP:MODEL:BATCH:RULE (model_work.h), or an op.
// Throws an Error that lists the names.
std::unique_ptr<Work> make_work(const std::string& name);

// Sets up work with a model, writes its parameters, buffers and batches to the file (safetensors)
// and returns the values of the first call: losses, or a summary of the outputs.
std::vector<double> start_values(const std::string& spec, const std::string& file);

struct CurveOptions {
  std::string work;  // work that trains, named as in make_work()
  std::string file;  // gets parameters, buffers and batches before the first step (safetensors)
  int64_t steps = 20;
  double lr = 1e-3;
  int64_t batch = 8;
};

// Trains and returns the losses of each step before its updates, one for each phase.
std::vector<double> loss_curve(const CurveOptions& options);

}  // namespace binade::peers
