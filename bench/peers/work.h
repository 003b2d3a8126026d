// The work that bench/peers/run times: here in Binade, in torch_work.py the same in PyTorch. Sizes
// are those of small models as people train them on a processor.
#pragma once
#include <binade/core/io/named_tensors.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::peers {

// What is repeated and timed. A call does `units` pieces of work: one training step, or a thousand
// ops where one takes nanoseconds.
class Work {
 public:
  explicit Work(int64_t units = 1) : units_(units) {}
  virtual ~Work() = default;
  virtual void call() = 0;
  int64_t units() const { return units_; }

 private:
  int64_t units_;
};

// By name, as bench/peers/run --list prints them. An error names the others.
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
