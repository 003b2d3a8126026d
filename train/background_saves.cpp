#include <binade/core/device/device_memory.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <binade/train/background_saves_internal.h>
#include <binade/train/quiet_thread_internal.h>

#include <utility>

namespace binade::train {
namespace {

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

// Into `to`, whose memory is used again where name and layout are those of the last time.
void copy_to_host(const NamedTensors& from, NamedTensors& to) {
  const NoGradGuard guard;
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    Tensor source = from[i].second.detach();
    source = is_dense(source.sizes(), source.strides()) ? source : contiguous(source);
    auto& [name, copy] = to[i];
    if (name != from[i].first || !copy.defined() || !same_layout(source, copy)) {
      name = from[i].first;
      copy = empty_strided(source.sizes(), source.strides(), source.dtype(), Device{});
    }
    if (source.device().is_cpu()) {
      copy.copy_(source);
    } else {
      device_copy(copy.view().data, Device{}, source.view().data, source.device(),
                  static_cast<size_t>(source.numel()) * size_of(source.dtype()));
    }
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
  if (forks_ != fork_count()) {
    (void)queue_.release();  // its thread is the parent's, and its mutex may be locked
    return;
  }
  try {
    wait();
  } catch (const std::exception& error) {
    warn(error.what());
  }
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->stop = true;
  }
  queue_->changed.notify_all();
  if (queue_->thread.joinable()) {
    queue_->thread.join();
  }
}

void BackgroundSaves::reserve(const StateParts& parts) {
  wait();
  if (!copy_) {
    copy_ = std::make_shared<StateParts>();
  }
  copy_->resize(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    (*copy_)[i].file = parts[i].file;
    copy_to_host(parts[i].tensors, (*copy_)[i].tensors);
  }
}

std::shared_ptr<const StateParts> BackgroundSaves::copy(int64_t step, const StateParts& parts) {
  if (step != step_) {
    reserve(parts);
    step_ = step;
  }
  return copy_;
}

void BackgroundSaves::add(std::function<void()> save) {
  const std::lock_guard lock(queue_->mutex);
  if (!queue_->thread.joinable()) {
    queue_->thread = start_quiet_thread("trainer", "saves checkpoints", [this] { work(*queue_); });
  }
  queue_->saves.push_back(std::move(save));
  queue_->changed.notify_all();
}

void BackgroundSaves::wait() {
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait(lock, [this] { return queue_->saves.empty(); });
  step_ = -1;
  if (const std::exception_ptr error = std::exchange(queue_->error, nullptr)) {
    std::rethrow_exception(error);
  }
}

void BackgroundSaves::work(Queue& queue) {
  const kernels::SerialGuard serial;
  std::unique_lock lock(queue.mutex);
  while (true) {
    queue.changed.wait(lock, [&queue] { return queue.stop || !queue.saves.empty(); });
    if (queue.saves.empty()) {
      return;
    }
    const std::function<void()> save = queue.saves.front();
    lock.unlock();
    std::exception_ptr error;
    try {
      save();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) {
      queue.error = error;
      queue.saves.clear();
    } else {
      queue.saves.pop_front();
    }
    queue.changed.notify_all();
  }
}

}  // namespace binade::train
