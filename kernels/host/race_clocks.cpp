#include <binade/kernels/host/race_clocks.h>

#include <algorithm>

namespace binade::kernels::host::race {
namespace {

bool covers(const ClockRef& clock, int by, uint32_t epoch) {
  return clock != nullptr && (*clock)[static_cast<size_t>(by)] >= epoch;
}

void raise(Clock& clock, const ClockRef& other) {
  if (other != nullptr) {
    std::transform(clock.begin(), clock.end(), other->begin(), clock.begin(),
                   [](uint32_t a, uint32_t b) { return std::max(a, b); });
  }
}

// The maximum of many clocks; neighbouring ones are often the same object.
class Joined {
 public:
  explicit Joined(size_t threads) : clock_(std::make_shared<Clock>(threads)) {}
  void add(const ClockRef& other) {
    if (other != nullptr && other != last_[0] && other != last_[1]) {
      raise(*clock_, other);
      last_[1] = std::move(last_[0]);
      last_[0] = other;
    }
  }
  void add(int thread, uint32_t epoch) {
    uint32_t& own = (*clock_)[static_cast<size_t>(thread)];
    own = std::max(own, epoch);
  }
  void add(const Snapshot& snapshot) {
    add(snapshot.floor);
    add(snapshot.seen);
    if (snapshot.own > 0) {
      add(snapshot.thread, snapshot.own);
    }
  }
  std::shared_ptr<Clock> take() { return std::move(clock_); }

