// The workloads that bench/peers/run times: here in Binade, the same ones in PyTorch in
// torch_work.py. Sizes are those of small models as people train them on a CPU.
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

// Creates a workload by name; bench/peers/run --list prints the names. An error lists them.
std::unique_ptr<Work> make_work(const std::string& name);

struct CurveOptions {
  std::string work;  // one that trains
  std::string file;  // receives parameters, buffers and batches before the first step (safetensors)
  int64_t steps = 20;
  double lr = 1e-3;
  int64_t batch = 8;
};

// Trains and returns the loss of each step, before its update.
std::vector<double> loss_curve(const CurveOptions& options);

}  // namespace binade::peers
