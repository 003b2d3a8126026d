// Optimizer: what all optimizers share. A step is one pass over flat ranges of the parameter arena:
// unscaling, clip factor and division by an accumulation window are one factor on the gradient,
// which is never rewritten. A step skips parameters without a gradient, and each parameter counts
// its own updates. Masters and moments are f32 (f64 for f64 parameters) and are stored in the arena
// with the values.
//
// On a device a step never waits: the decision to apply or skip, the factor on the gradients,
// learning rates and counters are device scalars (kernels/optimizer/step_rule.h), and the outcome
// is read only when the program asks for it. Functions that return such a number wait for the
// device.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/core/owned.h>
#include <binade/core/tensor/parameter.h>
#include <binade/kernels/optimizer/low_update.h>
#include <binade/optim/betas.h>
#include <binade/optim/step_result.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace binade::optim {

struct GradientRange;
class DeviceOptimizer;  // optim/device_optimizer_internal.h

using NamedScalars = std::map<std::string, double>;

struct StepOptions {
  double divisor = 1;         // divides the gradients: AccumulationWindow::divisor() of a window
  bool accumulating = false;  // keep the gradients and return
  std::optional<double> clip_norm =
      std::nullopt;  // of the true, divided gradient over all parameters
  bool check_finite =
      false;  // skip the step if a gradient is not finite (a LossScaler always does)
  bool measure_norm = false;  // last_norm() is measured also without a limit or a scaler

  bool measures() const { return clip_norm || check_finite || measure_norm; }
};

// Parameters with their own options. The default is the optimizer's option. It is an error to set
// an option that the optimizer does not have.
struct ParamGroup {
  ParameterList parameters = {};
  std::optional<double> lr = std::nullopt;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> momentum = std::nullopt;                   // for Adam and similar: beta1
  std::optional<Betas> betas = std::nullopt;                       // all Adams and LAMB
  std::optional<double> eps = std::nullopt;                        // all but SGD
  std::optional<double> dampening = std::nullopt;                  // SGD
  std::optional<bool> nesterov = std::nullopt;                     // SGD
  std::optional<bool> amsgrad = std::nullopt;                      // Adam, AdamW
  std::optional<double> alpha = std::nullopt;                      // RMSprop
  std::optional<bool> centered = std::nullopt;                     // RMSprop
  std::optional<double> lr_decay = std::nullopt;                   // Adagrad
  std::optional<double> initial_accumulator_value = std::nullopt;  // Adagrad
  std::optional<double> trust_coefficient = std::nullopt;          // LARS
  std::optional<bool> decay_norms_and_biases = std::nullopt;
  std::optional<bool> maximize = std::nullopt;
};

// The settings of one group that all optimizers have.
struct GroupSettings {
  double lr, weight_decay;
  bool decay_norms_and_biases, maximize;
  std::optional<double> momentum = std::nullopt;  // none: the optimizer has none
};