 private:
  std::shared_ptr<Clock> clock_;
  ClockRef last_[2];
};

}  // namespace

bool Snapshot::covers(int by, uint32_t epoch) const {
  return (by == thread && own >= epoch) || race::covers(floor, by, epoch) ||
         race::covers(seen, by, epoch);
}

// Logs ------------------------------------------------------------------------------------------

void Known::add(const Prefix& prefix) {
  for (Prefix& known : prefixes_) {
    if (known.log == prefix.log) {
      known.length = std::max(known.length, prefix.length);
      return;
    }
  }
  prefixes_.push_back(prefix);
}
void Known::add(const Known& other) {
  for (const Prefix& prefix : other.prefixes_) {
    add(prefix);
  }
}
bool Known::covers(uint32_t block, int by, uint32_t epoch) const {
  return std::any_of(prefixes_.begin(), prefixes_.end(), [&](const Prefix& prefix) {
    return prefix.log->covers(prefix.length, block, by, epoch);
  });
}

void Log::publish(uint32_t block, const Snapshot& snapshot, const ClockRef& block_fenced) {
  if (!entries_.empty()) {
    const Entry& last = entries_.back();
    if (last.block == block && last.snapshot.thread == snapshot.thread &&
        last.snapshot.own == snapshot.own && last.snapshot.seen == snapshot.seen &&
        last.block_fenced == block_fenced) {
      return;
    }
  }
  by_block_[block].push_back(entries_.size());
  entries_.push_back({block, snapshot, block_fenced});
}

void Log::link(const Prefix& other) {
  for (const Link& link : links_) {
    if (link.prefix.log == other.log && link.prefix.length >= other.length) {
      return;
    }
  }
  links_.push_back({entries_.size() - 1, other});
}

bool Log::covers(size_t length, uint32_t block, int by, uint32_t epoch) const {
  const auto found = by_block_.find(block);
  if (found != by_block_.end()) {
    for (const size_t i : found->second) {
      if (i < length && (entries_[i].snapshot.covers(by, epoch) ||
                         race::covers(entries_[i].block_fenced, by, epoch))) {
        return true;
      }
    }
  }
  return std::any_of(links_.begin(), links_.end(), [&](const Link& link) {
    return link.from < length && link.prefix.log.get() != this &&
           link.prefix.log->covers(link.prefix.length, block, by, epoch);
  });
}

// Clocks ----------------------------------------------------------------------------------------

void Clocks::begin_grid() {
  global_logs_.clear();
  shared_logs_.clear();
}

void Clocks::begin_block(int threads, uint32_t block) {
  const auto count = static_cast<size_t>(threads);
  block_ = block;
  threads_.resize(count);
  for (ThreadClock& thread : threads_) {
    thread.epoch = 1;
    thread.seen = nullptr;
    if (any_fenced_ || any_known_) {
      thread = {};
    }
  }
  if (floor_.use_count() > 1) {
    floor_ = std::make_shared<Clock>(count);
  } else {
    floor_->assign(count, 0);
  }
  fenced_ = nullptr;
  acquired_.clear();
  pending_.clear();
  any_fenced_ = any_known_ = false;
  shared_logs_.clear();
}

bool Clocks::seen_in_logs(int thread, uint32_t block, int by, uint32_t epoch) const {
  return any_known_ && (acquired_.covers(block, by, epoch) ||
                        threads_[static_cast<size_t>(thread)].acquired.covers(block, by, epoch));
}

bool Clocks::seen_after_fence(int thread, uint32_t block, int by, uint32_t epoch) const {
  return any_known_ && (pending_.covers(block, by, epoch) ||
                        threads_[static_cast<size_t>(thread)].pending.covers(block, by, epoch));
}

void Clocks::join_all() {
  if (any_fenced_) {
    Joined fenced(threads_.size());
    fenced.add(fenced_);
    for (ThreadClock& thread : threads_) {
      fenced.add(thread.fenced);
      thread.fenced = {};
    }
    fenced_ = fenced.take();
    any_fenced_ = false;
  }
  if (any_known_) {
    for (ThreadClock& thread : threads_) {
      acquired_.add(thread.acquired);
      pending_.add(thread.pending);
      thread.acquired.clear();
      thread.pending.clear();
    }
  }
  if (floor_.use_count() > 1) {
    floor_ = std::make_shared<Clock>(threads_.size());
  }
  for (size_t i = 0; i < threads_.size(); ++i) {
    (*floor_)[i] = threads_[i].epoch++;
    threads_[i].seen = nullptr;
  }
}

void Clocks::join(const std::vector<int>& threads) {
  Joined seen(threads_.size()), fenced(any_fenced_ ? threads_.size() : 0);
  Known acquired, pending;
  for (const int i : threads) {
    const ThreadClock& thread = threads_[static_cast<size_t>(i)];
    seen.add(thread.seen);
    seen.add(i, thread.epoch);
    if (any_fenced_) {
      fenced.add(thread.fenced);
    }
    acquired.add(thread.acquired);
    pending.add(thread.pending);
  }
  const ClockRef all_seen = seen.take(), all_fenced = fenced.take();
  for (const int i : threads) {
    ThreadClock& thread = threads_[static_cast<size_t>(i)];
    thread.seen = all_seen;
    ++thread.epoch;
    if (any_fenced_) {
      thread.fenced = {};
      thread.fenced.seen = all_fenced;
    }
    if (any_known_) {
      thread.acquired = acquired;
      thread.pending = pending;
    }
  }
}

void Clocks::fence(int thread) {
  ThreadClock& self = threads_[static_cast<size_t>(thread)];
  self.fenced = {thread, self.epoch++, floor_, self.seen};
  any_fenced_ = true;
  self.acquired.add(self.pending);
  self.acquired.add(pending_);
  self.pending.clear();
}

void Clocks::atomic(int thread, uintptr_t address, bool shared_memory) {
  ThreadClock& self = threads_[static_cast<size_t>(thread)];
  const bool publishes = fenced_ != nullptr || (any_fenced_ && !self.fenced.empty());
  auto& logs = shared_memory ? shared_logs_ : global_logs_;
  auto found = logs.find(address);
  if (found == logs.end()) {
    if (!publishes) {
      return;
    }
    found = logs.emplace(address, std::make_shared<Log>()).first;
  }
  const std::shared_ptr<Log>& log = found->second;
  // It publishes what it has seen before.
  if (log->length() > 0) {
    self.pending.add({log, log->length()});
    any_known_ = true;
  }
  if (publishes) {
    Snapshot snapshot = self.fenced;
    snapshot.thread = thread;
    log->publish(block_, snapshot, fenced_);
    for (const Known* known : {&self.acquired, &acquired_}) {
      for (const Prefix& prefix : known->prefixes()) {
        if (prefix.log != log) {
          log->link(prefix);
        }
      }
    }
  }
}

}  // namespace binade::kernels::host::race
