// L-BFGS: quasi-Newton steps from the last changes of the gradient (D. C. Liu, J. Nocedal, "On the
// limited memory BFGS method for large scale optimization", Math. Programming 45, 1989), with
// PyTorch's rules. For full batches: it compares losses of different parameters.
//
//   optim::LBFGS lbfgs(model.parameters(), {.line_search = optim::LineSearch::strong_wolfe});
//   const double loss = lbfgs.step([&] {
//     Tensor loss = mse_loss(model(x), y);
//     loss.backward();
//     return loss;
//   });
//
// It keeps 2 history_size + 2 vectors of the size of all parameters, and waits for the device after
// every evaluation.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/core/tensor/parameter.h>
#include <binade/optim/optimizer.h>

#include <functional>

namespace binade::optim {

enum class LineSearch : uint8_t {
  none,          // lr is the step
  strong_wolfe,  // steps that satisfy the strong Wolfe conditions, with 1e-4 and 0.9
};

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;                           // per step()
  std::optional<int64_t> max_eval = std::nullopt;  // per step(); default: 5/4 max_iter
  double tolerance_grad = 1e-7;                    // on the largest element of the gradient
  double tolerance_change = 1e-9;                  // on the step and on the loss
  int64_t history_size = 100;
  LineSearch line_search = LineSearch::none;
  bool maximize = false;
};

class LBFGS {
 public:
  using Options = LBFGSOptions;
  LBFGS(const ParameterList& parameters, const LBFGSOptions& options = {});
  // One group only, without options of its own: there is one direction for all parameters.
  LBFGS(const std::vector<ParamGroup>& groups, const LBFGSOptions& options = {});
  ~LBFGS();
  LBFGS(const LBFGS&) = delete;
  LBFGS& operator=(const LBFGS&) = delete;

  // Up to max_iter iterations; returns the loss before the first. The closure computes the loss,
  // calls backward() on it and returns it; gradients are cleared before each call and after the
  // last. Steps are taken on f32 masters, if there are any. A loss or a gradient that is not finite
  // is an error at the start, and a step too far in a line search. If the closure throws, the
  // parameters are those at the start of the iteration, and the history begins anew.
  double step(const std::function<Tensor()>& closure);
  void zero_grad();

  double lr() const { return options_.lr; }
  void set_lr(double lr);
  int64_t iterations() const { return iterations_; }    // of all steps
  int64_t evaluations() const { return evaluations_; }  // of the closure
  const ParameterList& parameters() const { return parameters_; }

  // The masters and what the next step needs: a run that is saved and loaded goes on with the same
  // bits. Vectors have all parameters, in the order of parameters(). load_state takes everything or
  // nothing.
  NamedTensors state_tensors() const;
  NamedScalars state_scalars() const;
  void load_state(const NamedTensors& tensors, const NamedScalars& scalars);

 private:
  struct Evaluation {
    double loss;
    Tensor gradient;  // flat
  };
  struct Pair {  // how a step changed the parameters, and the gradient
    Tensor step, change;
    double curvature;  // 1 / (step . change)
  };

  struct Budget {  // of an iteration
    int64_t evaluations;
    bool is_last;  // of a step
  };

  Tensor flat(const std::vector<Tensor>& parts) const;
  Evaluation evaluate(const std::function<Tensor()>& closure);
  std::vector<Tensor> exact_values() const;
  void move_to(const std::vector<Tensor>& from, double t);  // from + t direction
  void update_direction(const Tensor& gradient);
  int64_t advance(const std::function<Tensor()>& closure, const std::vector<Tensor>& start,
                  double slope, const Budget& budget, Evaluation& now);

  ParameterList parameters_;
  std::shared_ptr<Arena> arena_;
  LBFGSOptions options_;
  DType dtype_;  // of the vectors
  int64_t iterations_ = 0, evaluations_ = 0;
  // The state of the last iteration, undefined before the first.
  Tensor direction_, previous_;
  double t_ = 0, scale_ = 1;
  std::vector<Pair> history_;
};

}  // namespace binade::optim
