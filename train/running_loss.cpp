#include <binade/core/ops.h>
#include <binade/train/running_loss_internal.h>

#include <cmath>

namespace binade::train {
namespace {

constexpr int64_t kUnreadLosses = 256;

}  // namespace

void RunningLoss::add(const Tensor& loss, double weight, int64_t step) {
  const Term term{weight, step};
  if (loss.device().is_cpu()) {
    take(loss.item(), term);
    return;
  }
  const NoGradGuard guard;
  if (!buffer_.defined() || !(buffer_.device() == loss.device())) {
    read();
    buffer_ = empty({kUnreadLosses}, DType::f64, loss.device());
  }
  const auto place = static_cast<int64_t>(unread_.size());
  make_view(buffer_, {1}, {1}, place).copy_(reshape(loss.detach(), {1}));
  unread_.push_back(term);
  if (place + 1 == kUnreadLosses) {
    read();
  }
}

void RunningLoss::add(double loss, double weight, int64_t step) { take(loss, {weight, step}); }

void RunningLoss::take(double loss, const Term& term) const {
  total_ += term.weight * loss;
  if (!bad_ && !std::isfinite(loss)) {
    bad_ = BadLoss{term.step, loss};
  }
}

void RunningLoss::read() const {
  if (unread_.empty()) {
    return;
  }
  const Tensor host = buffer_.to(Device{});
  for (size_t i = 0; i < unread_.size(); ++i) {
    take(host.data<double>()[i], unread_[i]);
  }
  unread_.clear();
}

double RunningLoss::total() const {
  read();
  return total_;
}

}  // namespace binade::train
