// Learning rates and momenta: numbers of the groups, and on a device words that the step reads.
#include <binade/optim/device_words_internal.h>
#include <binade/optim/optimizer.h>

#include <cmath>

namespace binade::optim {
namespace {

bool is_rate(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

double Optimizer::rate(size_t group, size_t which) const {
  const Group& own = at(group);
  if (device_ && device_->rates_moved) {
    return word_at(device_->rates, static_cast<int64_t>(2 * group + which)).item();
  }
  return which == 0 ? own.lr : own.momentum;
}

void Optimizer::set_rate(size_t group, size_t which, double value) {
  (void)at(group);
  (which == 0 ? groups_[group].lr : groups_[group].momentum) = value;
  if (device_) {
    word_at(device_->rates, static_cast<int64_t>(2 * group + which)).fill_(value);
  }
}

double Optimizer::lr(size_t group) const { return rate(group, 0); }

void Optimizer::set_lr(double lr) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    set_lr(i, lr);
  }
}

void Optimizer::set_lr(size_t group, double lr) {
  check(is_rate(lr), "set_lr: got ", lr, ", expected a number >= 0");
  set_rate(group, 0, lr);
}

double Optimizer::momentum(size_t group) const {
  check(has_momentum_, "momentum: this optimizer was made without momentum");
  return rate(group, 1);
}

void Optimizer::set_momentum(double momentum) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    set_momentum(i, momentum);
  }
}

void Optimizer::set_momentum(size_t group, double momentum) {
  check(has_momentum_, "set_momentum: this optimizer was made without momentum");
  check(momentum >= 0 && momentum < 1, "set_momentum: got ", momentum,
        ", expected a number in [0, 1)");
  set_rate(group, 1, momentum);
}

}  // namespace binade::optim
