#include <binade/core/observe/warning.h>
#include <binade/kernels/base/parallel.h>
#include <binade/train/background_saves_internal.h>
#include <binade/train/quiet_thread_internal.h>

#include <utility>

namespace binade::train {
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
    copy_ = std::make_shared<HostSnapshot>();
  }
  copy_->take(parts);
}

std::shared_ptr<const HostSnapshot> BackgroundSaves::copy(int64_t step, const StateParts& parts) {
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
