#include <binade/core/ops.h>
#include <binade/train/running_loss_internal.h>

namespace binade::train {

void RunningLoss::add(const Tensor& loss, double weight) {
  if (loss.device().is_cpu()) {
    on_host_ += weight * loss.item();
    return;
  }
  const NoGradGuard guard;
  const Tensor term = mul(cast(reshape(loss.detach(), {}), DType::f64), weight);
  on_device_ = on_device_.defined() ? binade::add(on_device_, term) : term;
}

double RunningLoss::total() const {
  return on_host_ + (on_device_.defined() ? on_device_.item() : 0);
}

}  // namespace binade::train
