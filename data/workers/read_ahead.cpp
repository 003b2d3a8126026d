// Reads files ahead of use.
#include <binade/data/workers/read_ahead_internal.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>

#include <chrono>
#include <utility>

namespace binade::data {

struct ReadAhead::Shared {
  struct Slot {
    int64_t place = -1;  // -1: free
    bool ready = false;
    std::optional<std::vector<uint8_t>> file = {};
    std::exception_ptr error = {};
  };

  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const EpochPlan> plan;
  int64_t batches = 0;

  std::mutex mutex;
  std::condition_variable claimable, arrived, ended;
  std::vector<Slot> slots{static_cast<size_t>(kSamples)};
  int64_t batch = 0;              // of the next claim
  EpochPlan::Places places = {};  // of that batch
  int64_t within = 0;             // the next claim within it
  int64_t held_bytes = 0;
  int running = 0;
  bool stop = false;

  bool at_end() const { return batch >= batches; }
  int64_t next_place() const { return places.first + within; }
  Slot& slot(int64_t place) { return slots[static_cast<size_t>(place % kSamples)]; }
  bool can_claim() { return !at_end() && slot(next_place()).place < 0 && held_bytes < kBytes; }
  // The dataset index of the claimed place.
  int64_t claim(int64_t& place);
  void enter_batch();
};

// Skips batches without samples.
void ReadAhead::Shared::enter_batch() {
  within = 0;
  for (; batch < batches; ++batch) {
    places = plan->batch(batch);
    if (places.count > 0) {
      return;
    }
  }
}

int64_t ReadAhead::Shared::claim(int64_t& place) {
  place = next_place();
  slot(place) = {.place = place};
  const int64_t position = (places.begin + within * places.stride) % plan->size();
  if (++within == places.count) {
    ++batch;
    enter_batch();
  }
  return plan->index(position);
}

ReadAhead::ReadAhead(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const EpochPlan> plan,
                     int64_t first_batch, int threads)
    : shared_(std::make_shared<Shared>()) {
  shared_->dataset = std::move(dataset);
  shared_->plan = std::move(plan);
  shared_->batch = first_batch;
  shared_->batches = shared_->plan->batches();
  shared_->enter_batch();
  for (int i = 0; i < threads; ++i) {
    try {
      threads_.emplace_back([shared = shared_] { run(shared); });
    } catch (const std::exception& error) {
      if (i == 0) {
        fail("loader: cannot start a thread that reads ahead: ", error.what());
      }
      break;
    }
    const std::lock_guard lock(shared_->mutex);
    ++shared_->running;
  }
}

ReadAhead::~ReadAhead() {
  constexpr auto kPatience = std::chrono::seconds(2);
  cancel();
  std::unique_lock lock(shared_->mutex);
  const bool all = shared_->ended.wait_for(lock, kPatience, [&] { return shared_->running <= 0; });
  lock.unlock();
  for (std::thread& thread : threads_) {
    if (all) {
      thread.join();
    } else {
      thread.detach();
    }
  }
}

void ReadAhead::run(const std::shared_ptr<Shared>& shared) {
  const kernels::SerialGuard serial;
  Shared& s = *shared;
  std::unique_lock lock(s.mutex);
  while (true) {
    s.claimable.wait(lock, [&] { return s.stop || s.at_end() || s.can_claim(); });
    if (s.stop || s.at_end()) {
      break;
    }
    int64_t place = 0;
    const int64_t index = s.claim(place);
    lock.unlock();
    std::optional<std::vector<uint8_t>> file;
    std::exception_ptr error;
    try {
      file = s.dataset->encoded(index);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    Shared::Slot& slot = s.slot(place);
    s.held_bytes += file ? std::ssize(*file) : 0;
    slot.file = std::move(file);
    slot.error = std::move(error);
    slot.ready = true;
    s.arrived.notify_all();
  }
  --s.running;
  s.claimable.notify_all();  // the end is the end for all
  s.ended.notify_all();
}

std::optional<std::vector<uint8_t>> ReadAhead::take(int64_t place) {
  Shared& s = *shared_;
  std::unique_lock lock(s.mutex);
  Shared::Slot& slot = s.slot(place);
  s.arrived.wait(lock, [&] { return s.stop || (slot.place == place && slot.ready); });
  if (s.stop) {
    return std::nullopt;
  }
  Shared::Slot taken = std::exchange(slot, {});
  s.held_bytes -= taken.file ? std::ssize(*taken.file) : 0;
  s.claimable.notify_all();
  lock.unlock();
  if (taken.error) {
    std::rethrow_exception(taken.error);
  }
  return taken.file;
}

void ReadAhead::cancel() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stop = true;
  shared_->claimable.notify_all();
  shared_->arrived.notify_all();
}

}  // namespace binade::data
