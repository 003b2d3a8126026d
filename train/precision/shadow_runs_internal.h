// The runs of a shadow, and the observers that record them. Internal to train.
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/core/observe/observer.h>
#include <binade/train/precision/shadow_errors_internal.h>

#include <unordered_map>
#include <vector>

namespace binade::train {

// A result of an op of the step, with its values in all runs. On the host.
struct ShadowResult {
  Dims sizes = {};
  DType stored = DType::f32;
  bool floating = false;
  Tensor low = {}, exact = {};              // values of the low run and of the f64 run
  Tensor introduced = {};                   // of the op
  Tensor low_gradient = {}, gradient = {};  // of the loss with respect to it, in these runs
  double relative = 0;                      // the square of the relative error
};

struct ShadowOpCall {
  const char* op = "";
  uint32_t module = 0;
  // The op is not recorded for backward: it works on data, or ran under a NoGradGuard or in the
  // first run of recompute(). Without an adjoint its error counts for the op that takes its result.
  bool skipped = false;
  std::vector<ShadowResult> results = {};
  std::vector<Tensor> low_gradients = {}, gradients = {};  // of its inputs; some undefined
  double budget = 0;
};

using ShadowCalls = std::vector<ShadowOpCall>;

// Finds the op call whose result a tensor or a node is. It holds every result, also those that are
// not looked for, so that no two results have the same address.
class ResultIndex {
 public:
  struct Place {
    size_t call, result;
  };
  void add(const Tensor& result, Place place);
  void hold(const Tensor& result) { held_.push_back(result); }
  const Place* find(const TensorData* data) const;
  const Place* find(const Tensor& t) const { return find(t.handle().get()); }

 private:
  std::vector<Tensor> held_;
  std::unordered_map<const TensorData*, Place> places_;
};

// True for casts, which are left out: they belong to the op that asked for them.
bool is_cast(const char* op);

// Notes the ops of the low run.
class LowRun : public OpObserver {
 public:
  LowRun(ShadowCalls& calls, double scale) : calls_(calls), scale_(scale) {}
  void result(const OpEvent& event) override;
  void upstream(const GradientEvent& event) override;
  void gradients(const GradientEvent& event) override;

 private:
  ShadowCalls& calls_;
  double scale_;
  ResultIndex index_;
};

// A run in f64 on the path from the exact step to the low one. At `share` 0 it is exact. At 1 every
// op gets the results of the low run as inputs, so its own f64 result shows the error that the low
// op introduced. Between 0 and 1 that share of the introduced errors is added.
class ExactRun : public OpObserver {
 public:
  ExactRun(ShadowCalls& calls, double share) : calls_(calls), share_(share) {}
  // After this call the run moves every result at random by a few units in the last place of f64.
  void shake(uint64_t seed) { shaken_ = seed; }
  // The relative error of a tensor that no op computed: of a rounded weight.
  void add_input(const Tensor& t, double relative_squared);
  // In the next backward the gradients of the low run replace the run's own gradients.
  void force_gradients() { forced_ = true; }

  void result(const OpEvent& event) override;
  void upstream(const GradientEvent& event) override;
  void gradients(const GradientEvent& event) override;

  // REQUIRES: the run was forced. One per call.
  const std::vector<ShadowSums>& forward() const { return forward_; }
  const std::vector<ShadowSums>& backward() const { return backward_; }
  const std::vector<double>& accumulation() const { return accumulation_; }
  // The adjoint times the introduced error, per call.
  const std::vector<double>& budgets() const { return budgets_; }
  size_t ops() const { return next_; }

 private:
  ShadowOpCall& next_call(const OpEvent& event);
  void compare(const OpEvent& event, size_t call, size_t k);
  double error_of_inputs(const OpEvent& event) const;
  void shake_values(const Tensor& y);

  ShadowCalls& calls_;
  double share_;
  bool forced_ = false;
  uint64_t shaken_ = 0;
  size_t next_ = 0;
  ResultIndex index_;
  std::vector<Tensor> held_;
  std::unordered_map<const TensorData*, double> relative_;  // squares of errors, by tensor
  std::vector<ShadowSums> forward_, backward_;
  std::vector<double> accumulation_, budgets_;
};

}  // namespace binade::train
