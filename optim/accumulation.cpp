#include <binade/kernels/base/error.h>
#include <binade/optim/accumulation.h>

namespace binade::optim {

AccumulationWindow::AccumulationWindow(int64_t micro_batches, int64_t nominal_batch)
    : micro_batches_(micro_batches), nominal_batch_(nominal_batch) {
  check(micro_batches >= 1 && nominal_batch >= 1, "accumulation: got ", micro_batches,
        " micro-batches of ", nominal_batch, ", expected positive numbers");
}

double AccumulationWindow::add(int64_t samples) {
  check(samples >= 1, "accumulation: got a micro-batch of ", samples,
        " samples, expected at least 1");
  check(!full(), "accumulation: the window of ", micro_batches_,
        " micro-batches is full; call reset() after the step");
  ++count_;
  samples_ += samples;
  return static_cast<double>(samples) / static_cast<double>(nominal_batch_);
}

double AccumulationWindow::divisor() const {
  check(samples_ > 0, "accumulation: the window is empty");
  return static_cast<double>(samples_) / static_cast<double>(nominal_batch_);
}

void AccumulationWindow::reset() {
  count_ = samples_ = 0;
  closed_ = false;
}

}  // namespace binade::optim