// A summary of the true gradients (unscaled, not divided) of all parameters that have one.
struct GradientSummary {
  double norm = 0;         // Euclidean, over the finite elements
  int64_t non_finite = 0;  // other elements
  int64_t parameters = 0;  // that have a gradient
};

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates the parameters and clears the gradients; gradients are also cleared after an overflow.
  // Throws if no parameter has a gradient.
  StepResult step(const StepOptions& options = {});
  void zero_grad();

  size_t group_count() const { return groups_.size(); }
  const ParameterList& parameters(size_t group = 0) const { return at(group).parameters; }
  double lr(size_t group = 0) const;
  void set_lr(double lr);  // of all groups
  void set_lr(size_t group, double lr);
  // For Adam, AdamW and LAMB this is beta1. It is an error for an optimizer that was made without
  // momentum.
  double momentum(size_t group = 0) const;
  void set_momentum(double momentum);  // of all groups
  void set_momentum(size_t group, double momentum);
  bool has_momentum() const { return has_momentum_; }
  // Sets how f16 and bf16 parameters without masters are updated (kernels/optimizer/low_update.h);
  // the default is nearest. Call it before the first step and before a state is loaded. It is an
  // error if there are no such parameters. Stochastic rounding depends on the seed, the element and
  // the number of the update, so runs repeat and resume bit for bit. Compensated updates keep an
  // array of the parameters' dtype, "compensation.<parameter>" in state_tensors().
  void set_low_updates(LowUpdates how, uint64_t seed = 0);
  LowUpdates low_updates() const { return low_updates_; }
  double weight_decay(size_t group = 0) const { return at(group).weight_decay; }
  int64_t step_count() const;  // applied steps
  double last_norm() const;    // of the last step that measured it; else -1
  Device device() const { return arena_->device(); }

  GradientSummary gradient_summary() const;
  // The first parameter whose gradient is not finite; empty if there is none.
  std::string first_non_finite() const;

  // "master.<parameter>" and the moments, e.g. "exp_avg.<parameter>", in logical shape and in a
  // fixed order. They share memory with the optimizer. With a sharded arena
  // (core/tensor/parameter.h) this is collective and returns complete copies on every rank, so the
  // saved state does not depend on the number of ranks.
  NamedTensors state_tensors() const;
  int64_t state_bytes() const;  // of the moments that this process holds
  // "step", "lr.<group>", "momentum.<group>" if there is momentum, and "updates.<parameter>" if it
  // differs from "step".
  NamedScalars state_scalars() const;
  // Loads everything or nothing: one error lists all missing, unexpected and wrongly shaped names.
  // Values of f16 and bf16 parameters become the rounded masters.
  void load_state(const NamedTensors& tensors, const NamedScalars& scalars);

 protected:
  // A parameter range of a segment whose parameters have the same update. The views are flat and
  // have equal lengths.
  struct Range {
    View param, master, grad;
    std::vector<View> moments;  // one per name given to the constructor
    double lr, weight_decay, momentum, grad_multiplier;
    int64_t update;  // 1 in the first update of these parameters
    View step_scalars =
        kNoView;  // on a device: holds lr, momentum, grad_multiplier and update instead
    // The parameters of the range: items [first, last) of extents(group).
    size_t group, first, last;
    kernels::LowUpdate low = {};
  };
  struct Extent {
    std::string name;
    int64_t offset, numel;
  };

  // One setting per group. has_momentum: the optimizer has the state that a momentum needs.
  Optimizer(const std::vector<ParamGroup>& groups, const std::vector<GroupSettings>& settings,
            bool has_momentum, std::vector<std::string> moment_names);
  virtual void update(const Range& range) = 0;
  // True if an element stays zero when its value, gradient and moments are all zero. Ranges may
  // then include the gaps between parameters.
  virtual bool keeps_zeros() const { return true; }
  // beta2 of Adam's second moment, whose bias correction depends on the number of updates.
  virtual double beta2(size_t) const { return 0; }  // of a group
  bool is_sharded() const { return arena_->sharding() != Sharding::none; }
  // The parameters of a group in the order of memory.
  std::vector<Extent> extents(size_t group) const;
  // Sets a moment of a group's parameters, before the first step.
  void fill_moment(size_t moment, size_t group, double value) const;

 private:
  friend class LossScaler;
  friend class OptimizerState;
  friend class Schedule;
  struct Item {
    Parameter parameter;
    int64_t updates = 0;  // on a device: in counter `counter`
    size_t counter = 0;
  };
  struct Group {
    ParameterList parameters;
    double lr, weight_decay, momentum;
    bool decay_norms_and_biases, maximize;
    std::vector<Item> items;  // in the order of memory
  };
  struct ParameterRange {  // items [first, last) of a group
    size_t first, last;
    int segment;
    int64_t offset, numel;
    double scale;  // of the gradients; negative to maximize
    double weight_decay;
    int64_t updates;
    size_t counter;
    Tensor tag;  // a factor of the scale on a device; undefined is 1
    bool continues_in(const ParameterRange& next, bool over_gaps) const;
  };
  void check_options(const StepOptions& options) const;
  void check_unscaled(const StepOptions& options) const;
  const Group& at(size_t group) const;
  std::vector<ParameterRange> parameter_ranges(const Group& group) const;
  bool own_part(ParameterRange& parameter_range)
      const;  // cuts off what other ranks own; false: nothing is left
  std::vector<GradientRange> gradients() const;
  Range range_of(size_t group, const ParameterRange& parameter_range) const;
  StepOutcome step(const StepOptions& options, const GradientSummary* known);
  bool apply(size_t index, double factor, double clip);  // false: no parameter has a gradient
  double rate(size_t group, size_t which) const;         // 0: lr, 1: momentum
  void set_rate(size_t group, size_t which, double value);
  bool has_gradient() const;
  StepResult step_on_device(const StepOptions& options,
                            const std::shared_ptr<DeviceScaler>& scaler);
  void apply_on_device();
  void move_counters(std::vector<std::pair<size_t, size_t>>& moves);
  std::vector<double> updates() const;  // of all items, group by group
  void restore_updates(const std::vector<double>& updates);

  std::shared_ptr<Arena> arena_;
  std::vector<Group> groups_;
  std::vector<std::string> moment_names_;
  std::vector<std::vector<Tensor>> moments_;  // [moment][segment]
  bool has_momentum_;
  int64_t step_count_ = 0;
  double last_norm_ = -1;
  LowUpdates low_updates_ = LowUpdates::nearest;
  uint64_t low_seed_ = 0;
  std::vector<Tensor> compensations_;  // [segment], undefined where a segment has none
  Owned<DeviceOptimizer> device_;      // null on the CPU
};

// One group of all parameters.
std::vector<ParamGroup> single_group(const ParameterList& parameters);

}  // namespace binade::optim
