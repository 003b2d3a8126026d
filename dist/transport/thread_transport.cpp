// Sends wait in a queue per pair of ranks until the receiver takes them. One lock guards all
// queues; copies run outside of it.
#include <binade/dist/transport/thread_transport.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace binade::dist {

class ThreadHub {
 public:
  explicit ThreadHub(int size)
      : size(size),
        present(static_cast<size_t>(size), true),
        copies(static_cast<size_t>(size)),
        queues(size_t(size) * size) {}

  struct Sent {
    const std::byte* data;
    size_t bytes;
    std::atomic<bool>* done;
  };
  std::deque<Sent>& queue(int from, int to) {
    return queues[static_cast<size_t>(from) * static_cast<size_t>(size) + static_cast<size_t>(to)];
  }

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> present;
  std::vector<int> copies;  // running copies from the memory of each rank
  std::vector<std::deque<Sent>> queues;
  // Hubs of splits, by members and number of earlier splits with the same members.
  std::map<std::pair<std::vector<int>, int>, std::weak_ptr<ThreadHub>> parts;
};

namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<ThreadHub> hub, int rank)
      : Transport(rank, hub->size), hub_(std::move(hub)) {}

  ~ThreadTransport() override {
    abandon();
    const std::lock_guard lock(hub_->mutex);
    hub_->present[static_cast<size_t>(rank())] = false;
    hub_->changed.notify_all();
  }

  const char* name() const override { return "threads"; }

  std::unique_ptr<Transport> split(const std::vector<int>& members) override {
    const int nth = splits_[members]++;
    std::shared_ptr<ThreadHub> part;
    {
      const std::lock_guard lock(hub_->mutex);
      std::weak_ptr<ThreadHub>& known = hub_->parts[{members, nth}];
      part = known.lock();
      if (!part) {
        known = part = std::make_shared<ThreadHub>(static_cast<int>(members.size()));
        for (size_t i = 0; i < members.size(); ++i) {  // some may have joined and left already
          part->present[i] = hub_->present[static_cast<size_t>(members[i])];
        }
      }
      hub_parts_.push_back(part);  // until all members have joined
    }
    int mine = 0;
    while (members[static_cast<size_t>(mine)] != rank()) {
      ++mine;
    }
    return std::make_unique<ThreadTransport>(std::move(part), mine);
  }

 protected:
  void post(const std::vector<Message>& group) override {
    const std::lock_guard lock(hub_->mutex);
    groups_.emplace_back();
    for (const Message& message : group) {
      Pending& pending = groups_.back().emplace_back(message);
      if (message.is_send) {
        hub_->queue(rank(), message.peer).push_back({message.data, message.bytes, &pending.done});
      }
    }
    hub_->changed.notify_all();
  }

  uint64_t progress() override {
    std::unique_lock lock(hub_->mutex);
    if (!receive_all(lock) && !groups_.empty() && !first_done()) {
      check_peers();
      hub_->changed.wait_for(lock, std::chrono::milliseconds(20));
      receive_all(lock);
    }
    while (!groups_.empty() && first_done()) {
      groups_.pop_front();
      ++finished_;
    }
    return finished_;
  }

  void wake() noexcept override { hub_->changed.notify_all(); }

  void abandon() noexcept override {
    std::unique_lock lock(hub_->mutex);
    for (int to = 0; to < size(); ++to) {
      hub_->queue(rank(), to).clear();
    }
    hub_->changed.wait(lock, [&] { return hub_->copies[static_cast<size_t>(rank())] == 0; });
    groups_.clear();
  }

 private:
  struct Pending {
    explicit Pending(const Message& message) : message(message) {}
    Message message;
    std::atomic<bool> done{false};
  };

  bool first_done() const {
    for (const Pending& pending : groups_.front()) {
      if (!pending.done.load(std::memory_order_acquire)) {
        return false;
      }
    }
    return true;
  }

  // Copies sent messages to the posted receives, in order per peer. Returns true if there were any.
  bool receive_all(std::unique_lock<std::mutex>& lock) {
    bool any = false;
    std::vector<bool> waiting(static_cast<size_t>(size()));
    for (auto& group : groups_) {
      for (Pending& pending : group) {
        const Message& message = pending.message;
        const auto peer = static_cast<size_t>(message.peer);
        if (message.is_send || pending.done || waiting[peer]) {
          continue;
        }
        auto& queue = hub_->queue(message.peer, rank());
        if (queue.empty()) {
          waiting[peer] = true;
          continue;
        }
        const ThreadHub::Sent sent = queue.front();
        check_size(sent.bytes, message);
        queue.pop_front();
        ++hub_->copies[peer];
        lock.unlock();  // the sender waits for `done` or `copies`: its memory stays valid
        std::memcpy(message.data, sent.data, sent.bytes);
        lock.lock();
        --hub_->copies[peer];
        sent.done->store(true, std::memory_order_release);
        pending.done.store(true, std::memory_order_release);
        any = true;
      }
    }
    if (any) {
      hub_->changed.notify_all();
    }
    return any;
  }

  void check_size(size_t bytes, const Message& message) const {
    if (bytes != message.bytes) {
      throw TransportError(text("rank ", message.peer, " sent ", bytes, " bytes, rank ", rank(),
                                " expected ", message.bytes));
    }
  }

  void check_peers() const {
    for (const Pending& pending : groups_.front()) {
      const int peer = pending.message.peer;
      if (!pending.done && !hub_->present[static_cast<size_t>(peer)]) {
        throw TransportError(text("rank ", peer, " has left"));
      }
    }
  }

  std::shared_ptr<ThreadHub> hub_;
  std::deque<std::deque<Pending>> groups_;  // not done yet
  uint64_t finished_ = 0;
  std::map<std::vector<int>, int> splits_;
  std::vector<std::shared_ptr<ThreadHub>> hub_parts_;
};

}  // namespace

std::shared_ptr<ThreadHub> make_thread_hub(int size) {
  check(size >= 1, "thread transport: got ", size, " ranks, expected 1 or more");
  return std::make_shared<ThreadHub>(size);
}

std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<ThreadHub> hub, int rank) {
  check(rank >= 0 && rank < hub->size, "thread transport: got rank ", rank, " of ", hub->size);
  return std::make_unique<ThreadTransport>(std::move(hub), rank);
}

}  // namespace binade::dist
