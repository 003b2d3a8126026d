// Lens: the exponent lens (core/observe/exponents.h) on a training loop. Every `every` steps it
// counts, per layer, the exponents of the values that the step computes, and the effect that f16
// and bf16 would have on them.
//
//   train::Lens lens(model.parameters(), adam, {.every = 10, .file = "run/lens.jsonl"});
//   lens.begin(step);                             // before the first forward of a step
//   scaler.scale(loss).backward();
//   lens.before_update();                         // gradients are complete
//   StepResult result = scaler.step(adam);
//   lens.end();                                   // writes the step's lines
//
// Gradients are counted at their true value: the loss scale is divided out exactly. It works under
// every precision policy, but it sees a tensor only after the step stored it. A tensor that was
// stored in f16 at scale S was rounded then: what was at most 2^-25 / S is among its zeros, so for
// such a record the count of flushed elements is a lower bound (LensRecord::shows_flushed()).
// An observed step costs two more reads of each watched tensor (one with LensOptions::worst = 0), a
// copy of the watched weights for the updates, and on a device one wait; other steps cost nothing.
// Call begin() and end() on the thread that runs the step.
#pragma once
#include <binade/core/observe/exponents.h>
#include <binade/core/observe/worst_elements.h>
#include <binade/core/owned.h>
#include <binade/optim/optimizer.h>

#include <map>
#include <string>
#include <vector>

namespace binade {
class FileSystem;
}

namespace binade::train {

enum class LensKind : uint8_t {
  activation,           // results of forward ops, except views, casts and copies to a device
  activation_gradient,  // of those results with more than one element (no losses)
  weight_gradient,
  weight,  // masters if there are any, before the step
  update,  // what the step added to them
};
inline constexpr int kLensKinds = 5;
const char* to_string(LensKind kind);  // "activation_gradient"

struct LensOptions {
  int64_t every = 10;           // steps
  std::string layers = "*";     // module paths, * for any characters, ? for one: "block?.conv*"
  std::string file = {};        // JSON lines, one object per tensor and step; empty: none
  FileSystem* files = nullptr;  // where `file` is; null: file_system(). It outlives the lens
  bool append = false;          // to the file, instead of replacing it
  // Elements of each exponent that a record names: those that f16 changes most. On a device this
  // copies each watched tensor to the host. 0: none.
  size_t worst = 2;
  std::vector<LensKind> kinds = {LensKind::activation, LensKind::activation_gradient,
                                 LensKind::weight_gradient, LensKind::weight, LensKind::update};
};

// One tensor of a step. Several micro-batches, and several results of one op in one layer, are one
// tensor.
struct LensRecord {
  int64_t step;
  LensKind kind;
  std::string layer;   // module path; empty for the root
  std::string tensor;  // the parameter, else the layer and the op: "conv1.weight", "conv1/conv2d"
  double scale;        // the loss scale that was divided out; 1 if there is none
  DType stored;        // the dtype in which the step stored the tensor
  ExponentCounts counts;
  LostUpdates lost;                                     // of updates
  std::map<int, std::vector<WorstElement>> worst = {};  // by exponent

  // False if f16 at `static_scale` would flush nothing but what was flushed already when the tensor
  // was stored.
  bool shows_flushed(double static_scale = 1) const {
    return stored != DType::f16 || static_scale < scale;
  }
};
std::string to_json(const LensRecord& record);

// The static loss scales for which the records of gradients give the losses.
inline constexpr double kLensScales[] = {1, 8, 128, 1024, 8192, 32768, 65536, 0x1p20};

class Lens {
 public:
  // Throws if the file cannot be written. The optimizer must outlive the lens.
  Lens(const ParameterList& parameters, const optim::Optimizer& optimizer,
       const LensOptions& options = {});
  ~Lens();
  Lens(const Lens&) = delete;
  Lens& operator=(const Lens&) = delete;

  bool looks_at(int64_t step) const;  // a multiple of `every`
  // At other steps this and the next two functions do nothing. Drops a step that did not end.
  void begin(int64_t step);
  void before_update();
  void end();

  // The records of the last observed step, in the order in which the step computed the tensors.
  const std::vector<LensRecord>& records() const { return records_; }
  // All gradients seen so far, of weights and of activations: static_scale(gradients().largest())
  // is the largest static loss scale at which none of them overflows.
  const ExponentCounts& gradients() const { return gradients_; }

 private:
  class Watch;
  void write(const std::string& lines, bool anew) const;

  const LensOptions options_;
  ParameterList parameters_;
  const optim::Optimizer& optimizer_;
  Owned<Watch> watch_;  // during an observed step
  std::vector<LensRecord> records_;
  ExponentCounts gradients_;
};

}  // namespace binade::train
