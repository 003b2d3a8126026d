#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <binade/train/background_saves_internal.h>
#include <signal.h>

#include <utility>

namespace binade::train {
namespace {

// Into `to`, whose memory is used again if names and sizes are those of the last time.
void copy_to_host(const NamedTensors& from, NamedTensors& to) {
  const NoGradGuard guard;
  bool alike = from.size() == to.size();
  for (size_t i = 0; alike && i < from.size(); ++i) {
    const Tensor &a = from[i].second, &b = to[i].second;
    alike = from[i].first == to[i].first && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
            a.strides() == b.strides();
  }
  if (!alike) {
    to.clear();
  }
  for (size_t i = 0; i < from.size(); ++i) {
    const Tensor host = from[i].second.detach().to(Device{});
    if (!alike) {
      to.emplace_back(from[i].first, empty_like(host));
    }
    to[i].second.copy_(host);
  }
}

}  // namespace

NamedTensors copies(const NamedTensors& tensors) {
  const NoGradGuard guard;
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) {
    Tensor copy = empty_like(tensor);
    copy.copy_(tensor.detach());
    out.emplace_back(name, std::move(copy));
  }
  return out;
}

NamedTensors host_copies(const NamedTensors& tensors) {
  NamedTensors out;
  copy_to_host(tensors, out);
  return out;
}

BackgroundSaves::~BackgroundSaves() {
  try {
    wait();
  } catch (const std::exception& error) {
    warn(error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::shared_ptr<const StateCopy> BackgroundSaves::copy(int64_t step, const NamedTensors& model,
                                                       const NamedTensors& optimizer) {
  if (step != step_) {
    wait();
    if (!copy_) {
      copy_ = std::make_shared<StateCopy>();
    }
    copy_to_host(model, copy_->model);
    copy_to_host(optimizer, copy_->optimizer);
    step_ = step;
  }
  return copy_;
}

void BackgroundSaves::add(std::function<void()> save) {
  const std::lock_guard lock(mutex_);
  saves_.push_back(std::move(save));
  if (!thread_.joinable()) {
    // Signals are for the threads of the program.
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::exception& error) {
      saves_.pop_back();
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      fail("trainer: cannot start the thread that saves checkpoints: ", error.what());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  changed_.notify_all();
}

void BackgroundSaves::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return saves_.empty(); });
  step_ = -1;
  if (const std::exception_ptr error = std::exchange(error_, nullptr)) {
    std::rethrow_exception(error);
  }
}

void BackgroundSaves::work() {
  const kernels::SerialGuard serial;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !saves_.empty(); });
    if (saves_.empty()) {
      return;
    }
    const std::function<void()> save = saves_.front();
    lock.unlock();
    std::exception_ptr error;
    try {
      save();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) {
      error_ = error;
      saves_.clear();
    } else {
      saves_.pop_front();
    }
    changed_.notify_all();
  }
}

}  // namespace binade::train
