// The shadow of a step: the step runs in its own precision and again in f64 with the exact weights
// (the masters). For every op of every module, forward and backward, the comparison tells how much
// error the op introduced, how much it inherited from its inputs, and how this changed the loss.
//
//   train::ShadowStep found = train::shadow({.model = net, .step = my_step, ...});
//   std::puts(train::to_text(found).c_str());        // train/precision/shadow_report.h
//
// An op's introduced error is its result minus the result of the same op in f64 on the very same
// inputs: the f64 run gets the results of the low run, op by op. The casts that a policy makes of
// the op's inputs belong to the op. The rest of its error, against an f64 run of the whole step, is
// inherited. The error of a step's loss is the sum of <adjoint, introduced error> over all ops and
// rounded weights. The adjoints are means over the path from the f64 run to the low one, so the sum
// is exact except for kinks; first order terms alone are wrong once errors interact.
//
// The step must change nothing but the model; afterwards random numbers and buffers are restored,
// and the gradients are cleared.
// As under every observer, ops are not fused; other observers do not see these runs. The comparison
// keeps the results of all ops several times in f64, and takes as long as tens of steps.
// docs/shadow.md explains an example.
#pragma once
#include <binade/train/precision/overflow_cause.h>

#include <cstdint>
#include <string>
#include <vector>

namespace binade {
class FileSystem;
}

namespace binade::train {

// Errors of all results of an op in a module in forward, or of all gradients of its inputs in
// backward. Norms are Euclidean, over all elements that are finite.
struct ShadowErrors {
  int64_t elements = 0, not_finite = 0;
  // Norms of the errors over the norm of the f64 values; for `introduced` over the norm of the op's
  // f64 result on the same inputs. 0 if all values are zeros.
  double introduced = 0, inherited = 0, total = 0;
  // The inherited error over the error of the inputs, both relative: above 1 the op makes errors
  // larger. 0 if the inputs have no error. Errors of several inputs count as the root of the sum of
  // their squares; in backward the input is the gradient of the result.
  double amplification = 0;
  // The introduced error in units in the last place of the stored dtype: mean magnitude, largest.
  double ulp = 0, worst_ulp = 0;
  // The sum of introduced errors over the sum of their magnitudes: 0 if they cancel, 1 if all are
  // positive.
  double bias = 0;
  double cosine = 1;  // of the angle between the values and those of the f64 run
};

struct ShadowRow {
  std::string module = {}, op = {};
  std::string stored = {};  // the dtype of its results
  int64_t calls = 0;
  ShadowErrors forward = {};
  ShadowErrors backward = {};  // without elements: no gradient went through it
  // The relative error of the sum of its gradient's parts, if it has several uses.
  double accumulation = 0;
  double budget = 0;  // what its introduced errors add to the loss, signed
};

// A parameter: the rounding of its weights, which is an introduced error too, and its gradient.
struct ShadowWeight {
  std::string name = {};
  double rounding = 0;        // relative
  double budget = 0;          // what it adds to the loss
  double gradient_error = 0;  // relative, against the f64 run
  double gradient_cosine = 1;
};

struct ShadowStep {
  int64_t step = 0;
  double scale = 1;            // the loss scale, which is divided out
  double loss = 0, exact = 0;  // of the low run and of the f64 run
  double noise = 0;            // how much rounding errors in f64 change the f64 loss
  double explained = 0;        // the sum of all budgets
  int points = 0;              // f64 runs on the path from one to the other
  std::string text = {};       // why there is no comparison; else empty
  std::vector<ShadowRow> rows = {};
  std::vector<ShadowWeight> weights = {};

  double difference() const { return loss - exact; }
  // False if the losses differ by less than ten times the noise: then budgets mean nothing.
  bool resolved() const;
  // |difference - explained| / |difference|; NaN if it is not resolved.
  double residual() const;
};

// Compares only on the first batch of the step. Throws if the f64 run takes other ops than the low
// run, as for a step that asks for a dtype itself or draws random numbers by dtype.
ShadowStep shadow(const StepToDiagnose& step);

struct ShadowOptions {
  int64_t every = 100;          // steps
  std::string file = {};        // JSON lines, one per compared step; empty: none
  FileSystem* files = nullptr;  // where `file` is; null: file_system(). It outlives the shadow
  bool append = false;          // to the file, instead of replacing it
};

// For a training loop. A step that cannot be compared gives one warning and a line that says why.
class Shadow {
 public:
  explicit Shadow(const ShadowOptions& options);
  bool looks_at(int64_t step) const { return step % options_.every == 0; }
  void look(int64_t step, const StepToDiagnose& what);
  bool looked() const { return looked_; }
  const ShadowStep& last() const { return last_; }

 private:
  ShadowOptions options_;
  ShadowStep last_;
  bool looked_ = false, warned_ = false;
};

}  // namespace binade::train
