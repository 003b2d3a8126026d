// ReduceLROnPlateau: lowers the learning rate if a metric, such as the validation loss, has not
// improved for `patience` calls of advance().
//
//   optim::ReduceLROnPlateau plateau(adam, {.factor = 0.1, .patience = 5});
//   plateau.advance(trainer.validate(validation).loss);              // after each epoch
#pragma once
#include <binade/optim/schedule.h>

namespace binade::optim {

struct ReduceLROnPlateauOptions {
  bool larger_is_better = false;
  double factor = 0.1;
  int64_t patience = 10;    // calls without improvement that change nothing
  double threshold = 1e-4;  // better: by this share of the best so far,
  bool relative = true;     // or, if this is false, by this much
  int64_t cooldown = 0;     // calls after a reduction that are not counted
  double min_lr = 0;
  double eps = 1e-8;  // a smaller change of the rate is ignored
};

class ReduceLROnPlateau {
 public:
  ReduceLROnPlateau(const ScheduleTarget& target, const ReduceLROnPlateauOptions& options);

  void advance(double metric);
  double rate(size_t group = 0) const { return rates_.at(group); }
  double best() const { return best_; }
  bool larger_is_better() const { return options_.larger_is_better; }
  // True if it sets the rates of this optimizer.
  bool follows(const Optimizer& optimizer) const { return optimizer_ == &optimizer; }

  // "best", "bad_looks", "cooldown"; "best" is absent before the first call of advance(). The rates
  // are in the state of the optimizer.
  NamedScalars state_scalars() const;
  void load_state(const NamedScalars& scalars);

 private:
  bool is_better(double metric) const;
  void read_rates();

  Optimizer* optimizer_;
  ReduceLROnPlateauOptions options_;
  std::vector<double> rates_;  // per group
  double best_;
  int64_t bad_looks_ = 0, cooldown_ = 0;
};

}  // namespace binade::optim
